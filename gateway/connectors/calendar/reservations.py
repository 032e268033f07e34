"""From a calendar's text to the reservations of a stretch of time.

Recurrence rules, exceptions and time zones are the business of `icalendar` and
`recurring_ical_events`. An event reserves the room its LOCATION names, unless it is cancelled or
transparent (shown as free).
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events

from streamsql.data.types import timestamp_of
from streamsql.errors import DeploymentError

MAX_TITLE = 200
MAX_RESERVATIONS = 20_000
MAX_COMPLAINTS = 5
TOO_OFTEN = ("SECONDLY", "MINUTELY")
"""Repetitions that no room reservation has, and that take for ever to count from a far start."""

_MARGIN = timedelta(days=1)  # days and floating times begin and end by another zone than UTC


@dataclass(frozen=True, slots=True)
class Reservation:
    """A room is taken from `starts` until before `ends` (microseconds since 1970 UTC)."""

    room: str
    title: str
    starts: int
    ends: int


@dataclass(frozen=True, slots=True)
class Agenda:
    """The reservations that touch a stretch of time.

    Attributes:
        begins: Of the stretch, microseconds.
        ends: Of the stretch, microseconds.
        complaints: What in the calendar could not be used, one sentence each.
    """

    begins: int
    ends: int
    reservations: tuple[Reservation, ...]
    complaints: tuple[str, ...] = ()

    def covers(self, now: int) -> bool:
        """Whether it can tell what holds at a time."""
        return self.begins <= now < self.ends

    def at(self, now: int) -> list[Reservation]:
        """Return the reservations that hold at a time."""
        return [r for r in self.reservations if r.starts <= now < r.ends]


def parse(content: bytes, name: str) -> icalendar.Calendar:
    """Parse a calendar.

    Raises:
        DeploymentError: It is none.
    """
    try:
        calendar = icalendar.Calendar.from_ical(content)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DeploymentError(
            f"{name} is not an iCalendar file: {error!s:.300}",
            hint="it must begin with BEGIN:VCALENDAR and end with END:VCALENDAR",
        ) from error
    if not isinstance(calendar, icalendar.Calendar):
        raise DeploymentError(
            f"{name} is not an iCalendar file: it holds no VCALENDAR",
            hint="it must begin with BEGIN:VCALENDAR and end with END:VCALENDAR",
        )
    return calendar


def agenda_of(
    calendar: icalendar.Calendar, begins: int, length: timedelta, zone: str = ""
) -> Agenda:
    """Return the reservations of a stretch of time.

    Args:
        calendar: As parsed. An event that cannot be understood is left out, with a complaint.
        begins: Start of the stretch in microseconds.
        length: Of the stretch.
        zone: Time zone of whole days and of times without one; empty: the calendar's
            X-WR-TIMEZONE, else UTC.

    Raises:
        DeploymentError: There is no such time zone.
    """
    complaints = list(_leave_out_endless(calendar))
    local = _zone(zone) if zone else _own_zone(calendar)
    start = datetime.fromtimestamp(begins / 1_000_000, UTC)
    stop = start + length
    found: dict[Reservation, None] = {}
    for event in _events(calendar, start - _MARGIN, stop + _MARGIN, complaints):
        try:
            reservation = _reservation(event, local)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            complaints.append(f"event {_title(event)!r}: {error!s:.300}")
            continue
        if reservation is None or reservation.ends <= begins:
            continue
        if reservation.starts >= begins + length // timedelta(microseconds=1):
            continue
        if len(found) >= MAX_RESERVATIONS:
            complaints.append(f"more than {MAX_RESERVATIONS} reservations; the rest is ignored")
            break
        found[reservation] = None
    return Agenda(
        begins, timestamp_of(stop), tuple(found), tuple(dict.fromkeys(complaints))[:MAX_COMPLAINTS]
    )


def _events(
    calendar: icalendar.Calendar, start: datetime, stop: datetime, complaints: list[str]
) -> list[icalendar.Event]:
    """Return the occurrences between two times, without the series that are broken."""
    with contextlib.suppress(Exception):  # found again, and told, series by series
        return list(recurring_ical_events.of(calendar).between(start, stop))
    events: list[icalendar.Event] = []
    for series in _series(calendar):
        try:
            events += recurring_ical_events.of(series).between(start, stop)
        except Exception as error:  # noqa: BLE001  (whatever the libraries say of bad input)
            name = next(map(_title, series.walk("VEVENT")))
            complaints.append(f"event {name!r} is ignored: {type(error).__name__}: {error!s:.300}")
    return events


def _series(calendar: icalendar.Calendar) -> Iterator[icalendar.Calendar]:
    """Yield a calendar for every event with its changed occurrences."""
    by_uid: dict[str, list[icalendar.cal.Component]] = {}
    for number, event in enumerate(calendar.walk("VEVENT")):
        by_uid.setdefault(_text(event, "UID") or f"#{number}", []).append(event)
    for events in by_uid.values():
        series = icalendar.Calendar()
        series.update(calendar)
        series.subcomponents = [*calendar.walk("VTIMEZONE"), *events]
        yield series


def _leave_out_endless(calendar: icalendar.Calendar) -> Iterator[str]:
    """Remove the rules that repeat too often, or without going on; yield complaints."""
    for event in calendar.walk("VEVENT"):
        for name in ("RRULE", "EXRULE"):
            rules = event.get(name, [])
            reasons = map(_endless, rules if isinstance(rules, list) else [rules])
            reason = next(filter(None, reasons), "")
            if reason:
                yield f"event {_title(event)!r} repeats {reason}; its {name} is left out"
                del event[name]


def _endless(rule: object) -> str:
    """Return how a rule repeats that nobody can count to the end, or "" for others."""
    if not isinstance(rule, Mapping):
        return ""  # a broken one: its series is left out later
    for frequency in rule.get("FREQ", []):
        if str(frequency).upper() in TOO_OFTEN:
            return str(frequency).lower()
    for interval in rule.get("INTERVAL", []):
        if not isinstance(interval, int) or interval < 1:
            return f"every {interval!s:.20} times"
    return ""


def _reservation(event: icalendar.Event, zone: tzinfo) -> Reservation | None:
    """Return what an occurrence reserves, or None when it reserves nothing."""
    room = _text(event, "LOCATION").strip()
    if not room or _text(event, "STATUS").upper() == "CANCELLED":
        return None
    if _text(event, "TRANSP").upper() == "TRANSPARENT":
        return None
    starts, ends = _moment(event.start, zone), _moment(event.end, zone)
    return Reservation(room, _title(event), timestamp_of(starts), timestamp_of(ends))


def _title(event: icalendar.cal.Component) -> str:
    return _text(event, "SUMMARY")[:MAX_TITLE] or "reserved"


def _text(event: icalendar.cal.Component, name: str) -> str:
    value = event.get(name, "")
    if isinstance(value, list):
        value = value[0] if value else ""
    return str(value)


def _moment(value: datetime | date, zone: tzinfo) -> datetime:
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return value if value.tzinfo is not None else value.replace(tzinfo=zone)


def _own_zone(calendar: icalendar.Calendar) -> tzinfo:
    try:
        return _zone(str(calendar.get("X-WR-TIMEZONE", "")) or "UTC")
    except DeploymentError as error:
        message = f"the calendar's X-WR-TIMEZONE: {error.message}"
        raise DeploymentError(
            message, hint="correct it, or set time_zone of the endpoint"
        ) from error


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise DeploymentError(
            f"there is no time zone {name!r:.60}", hint="write for example Europe/Zurich"
        ) from error
