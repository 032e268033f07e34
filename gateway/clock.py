"""The clocks of a site: the wall, or a recording's time passing faster. Neither goes backwards."""

import time
from collections.abc import Callable

from gateway.settings import ClockSettings

Clock = Callable[[], int]
"""Returns microseconds since 1970 UTC."""


def wall_clock() -> int:
    """Return the machine's time."""
    return time.time_ns() // 1000


class SteadyClock:
    """The wall's time for an engine, whose time cannot be taken back.

    A wall clock that is set forward is followed at once. One that is set back is waited for at half
    speed: an engine whose time stood still would take every new reading for one that comes too
    late, for as long as the clock was set back.

    Args:
        wall: Microseconds since 1970 UTC.
        elapsed: Microseconds of a clock that nobody sets.
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


def elapsed() -> int:
    """Return microseconds of a clock that nobody sets."""
    return time.monotonic_ns() // 1000


def clock_from(settings: ClockSettings, wall: Clock = wall_clock) -> Clock:
    """Return the clock that settings describe.

    Examples:
        >>> replay = clock_from(ClockSettings(600.0, origin_wall=0, origin=1_000), lambda: 2)
        >>> replay() >= 2_200
        True
    """
    steady = SteadyClock(wall, elapsed)
    if settings.origin is None or settings.origin_wall is None:
        return steady
    origin, start, speed = settings.origin, settings.origin_wall, settings.speed

    def replay_clock() -> int:
        return origin + int((steady() - start) * speed)

    return replay_clock
