"""Rates of counters that only grow, smoothed over the last minutes."""

from dataclasses import dataclass
from math import exp

from streamsql.data.types import MICROSECONDS

TIME_CONSTANT = 300.0
"""Seconds after which a change of the rate has come through by two thirds."""

RANGE_TIME_CONSTANT = 1_200.0
"""Likewise for the range: it remembers longer."""

SURE_SECONDS = 60.0
"""A rate that was observed for so long is as sure as not."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A counter as it was read.

    Attributes:
        count: Since `started`.
        at: When it was read, in microseconds.
        started: When it was 0; another value is another incarnation of the counter.
    """

    count: float
    at: int
    started: int


@dataclass(frozen=True, slots=True)
class SmoothedRate:
    """A rate with the range in which it has been lately.

    The rate of a stretch of time counts the more the longer the stretch is, so that it does not
    matter how often the counter is read: a constant rate gives the same result however it is cut.

    Attributes:
        value: Per second.
        low: The least rate of a stretch; it approaches the value when there are no more such.
        high: The greatest; likewise.
    """

    value: float
    low: float
    high: float

    def then(self, rate: float, seconds: float) -> "SmoothedRate":
        """Return it after a stretch of time with a rate."""

        def nearer(known: float, constant: float) -> float:
            return known + (1.0 - exp(-seconds / constant)) * (rate - known)

        value = nearer(self.value, TIME_CONSTANT)
        low, high = (nearer(bound, RANGE_TIME_CONSTANT) for bound in (self.low, self.high))
        return SmoothedRate(value, min(rate, low, value), max(rate, high, value))


def rate_between(before: Reading | None, now: Reading) -> tuple[float, float] | None:
    """Return the rate since a counter was read last, and for how many seconds that holds.

    None where nothing can be said: no time has passed, the counter has less than before, or it does
    not say since when it counts. What it had when it was read for the first time, or first in a new
    incarnation, is spread over its life.
    """
    count, since = now.count, now.started
    if before is not None and before.started == now.started:
        count, since = now.count - before.count, before.at
    elif not now.started:
        return None
    seconds = (now.at - since) / MICROSECONDS
    return (count / seconds, seconds) if seconds > 0 and count >= 0 else None


def smoothed(known: SmoothedRate | None, rate: float, seconds: float) -> SmoothedRate:
    """Return a rate after another stretch of time; the first one is taken as it is."""
    return SmoothedRate(rate, rate, rate) if known is None else known.then(rate, seconds)
