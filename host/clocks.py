"""The clocks of services: the wall's, one for waits, one for engines."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns microseconds."""


def wall_clock() -> int:
    """Return microseconds since 1970 UTC. An operator may set this clock, also back."""
    return time.time_ns() // 1_000


def monotonic_clock() -> int:
    """Return microseconds since some moment. Nobody can set this clock: waits go by it."""
    return time.monotonic_ns() // 1_000


def time_left(seconds: float) -> Callable[[], bool]:
    """Return what tells whether this thread has computed for less than some time from now on."""
    until = time.thread_time() + seconds
    return lambda: time.thread_time() < until


class SteadyClock:
    """The wall's time for an engine, whose time cannot be taken back.

    A wall clock that is set forward is followed at once. One that is set back is waited for at half
    speed: an engine whose time stood still would take every new reading for one that comes too
    late, for as long as the clock was set back.

    Args:
        wall: Microseconds since 1970 UTC.
        elapsed: As `monotonic_clock`.
    """

    def __init__(self, wall: Clock, elapsed: Clock) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._now, self._at = wall(), elapsed()

    def __call__(self) -> int:
        """Return the time."""
        at = self._elapsed()
        self._now = max(self._wall(), self._now + (at - self._at) // 2)
        self._at = at
        return self._now
