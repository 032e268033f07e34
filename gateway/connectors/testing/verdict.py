"""Verdicts of checks: a connector does not conform, or the check cannot decide."""

from collections.abc import Awaitable, Callable

from gateway.connectors.testing.observed_run import Trial

Check = Callable[[Trial], Awaitable[None]]


class NotApplicableError(Exception):
    """The peer, or its protocol, cannot do what a check needs."""


def demand(holds: bool, complaint: str) -> None:
    """Refuse a connector.

    Raises:
        AssertionError: It does not hold.
    """
    if not holds:
        raise AssertionError(complaint)
