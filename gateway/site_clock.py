"""The time a site lives in: the wall's, or that of a recording, which may pass faster."""

from gateway.gateway_settings import ClockSettings
from host.clocks import Clock, SteadyClock, monotonic_clock, wall_clock


def site_time(settings: ClockSettings, wall: int) -> int:
    """Return the time of a site when the wall's clock shows a time, both in microseconds."""
    if settings.origin is None or settings.origin_wall is None:
        return wall
    return settings.origin + int((wall - settings.origin_wall) * settings.speed)


def clock_from(settings: ClockSettings, wall: Clock = wall_clock) -> Clock:
    """Return the clock that settings describe.

    Examples:
        >>> replay = clock_from(ClockSettings(600.0, origin_wall=0, origin=1_000), lambda: 2)
        >>> replay() >= 2_200
        True
    """
    steady = SteadyClock(wall, monotonic_clock)
    if settings.origin is None:
        return steady
    return lambda: site_time(settings, steady())
