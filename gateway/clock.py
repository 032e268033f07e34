"""The clocks of a site: the wall, or a recording's time passing faster."""

import time
from collections.abc import Callable

from gateway.settings import ClockSettings

Clock = Callable[[], int]
"""Returns microseconds since 1970 UTC."""


def wall_clock() -> int:
    """Return the machine's time."""
    return time.time_ns() // 1000


def clock_from(settings: ClockSettings, wall: Clock = wall_clock) -> Clock:
    """Return the clock that settings describe.

    Examples:
        >>> replay = clock_from(ClockSettings(600.0, origin_wall=0, origin=1_000), lambda: 2)
        >>> replay()
        2200
    """
    if settings.origin is None or settings.origin_wall is None:
        return wall
    origin, start, speed = settings.origin, settings.origin_wall, settings.speed

    def replay_clock() -> int:
        return origin + int((wall() - start) * speed)

    return replay_clock
