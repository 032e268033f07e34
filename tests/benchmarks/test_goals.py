"""Goals of the optimizer's gate: which are met, and which a short run must meet."""

from typing import Any

from benchmarks._optimizer.goals import goals
from benchmarks._optimizer.regrets import ALL

PLANNING = {"building": {"p95 ms": 50.0}, "ten relations": {"p95 ms": 1_000.0}}


def world(**other: Any) -> dict[str, Any]:
    reached = {
        "other rows": [],
        "spearman": {"bytes": 0.9},
        "regret": {"chosen": {"median": 1.0, "worst": 1.5}},
        "over the better end": 1.05,
    }
    return {**reached, **other}


def missed(found: dict[str, Any], planning: Any = PLANNING) -> list[str]:
    return [goal.words for goal in goals({"worlds": {ALL: found}}, planning) if not goal.met]


def test_what_is_just_reached_is_met() -> None:
    assert missed(world()) == []


def test_what_is_just_missed_is_told() -> None:
    assert missed(world(**{"other rows": ["top 3"]})) == ["queries of which a plan gave other rows"]
    assert len(missed(world(spearman={"bytes": 0.899}))) == 1
    assert len(missed(world(spearman={"bytes": None}))) == 1
    assert len(missed(world(regret={"chosen": {"median": 1.01, "worst": 1.51}}))) == 2
    assert len(missed(world(**{"over the better end": 1.06}))) == 1
    slow = {"building": {"p95 ms": 50.1}, "ten relations": {"p95 ms": 1_001.0}}
    assert len(missed(world(), slow)) == 2


def test_a_short_run_must_give_equal_rows() -> None:
    always = [goal.words for goal in goals({"worlds": {ALL: world()}}, PLANNING) if goal.always]
    assert always == ["queries of which a plan gave other rows"]
