"""Offset of this machine's clock from the coordinator's, found by asking it for the time.

Cristian's method (Probabilistic clock synchronization, Distributed Computing 3, 1989) in the form
of NTP (RFC 5905 section 8): of the asker's times t0 and t3 and the other's t1 and t2 between them,
the offset is ((t1 - t0) + (t2 - t3)) / 2, off by half of the time on the way at most, however
unequal the two ways are.
"""

from collections import deque
from dataclasses import dataclass

SAMPLES = 8
DRIFT = 50e-6
"""Microseconds by which an offset may change in a microsecond: more than cheap quartz drifts."""
SMOOTHING = 0.25
"""Share of the way that the shown offset goes to the best sample with each answer."""
MOST_DELAY = 10_000_000
"""Microseconds after which an answer says nothing any more."""


@dataclass(frozen=True, slots=True)
class ClockSample:
    """One answer, in microseconds.

    Attributes:
        offset: The other clock less this one.
        delay: Time on the way, there and back; the offset is off by half of it at most.
        at: When it was taken, by a clock that nobody sets.
    """

    offset: float
    delay: float
    at: int

    def bound(self, now: int) -> float:
        """Return how far the offset can be off by now."""
        return self.delay / 2 + DRIFT * (now - self.at)


def sample_of(asked: int, received: int, sent: int, waited: int, at: int) -> ClockSample | None:
    """Return what an answer says, or None if it came too late or contradicts itself.

    Args:
        asked: t0, by the clock here.
        received: t1, by the other clock.
        sent: t2, by the other clock.
        waited: t3 - t0, by a clock that nobody sets: the one here may be set meanwhile.
        at: When the answer came, by that clock.

    Examples:
        >>> sample_of(asked=100, received=1_110, sent=1_112, waited=22, at=0)
        ClockSample(offset=1000.0, delay=20, at=0)
    """
    delay = waited - (sent - received)
    if sent < received or not 0 <= delay <= MOST_DELAY:
        return None
    return ClockSample((received - asked + sent - asked - waited) / 2, delay, at)


class ClockOffset:
    """The offset as of the last answers: the one least delayed counts, and is approached smoothly.

    An answer that cannot be true together with what is shown means that a clock was set: what was
    known is forgotten. All times are microseconds.

    State: the last eight answers.

    Attributes:
        offset: The other clock less this one, or None before the first answer.
        error: How far that is off at most, as of the last answer.
        answers: How many answers there were.
        resets: How often a clock was set.
    """

    def __init__(self) -> None:
        self.offset: float | None = None
        self.error = 0.0
        self.answers = 0
        self.resets = 0
        self._samples: deque[ClockSample] = deque(maxlen=SAMPLES)

    @property
    def offset_ms(self) -> float | None:
        """The offset in milliseconds, or None."""
        return None if self.offset is None else self.offset / 1_000

    @property
    def error_ms(self) -> float:
        """The bound of its error in milliseconds."""
        return self.error / 1_000

    def take(self, sample: ClockSample) -> None:
        """Take an answer in."""
        self.answers += 1
        if any(
            abs(sample.offset - known.offset) > sample.bound(sample.at) + known.bound(sample.at)
            for known in self._samples
        ):
            self._samples.clear()
            self.offset = None
            self.resets += 1
        self._samples.append(sample)
        best = min(self._samples, key=lambda known: known.bound(sample.at))
        before = best.offset if self.offset is None else self.offset
        self.offset = before + SMOOTHING * (best.offset - before)
        self.error = abs(self.offset - best.offset) + best.bound(sample.at)
