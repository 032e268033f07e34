"""Schedules of `REFRESH AT`: times of day in a time zone."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MINUTES_A_DAY = 24 * 60
NEVER = 2**63 - 1
"""A moment that does not come."""
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RefreshSchedule(msgspec.Struct, frozen=True):
    """The query of a view of stored tables, and its times of day.

    Attributes:
        query: The text after AS.
        times: Minutes after midnight, from 0 to 1440: that is midnight at the day's end.
        weights: What work at each of the times costs relative to the others; empty if not said.
    """

    query: str
    times: tuple[int, ...]
    weights: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """The times as they are written, with the weights if there are any.

        Examples:
            >>> RefreshSchedule("SELECT 1", (840, 1440), (0.5, 1.0)).text
            '14:00 (weight 0.5), 24:00 (weight 1)'
        """
        shown = [time_of_day(minute) for minute in self.times]
        if self.weights:
            pairs = zip(shown, self.weights, strict=True)
            shown = [f"{time} (weight {weight:g})" for time, weight in pairs]
        return ", ".join(shown)


def time_of_day(minute: int) -> str:
    """Return minutes after midnight as `HH:MM`."""
    return f"{minute // 60:02}:{minute % 60:02}"


def minute_of_day(text: str) -> int:
    """Return the minutes after midnight that `HH:MM` says.

    Examples:
        >>> minute_of_day("14:05"), minute_of_day("24:00")
        (845, 1440)

    Raises:
        ValueError: It is no time from 00:00 to 24:00.
    """
    hours, colon, minutes = text.strip().partition(":")
    digits = (hours + minutes).isascii() and (hours + minutes).isdigit()
    if colon and digits and 1 <= len(hours) <= 2 and len(minutes) == 2 and int(minutes) < 60:
        minute = int(hours) * 60 + int(minutes)
        if minute <= MINUTES_A_DAY:
            return minute
    raise ValueError(f"{text!r:.40} is not a time of day from 00:00 to 24:00")


def first_repeated(times: Sequence[int]) -> int | None:
    """Return the position of the first time that is another one again; 24:00 is 00:00, too."""
    seen: set[int] = set()
    for position, minute in enumerate(times):
        if minute % MINUTES_A_DAY in seen:
            return position
        seen.add(minute % MINUTES_A_DAY)
    return None


def zone_of(name: str) -> "ZoneInfo":
    """Return a time zone by its name in the IANA database, such as `Europe/Berlin`.

    Raises:
        ValueError: There is none of that name.
    """
    # Gateways know schedules, and compute none: the database of zones stays where it is.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r:.60}") from None


def next_refresh(after: int, times: Iterable[int], zone: "ZoneInfo") -> int:
    """Return the first moment later than `after` at which clocks in the zone show one of the times.

    A time that clocks leave out in spring comes as much later as they leave out; of a time that
    they show twice in autumn the first one counts.

    Args:
        after: Microseconds since 1970 UTC.
        times: Minutes after midnight; at least one.
        zone: Where.
    """
    minutes = tuple(times)
    try:
        today = (_EPOCH + timedelta(microseconds=after)).astimezone(zone).date()
        # 24:00 of yesterday is today; in a zone that skips a day two days are not enough.
        moments = [
            _moment(datetime.combine(day, time(), zone) + timedelta(minutes=minute))
            for day in (today + timedelta(days=distance) for distance in (-1, 0, 1, 2))
            for minute in minutes
        ]
    except OverflowError:  # the calendar ends with the year 9999
        return NEVER
    return min(moment for moment in moments if moment > after)


def _moment(local: datetime) -> int:
    return (local.astimezone(UTC) - _EPOCH) // _MICROSECOND
