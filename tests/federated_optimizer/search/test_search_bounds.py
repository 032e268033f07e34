"""Budget of a search without heuristics: counted in ways, and told when it is spent."""

import pytest

from federated_optimizer.alternatives.heuristics import ALL, LIFTED, NONE, Heuristic
from federated_optimizer.search.search_bounds import MAX_WAYS, Budget

LEFT_OUT = {Heuristic.ONE_JOIN: ["a join at its gateways", "another one"]}


def test_heuristics_hold_again_once_a_search_has_followed_too_many_ways() -> None:
    budget = Budget(NONE)
    budget.spend(MAX_WAYS - 1)
    assert (budget.kept, budget.is_spent) == (NONE, False)
    budget.spend()
    assert (budget.kept, budget.is_spent) == (ALL, True)


@pytest.mark.parametrize("ways", [0, MAX_WAYS])
def test_a_search_that_keeps_all_heuristics_does_not_spend_it(ways: int) -> None:
    budget = Budget(ALL)
    budget.spend(ways)
    assert (budget.kept, budget.is_spent) == (ALL, False)
    (said,) = budget.words(LEFT_OUT)
    assert said == f"a join at its gateways or another one: one join a fragment ({LIFTED})"


def test_a_spent_budget_is_told_before_what_is_left_out_because_of_it() -> None:
    budget = Budget(NONE)
    assert budget.words({}) == ()
    budget.spend(MAX_WAYS)
    again, left_out = budget.words(LEFT_OUT)
    assert again.startswith("more plans without heuristics: these hold again for the rest")
    assert f"{MAX_WAYS:,} ways" in again
    assert left_out.endswith(": one join a fragment (heuristics hold again)")
