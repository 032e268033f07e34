"""Waits of who guesses passwords."""

import pytest

from federated_optimizer.coordinator.contract.people_model import TooManyAttemptsError
from federated_optimizer.coordinator.people import sign_in_attempts
from federated_optimizer.coordinator.people.sign_in_attempts import SignInAttempts
from tests.settable_clock import SettableClock


def guessed(attempts: SignInAttempts, clock: SettableClock, seconds: float, addresses: int) -> int:
    """Return how many guesses of one password are looked at in so much time."""
    end, looked_at, number = clock.now + seconds, 0, 0
    while clock.now < end:
        number += 1
        try:
            attempts.begin("ann", f"198.51.100.{number % addresses}")
            looked_at += 1
        except TooManyAttemptsError:
            clock.now += 0.25
    return looked_at


def test_guesses_from_one_address_become_rare() -> None:
    clock = SettableClock()
    assert guessed(SignInAttempts(clock), clock, 3_600, 1) < 30


def test_guesses_from_many_addresses_become_rare_too() -> None:
    clock = SettableClock()
    assert guessed(SignInAttempts(clock), clock, 3_600, 250) < 50 + 3_600 / 20 + 10


@pytest.mark.parametrize("address", ["198.51.100.1", "2001:db8::{:x}"], ids=["IPv4", "IPv6"])
def test_one_address_may_not_try_many_accounts(address: str) -> None:
    attempts = SignInAttempts(SettableClock())
    for number in range(30):
        attempts.begin(f"account-{number}", address.format(number))
    with pytest.raises(TooManyAttemptsError):
        attempts.begin("another", address.format(99))


def test_attempts_at_the_same_time_count_before_they_have_failed() -> None:
    attempts = SignInAttempts(SettableClock())
    for _ in range(5):
        attempts.begin("ann", "198.51.100.1")
    with pytest.raises(TooManyAttemptsError):
        attempts.begin("ann", "198.51.100.1")


def test_who_signs_in_often_never_waits() -> None:
    attempts = SignInAttempts(SettableClock())
    for _ in range(200):
        attempts.begin("ann", "198.51.100.1")
        attempts.succeeded("ann", "198.51.100.1")


def test_failures_are_forgotten_after_an_hour() -> None:
    clock = SettableClock()
    attempts = SignInAttempts(clock)
    for _ in range(5):
        attempts.begin("ann", "198.51.100.1")
    clock.now += sign_in_attempts.FORGOTTEN_SECONDS + 301
    for _ in range(4):
        attempts.begin("ann", "198.51.100.1")


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_attempts, "MAX_ENTRIES", 100)
    attempts = SignInAttempts(SettableClock())
    for number in range(1_000):
        attempts.begin(f"account-{number}", f"10.0.{number // 250}.{number % 250}")
        attempts.succeeded(f"account-{number}", f"10.0.{number // 250}.{number % 250}")
    assert len(attempts._failures) <= 100
    assert len(attempts._known) <= 100
