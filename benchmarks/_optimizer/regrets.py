"""Figures of the gate: rank correlation of estimate and measurement, and regret of the choice."""

from collections.abc import Iterable, Sequence
from statistics import correlation, median
from typing import Any

from benchmarks._optimizer.forced_plans import Outcome
from federated_optimizer.search.choosing import PUSHED


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures of all queries, and those of each."""
    plans = [plan for each in outcomes for plan in each.plans]
    taken = [each.regret(each.chosen) for each in outcomes]
    pushed = [each.regret(PUSHED) for each in outcomes]
    former = [each.regret(each.former) for each in outcomes]
    shipped = [each.regret(_last(each)) for each in outcomes]
    return {
        "queries": len(outcomes),
        "plans": len(plans),
        "same_rows": all(each.right for each in outcomes),
        "spearman": round(
            spearman([plan.estimated for plan in plans], [plan.bytes for plan in plans]), 3
        ),
        "regret": {
            "chosen": _spread(taken),
            "former rule": _spread(former),
            "push everything": _spread(pushed),
            "ship everything": _spread(shipped),
        },
        "by_query": {each.name: _of_query(each) for each in outcomes},
    }


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the correlation of ranks; equal values share theirs.

    Examples:
        >>> spearman([1.0, 2.0, 9.0], [10.0, 20.0, 21.0])
        1.0
    """
    return correlation(_ranks(first), _ranks(second))


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def _last(outcome: Outcome) -> int:
    """Return the number of the plan that ships everything."""
    return max(plan.number for plan in outcome.plans)


def _spread(regrets: Iterable[float]) -> dict[str, float]:
    found = list(regrets)
    return {"median": round(median(found), 2), "worst": round(max(found), 2)}


def _of_query(outcome: Outcome) -> dict[str, Any]:
    taken = next(plan for plan in outcome.plans if plan.number == outcome.chosen)
    return {
        "plans": outcome.count,
        "run": len(outcome.plans),
        "chosen": outcome.chosen,
        "method": taken.words,
        "estimated": round(taken.estimated, 1),
        "measured": round(taken.bytes, 1),
        "messages": round(taken.messages, 2),
        "best": round(min(plan.bytes for plan in outcome.plans), 1),
        "regret": round(outcome.regret(outcome.chosen), 2),
        "same_rows": outcome.right,
    }


def printed(found: dict[str, Any]) -> str:
    """Return the figures as text."""
    lines = [
        f"{'bytes/s':<26}{'plans':>6}{'chosen':>7}{'estimate':>10}{'measured':>10}"
        f"{'best':>8}{'regret':>8}"
    ]
    for name, query in found["by_query"].items():
        wrong = "" if query["same_rows"] else "  OTHER ROWS"
        lines.append(
            f"{name:<26}{query['plans']:>6}{query['chosen']:>7}{query['estimated']:>10}"
            f"{query['measured']:>10}{query['best']:>8}{query['regret']:>8.2f}{wrong}"
        )
    lines.append(
        f"{found['queries']} queries, {found['plans']} plans; rank correlation of estimate and "
        f"measurement {found['spearman']}"
    )
    for who, regret in found["regret"].items():
        lines.append(f"regret, {who}: median {regret['median']}, worst {regret['worst']}")
    return "\n".join(lines)
