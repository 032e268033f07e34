"""Recursions in the memo: one alternative for each legal way, priced by what travels for it.

What a recursion reads and the filters right above it go where its way wants them, so neither is a
choice of its own. Between several base sites, which share the work, there is one way.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, fields

from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.recursion.recursion_bounds import bounded_recursions
from federated_optimizer.alternatives.recursion.recursions import Chosen, leaves_of
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.recursion_prices import TRUST, Price
from federated_optimizer.costs.recursion_workload import recursion_key, with_bounded
from federated_optimizer.costs.relations.size_and_motion import UNKNOWN, wider
from federated_optimizer.costs.shipments import mixed_bytes
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.statistics.default_facts import HOP_MILLISECONDS, STEP_SECONDS
from federated_optimizer.statistics.planning_statistics import Placed
from federated_optimizer.statistics.wires import ONE_HOP, Wires
from streamsql.algebra.choices import Way
from streamsql.algebra.operators import Fixpoint, Plan, walk_plan

_DEAR = Cost(*[1e30] * len(fields(Cost)))
"""More than any plan costs."""


@dataclass(frozen=True, slots=True)
class Sending:
    """Costs of sending, and the mean hops of what a recursion sends."""

    wires: Wires
    hops: float = ONE_HOP


def recursion_alternatives(
    node: Fixpoint, chosen: Mapping[Fixpoint, Chosen], sending: Sending, *, searched: bool
) -> tuple[Alternative, ...]:
    """Return the ways of a recursion.

    Args:
        node: The recursion.
        chosen: How it and the recursions inside it are computed if nobody chooses.
        sending: What it costs that rows travel.
        searched: Whether there is a choice.
    """
    mine = chosen[node]
    inside = sum(
        (
            _cost(chosen[other], chosen[other].way, sending)
            for other in dict.fromkeys(walk_plan(node))
            if isinstance(other, Fixpoint) and other is not node and other != node
        ),
        NOTHING,
    )
    ways = mine.ways.legal if searched else (mine.way,)
    return tuple(
        Alternative(Method(way.value), (), _cost(mine, way, sending) + inside) for way in ways
    )


def bound_alternatives(
    plan: Plan,
    own: Counter[Plan],
    cutter: Cutter,
    made: Callable[[Plan], Wanted],
    refused: list[str],
) -> Iterator[Alternative]:
    """Yield an operator over a recursion that derives only what is asked for.

    Args:
        plan: The operator.
        own: How often the query has each of its operators.
        cutter: Learns of a recursion that has not run what was counted of the whole one.
        made: Puts an equal plan into the memo.
        refused: Gets the reasons why there are no others.
    """
    for found in bounded_recursions(plan, own):
        if isinstance(found, Refused):
            refused.append(found.reason)
        else:
            cutter.statistics = with_bounded(
                cutter.statistics, found.whole, found.recursion, leaves_of(found.recursion)
            )
            yield Alternative(Method.BOUND, (made(found.plan),), words=found.words)


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
    if not placed:
        return None
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


def _cost(chosen: Chosen, way: Way, sending: Sending) -> Cost:
    """Return the price of a way with its range."""
    price = next(each for each in chosen.prices if each.way == way)
    return _ranged(price, TRUST if chosen.plan.measured else wider(TRUST, UNKNOWN), sending)


def _ranged(price: Price, factor: float, sending: Sending) -> Cost:
    middle, wires = price.bytes_per_second, sending.wires
    messages = middle / mixed_bytes(wires)
    # From one site to the next a row waits for the sender's step, and for its way.
    one = sending.hops * wires.hop_milliseconds + 1_000 * STEP_SECONDS.value
    return Cost(
        bytes=middle,
        low=middle / factor,
        high=middle * factor,
        messages=messages,
        milliseconds=price.milliseconds / HOP_MILLISECONDS.value * one,
        energy=middle * sending.hops * wires.hop_energy,
        cpu=wires.processor(messages, middle),
    )
