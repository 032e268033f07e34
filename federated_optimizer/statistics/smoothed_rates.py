"""Rates of counters that only grow, smoothed over the last minutes."""

from dataclasses import dataclass
from math import exp

from streamsql.data.types import MICROSECONDS

TIME_CONSTANT = 300.0
"""Seconds after which a change of the rate has come through by two thirds."""

WIDENING, NARROWING = 30.0, 1_200.0
"""Likewise for the ends of the range: a burst of a moment moves them little, and what has been for
a while is remembered for long."""


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

    def holds_until(self, later: "Reading", microseconds: int) -> bool:
        """Whether a later reading of the same incarnation is too soon to say more."""
        same = self.started == later.started and self.count <= later.count
        return same and 0 <= later.at - self.at < microseconds


@dataclass(frozen=True, slots=True)
class SmoothedRate:
    """A rate with the range in which it has been lately.

    A moment counts by exp(-age / `TIME_CONSTANT`), so it does not matter how often a counter is
    read: a constant rate gives the same result however its time is cut. In the beginning it is the
    mean since the first reading.

    Attributes:
        value: Per second.
        low: Approaches a lower rate soon and a higher one late.
        high: The other way round.
        mass: The share of all the past, weighted so, that was observed: from 0 to 1.
    """

    value: float
    low: float
    high: float
    mass: float

    def then(self, rate: float, seconds: float) -> "SmoothedRate":
        """Return it after a stretch of time with a rate."""
        mass = self.mass * exp(-seconds / TIME_CONSTANT) + share_of(seconds)
        value = self.value + share_of(seconds) / mass * (rate - self.value)

        def nearer(bound: float, *, outside: bool) -> float:
            constant = WIDENING if outside else NARROWING
            return bound + (1.0 - exp(-seconds / constant)) * (rate - bound)

        low = nearer(self.low, outside=rate < self.low)
        high = nearer(self.high, outside=rate > self.high)
        return SmoothedRate(value, min(low, value), max(high, value), mass)


def share_of(seconds: float) -> float:
    """Return the share of all the past that the last seconds are, each moment weighted."""
    return 1.0 - exp(-seconds / TIME_CONSTANT)


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
    """Return a rate after another stretch of time."""
    first = SmoothedRate(rate, rate, rate, share_of(seconds))
    return first if known is None else known.then(rate, seconds)
