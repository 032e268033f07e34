"""The way of a query through the optimizer: normalize, group joins by place, narrow, cut."""

from typing import Protocol

import msgspec

from federated_optimizer.placement import (
    NOTHING_KNOWN,
    Foresee,
    Statistics,
    Topology,
    group_joins,
    place,
)
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from federated_optimizer.rules.driver import Observer
from streamsql.algebra.operators import Plan, ToStream, transform_up
from streamsql.errors import InternalError, UnsupportedError
from streamsql.wire.fragments import FragmentBundle


class BoundPlan(Protocol):
    """What the optimizer reads of a bound query (`streamsql.binder.BoundQuery` is one)."""

    @property
    def plan(self) -> Plan:
        """The plan as bound."""
        ...

    @property
    def emit(self) -> str:
        """What the reader gets."""
        ...


def normalize(plan: Plan, topology: Topology, *, observe: Observer | None = None) -> Plan:
    """Return the plan with the same schema and rows that is ready to be cut.

    Raises:
        InternalError: A step changed the schema.
    """
    plan = transform_up(plan, lambda node: _ready(node, topology))
    logical = run_rules(plan, LOGICAL_RULES, observe=observe)
    grouped = group_joins(logical, topology)
    if grouped.schema != plan.schema:
        raise InternalError(f"grouping joins changed the schema to {grouped.schema}")
    if observe is not None and grouped != logical:
        observe("group_joins", grouped)
    return run_rules(grouped, WIDTH_RULES, observe=observe)


def _ready(node: Plan, topology: Topology) -> Plan:
    """Return a node with the query of a stream normalized, which no rule looks into."""
    if not isinstance(node, ToStream):
        return node
    return msgspec.structs.replace(node, query=normalize(node.query, topology))


def plan(  # noqa: PLR0913 - what a bundle consists of
    bound: BoundPlan,
    topology: Topology,
    *,
    query: str,
    version: int = 1,
    text: str = "",
    statistics: Statistics = NOTHING_KNOWN,
    foresee: Foresee | None = None,
) -> FragmentBundle:
    """Return the fragments of a bound query.

    Without `foresee` EXPLAIN does not say how recursions are kept, and a strategy that does not fit
    is refused where it would run.

    Raises:
        UnsupportedError: A recursion's strategy and way do not go together, the strategy does not
            fit the recursion, or the plan is too deep.
    """
    try:
        ready = normalize(bound.plan, topology)
        return place(
            ready,
            topology,
            query=query,
            version=version,
            text=text,
            emit=bound.emit,
            statistics=statistics,
            foresee=foresee,
        )
    except RecursionError:
        raise UnsupportedError(
            "the operators of this query are nested too deeply",
            hint="use fewer joins and set operations in one query",
            code="limit_exceeded",
        ) from None
