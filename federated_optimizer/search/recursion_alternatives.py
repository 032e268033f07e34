"""Recursions in the memo: one alternative for each legal way, priced by what travels for it.

What a recursion reads and the filters right above it go where its way wants them, so neither is a
choice of its own. Between several base sites, which share the work, there is one way.
"""

from collections.abc import Iterable, Mapping
from copy import copy

from federated_optimizer.alternatives.method import Method
from federated_optimizer.alternatives.recursions import Chosen
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.recursion_prices import TRUST, Price
from federated_optimizer.costs.recursion_workload import recursion_key
from federated_optimizer.costs.shipments import MIXED_BYTES
from federated_optimizer.costs.size_and_motion import UNKNOWN, wider
from federated_optimizer.memo.groups import Alternative
from federated_optimizer.memo.memo import Memo
from federated_optimizer.statistics.planning_statistics import Placed
from streamsql.algebra.choices import Way
from streamsql.algebra.operators import Fixpoint, walk_plan

_DEAR = Cost(1e30, 1e30, 1e30)
"""More than any plan costs."""


def recursion_alternatives(
    node: Fixpoint, chosen: Mapping[Fixpoint, Chosen], *, searched: bool
) -> tuple[Alternative, ...]:
    """Return the ways of a recursion.

    Args:
        node: The recursion.
        chosen: How it and the recursions inside it are computed if nobody chooses.
        searched: Whether there is a choice.
    """
    mine = chosen[node]
    inside = sum(
        (
            _cost(chosen[other], chosen[other].way)
            for other in dict.fromkeys(walk_plan(node))
            if isinstance(other, Fixpoint) and other is not node and other != node
        ),
        NOTHING,
    )
    ways = mine.ways.legal if searched else (mine.way,)
    return tuple(Alternative(Method(way.value), (), _cost(mine, way) + inside) for way in ways)


def recursions_refused(chosen: Iterable[Chosen]) -> tuple[str, ...]:
    """Return the ways that recursions do not have, in words, those of one reason together."""
    found: list[str] = []
    for each in chosen:
        by_reason: dict[str, list[str]] = {}
        for way, reason in each.ways.refused:
            by_reason.setdefault(reason, []).append(way.value)
        found += [f"{each.plan.name} by {', '.join(w)}: {r}" for r, w in by_reason.items()]
    return tuple(dict.fromkeys(found))


def keeping_ways(memo: Memo, placed: Mapping[str, Placed]) -> Memo | None:
    """Return the memo with other ways than those that run made dear; None if none of them runs.

    Its plans have the same numbers.
    """
    kept = copy(memo)
    kept.alternatives = dict(memo.alternatives)
    for wanted, alternatives in memo.alternatives.items():
        plan = memo.plan(wanted)
        if not isinstance(plan, Fixpoint):
            continue
        running = placed.get(recursion_key(plan))
        methods = {each.method.value for each in alternatives}
        if running is not None and running.way.value in methods:
            kept.alternatives[wanted] = tuple(
                each
                if each.method.value == running.way.value
                else Alternative(each.method, each.children, _DEAR)
                for each in alternatives
            )
    return kept if kept.alternatives != memo.alternatives else None


def _cost(chosen: Chosen, way: Way) -> Cost:
    """Return the price of a way with its range."""
    price = next(each for each in chosen.prices if each.way == way)
    return _ranged(price, TRUST if chosen.plan.measured else wider(TRUST, UNKNOWN))


def _ranged(price: Price, factor: float) -> Cost:
    middle = price.bytes_per_second
    messages = middle / MIXED_BYTES
    return Cost(middle, middle / factor, middle * factor, messages, price.milliseconds)
