"""Figures of the optimizer's gate."""

import pytest

from benchmarks._optimizer.forced_plans import METRICS, Measured, Outcome, Used
from benchmarks._optimizer.regrets import ALL, figures, spearman
from federated_optimizer.costs.cost import Cost
from streamsql.algebra.metrics import Term


def ran(number: int, estimated: float, measured: float, energy: float = 0.0) -> Measured:
    used = Used(measured, measured, energy or measured, 0.0)
    return Measured(number, f"plan {number}", Cost(estimated), used, {})


def by_all(number: int) -> dict[Term, int]:
    return dict.fromkeys(METRICS, number)


def outcome(*plans: Measured, chosen: int = 1, right: bool = True, world: str = "w") -> Outcome:
    return Outcome("q", world, by_all(chosen), len(plans), len(plans), plans, right)


def test_regret_is_what_the_choice_cost_over_the_best() -> None:
    found = figures([outcome(ran(1, 9.0, 99.0), ran(2, 5.0, 9.0), ran(3, 7.0, 199.0))])
    world = found["worlds"]["w"]
    assert world["regret"] == {
        "chosen": {"median": 10.0, "worst": 10.0},
        "push everything": {"median": 10.0, "worst": 10.0},
        "ship everything": {"median": 20.0, "worst": 20.0},
    }
    assert world["spearman"]["bytes"] == 0.5
    assert world["spearman"]["latency"] is None


def test_each_metric_has_a_choice_of_its_own() -> None:
    plans = (ran(1, 1.0, 9.0, energy=99.0), ran(2, 2.0, 19.0, energy=19.0))
    found = Outcome("q", "w", by_all(1), 2, 2, plans, right=True)
    world = figures([found])["worlds"]["w"]
    assert world["regret"]["chosen"]["worst"] == 1.0
    assert world["regret by metric"]["energy"]["worst"] == 5.0
    found = Outcome("q", "w", {**by_all(1), Term.ENERGY: 2}, 2, 2, plans, right=True)
    assert figures([found])["worlds"]["w"]["regret by metric"]["energy"]["worst"] == 1.0


def test_the_choice_is_held_against_the_better_end() -> None:
    plans = (ran(1, 1.0, 99.0), ran(2, 1.0, 199.0), ran(3, 1.0, 49.0))
    assert outcome(*plans, chosen=2).above == 4.0
    assert outcome(*plans, chosen=3).above == 1.0
    # The best plan may be neither of them.
    assert outcome(ran(1, 1.0, 99.0), ran(2, 1.0, 9.0), ran(3, 1.0, 49.0), chosen=2).above == 0.2


def test_each_world_has_figures_of_its_own() -> None:
    good = outcome(ran(1, 1.0, 1.0), ran(2, 2.0, 2.0), world="a")
    bad = outcome(ran(1, 1.0, 9.0), ran(2, 2.0, 0.0), world="b", right=False)
    worlds = figures([good, bad])["worlds"]
    assert [worlds[name]["spearman"]["bytes"] for name in "ab"] == [1.0, -1.0]
    assert [worlds[name]["other rows"] for name in ("a", "b", ALL)] == [[], ["q"], ["q"]]
    assert worlds[ALL]["plans"] == 4


def test_equal_values_share_a_rank() -> None:
    assert spearman([1.0, 1.0, 2.0], [3.0, 3.0, 4.0]) == pytest.approx(1.0)
    assert spearman([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
