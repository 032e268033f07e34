"""Requests that a site does not answer, or whose answers do not help, become rare."""

import pytest

from federated_optimizer.coordinator.queries import paced_requests
from federated_optimizer.coordinator.queries.paced_requests import PacedRequests


@pytest.mark.parametrize("answers", [False, True])
def test_who_is_asked_all_the_time_is_asked_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    clock = [0]
    monkeypatch.setattr(paced_requests, "monotonic_clock", lambda: clock[0])
    requests, asked = PacedRequests(), 0
    for second in range(600):
        clock[0] = second * 1_000_000
        if requests.may_ask("q1", "base"):
            asked += 1
            if answers:
                requests.answered("q1", "base")
    assert 5 < asked <= 16


def test_after_a_long_quiet_time_it_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]
    monkeypatch.setattr(paced_requests, "monotonic_clock", lambda: clock[0])
    requests = PacedRequests()
    for second in (0, 1, 3):
        clock[0] = second * 1_000_000
        assert requests.may_ask("q1", "base")
    requests.answered("q1", "base")
    clock[0] = 11_000_000
    assert requests.may_ask("q1", "base")
    clock[0] = 12_000_000
    assert requests.may_ask("q1", "base")
