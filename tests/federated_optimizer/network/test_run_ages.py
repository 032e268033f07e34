"""Runs are as old as the numbers in their names."""

from federated_optimizer.network.run_ages import age_of, is_older


def test_numbers_count_and_not_their_digits() -> None:
    names = [f"q{number}" for number in (10**30, 100, 9, 1, 10, 99)]
    assert sorted(names, key=age_of) == ["q1", "q9", "q10", "q99", "q100", f"q{10**30}"]
    assert is_older("q9", "q10")
    assert not is_older("q10", "q9")
    assert not is_older("q9", "q9")
