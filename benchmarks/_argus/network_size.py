"""Size of a network of queries by the weights of the thesis.

A selection weighs 5 where it reads a stream, and one less for each join below it; the first join of
a chain weighs 16, each further one half of it. Only fragments that sites run count: what a run
reads from another one is counted there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from streamsql.algebra.operators import (
    Aggregate,
    Filter,
    Join,
    Plan,
    RemoteSource,
    SetOperation,
    walk_plan,
)
from streamsql.wire.fragments import FragmentBundle

SELECTIONS = (5, 4, 3, 2, 1)
JOINS = (16, 8, 4, 2)
"""Weights by the number of joins below, and of the join itself."""

_NODES = (Filter, Join, Aggregate, SetOperation)


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """Size of a network.

    Attributes:
        weighted: Sum of the weights of selections and joins.
        nodes: Selections, joins, aggregates and set operations.
        operators: All operators of all fragments.
        fragments: That sites run.
    """

    weighted: int = 0
    nodes: int = 0
    operators: int = 0
    fragments: int = 0

    def plus(self, other: "NetworkSize") -> "NetworkSize":
        """Return both together."""
        return NetworkSize(
            self.weighted + other.weighted,
            self.nodes + other.nodes,
            self.operators + other.operators,
            self.fragments + other.fragments,
        )


def size_of(bundles: Iterable[FragmentBundle]) -> NetworkSize:
    """Return the size of what sites run for some bundles."""
    total = NetworkSize()
    for bundle in bundles:
        plans = {fragment.id: fragment.plan for fragment in bundle.fragments}
        for fragment in bundle.own:
            total = total.plus(_size(fragment.plan, plans))
    return total


def _size(plan: Plan, plans: dict[str, Plan]) -> NetworkSize:
    operators = list(walk_plan(plan))
    return NetworkSize(
        sum(_weight(node, plans) for node in operators),
        sum(isinstance(node, _NODES) for node in operators),
        sum(not isinstance(node, RemoteSource) for node in operators),
        1,
    )


def _weight(node: Plan, plans: dict[str, Plan]) -> int:
    if isinstance(node, Filter):
        return SELECTIONS[min(_joins(node, plans), len(SELECTIONS) - 1)]
    if isinstance(node, Join):
        return JOINS[min(_joins(node, plans), len(JOINS)) - 1]
    return 0


def _joins(plan: Plan, plans: dict[str, Plan]) -> int:
    """Return how many joins are on the longest way down to a stream."""
    if isinstance(plan, RemoteSource):
        return _joins(plans[plan.fragment], plans)
    below = max((_joins(each, plans) for each in plan.inputs), default=0)
    return below + isinstance(plan, Join)
