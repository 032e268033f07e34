"""Figures of the optimizer's gate."""

import pytest

from benchmarks._optimizer.forced_plans import Measured, Outcome
from benchmarks._optimizer.regrets import figures, spearman


def ran(number: int, estimated: float, measured: float) -> Measured:
    return Measured(number, f"plan {number}", estimated, measured, 0.0, {})


def test_regret_is_what_the_choice_cost_over_the_best() -> None:
    plans = (ran(1, 9.0, 99.0), ran(2, 5.0, 9.0), ran(3, 7.0, 199.0))
    found = figures([Outcome("q", 1, 2, 3, plans, right=True)])
    assert found["regret"] == {
        "chosen": {"median": 10.0, "worst": 10.0},
        "former rule": {"median": 1.0, "worst": 1.0},
        "push everything": {"median": 10.0, "worst": 10.0},
        "ship everything": {"median": 20.0, "worst": 20.0},
    }
    assert (found["spearman"], found["same_rows"]) == (0.5, True)


def test_other_rows_of_one_plan_are_told() -> None:
    outcomes = [
        Outcome(name, 1, 1, 1, (ran(1, 1.0, 1.0), ran(2, 2.0, 2.0)), right=name == "a")
        for name in "ab"
    ]
    assert figures(outcomes)["same_rows"] is False


def test_equal_values_share_a_rank() -> None:
    assert spearman([1.0, 1.0, 2.0], [3.0, 3.0, 4.0]) == pytest.approx(1.0)
    assert spearman([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
