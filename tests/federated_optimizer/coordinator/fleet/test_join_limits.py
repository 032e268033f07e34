"""Attempts to join: bounded for an address and for all."""

from federated_optimizer.coordinator.fleet.join_limits import (
    PER_ADDRESS,
    TOGETHER,
    WINDOW_SECONDS,
    JoinLimits,
)


def test_an_address_has_so_many_attempts_a_minute_and_others_have_theirs() -> None:
    limits = JoinLimits()
    assert all(limits.admit("a", 0.0) for _ in range(PER_ADDRESS))
    assert not limits.admit("a", 1.0)
    assert limits.admit("b", 1.0)
    assert limits.admit("a", WINDOW_SECONDS)


def test_all_addresses_together_are_bounded() -> None:
    limits = JoinLimits()
    admitted = sum(limits.admit(f"{number}", 0.0) for number in range(10 * TOGETHER))
    assert admitted == TOGETHER
