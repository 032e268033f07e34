"""Requests of webhooks: how long a receiver may make us wait."""

from federated_optimizer.coordinator.sinks.webhook_requests import LONGEST_ASKED, seconds_asked


def test_the_longest_time_that_may_be_asked_for() -> None:
    assert seconds_asked("99999999999999999", 0) == LONGEST_ASKED
    assert seconds_asked("Thu, 01 Jan 2099 00:00:00 GMT", 0) == LONGEST_ASKED
    assert seconds_asked("Thu, 01 Jan 1970 00:00:00 -0000", 5_000_000) == 0
    assert seconds_asked("-5", 0) is None
