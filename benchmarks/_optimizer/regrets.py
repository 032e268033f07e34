"""Figures of the gate: rank correlation of estimate and measurement, and regret of the choice."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import correlation, median
from typing import Any

from benchmarks._optimizer.forced_plans import METRICS, Measured, Outcome
from federated_optimizer.search.choosing import PUSHED
from streamsql.algebra.metrics import Term

Found = Mapping[str, Any]
"""Figures as they are printed and written."""

ALL = "all worlds"


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures of each world and of all queries, and those of each query."""
    worlds = {
        world: _of_world([each for each in outcomes if each.world == world])
        for world in dict.fromkeys(each.world for each in outcomes)
    }
    return {
        "worlds": {**worlds, ALL: _of_world(outcomes)},
        "queries": [_of_query(each) for each in outcomes],
    }


def _of_world(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    plans = [plan for each in outcomes for plan in each.plans]
    who = {
        "chosen": [each.chosen[Term.BYTES] for each in outcomes],
        "push everything": [PUSHED for _ in outcomes],
        "ship everything": [each.shipping for each in outcomes],
    }
    return {
        "queries": len(outcomes),
        "plans": len(plans),
        "not run": sum(each.count - len(each.plans) for each in outcomes),
        "other rows": [each.name for each in outcomes if not each.right],
        "spearman": {
            term.value: spearman(
                [getattr(plan.estimated, name) for plan in _measured(plans, term)],
                [plan.used.of(term) for plan in _measured(plans, term)],
            )
            for term, name in METRICS.items()
        },
        "regret": {
            name: _spread(
                each.regret(number) for each, number in zip(outcomes, numbers, strict=True)
            )
            for name, numbers in who.items()
        },
        "regret by metric": {
            term.value: _spread(each.regret(each.chosen[term], term) for each in outcomes)
            for term in METRICS
            if term != Term.BYTES
        },
        "over the better end": round(max(each.above for each in outcomes), 2),
    }


def _measured(plans: Sequence[Measured], term: Term) -> list[Measured]:
    """Return the plans of which a figure was measured: of some no row changed, so none was late."""
    return [plan for plan in plans if term != Term.LATENCY or plan.used.milliseconds]


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the correlation of ranks, None if all values are equal; equal values share a rank.

    Examples:
        >>> spearman([1.0, 2.0, 9.0], [10.0, 20.0, 21.0])
        1.0
    """
    ranks = (_ranks(first), _ranks(second))
    if any(len(set(each)) < 2 for each in ranks):
        return None
    return round(correlation(*ranks), 3)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def _spread(regrets: Iterable[float]) -> dict[str, float]:
    found = list(regrets)
    return {"median": round(median(found), 2), "worst": round(max(found), 2)}


def _of_query(outcome: Outcome) -> dict[str, Any]:
    number = outcome.chosen[Term.BYTES]
    taken = next(plan for plan in outcome.plans if plan.number == number)
    return {
        "world": outcome.world,
        "query": outcome.name,
        "plans": outcome.count,
        "run": len(outcome.plans),
        "chosen": number,
        "method": taken.words,
        "estimated": round(taken.estimated.bytes, 1),
        "measured": round(taken.used.bytes, 1),
        "best": round(min(plan.used.bytes for plan in outcome.plans), 1),
        "messages": round(taken.used.messages, 2),
        "energy": round(taken.used.energy, 1),
        "milliseconds": round(taken.used.milliseconds, 1),
        "regret": round(outcome.regret(number), 2),
        "regret in energy": round(outcome.regret(outcome.chosen[Term.ENERGY], Term.ENERGY), 2),
        "over the better end": round(outcome.above, 2),
        "same rows": outcome.right,
    }
