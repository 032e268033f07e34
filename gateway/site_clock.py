"""The time a site lives in: the wall's, or that of a recording, which may pass faster."""

from gateway.settings import ClockSettings
from host.clocks import Clock, SteadyClock, monotonic_clock, wall_clock


def clock_from(settings: ClockSettings, wall: Clock = wall_clock) -> Clock:
    """Return the clock that settings describe.

    Examples:
        >>> replay = clock_from(ClockSettings(600.0, origin_wall=0, origin=1_000), lambda: 2)
        >>> replay() >= 2_200
        True
    """
    steady = SteadyClock(wall, monotonic_clock)
    if settings.origin is None or settings.origin_wall is None:
        return steady
    origin, start, speed = settings.origin, settings.origin_wall, settings.speed

    def replay_clock() -> int:
        return origin + int((steady() - start) * speed)

    return replay_clock
