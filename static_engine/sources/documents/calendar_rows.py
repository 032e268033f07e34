"""iCalendar (RFC 5545): one row per event, or per occurrence within an interval.

Columns: `uid`, `summary`, `description`, `location`, `organizer`, `categories`, `status`, `starts`
and `ends` (not included), `all_day`, `transparent` (shown as free), `rrule` (the rule of a series)
and `recurrence_id` (the start that an occurrence had before it was moved). Times without a zone
are of the calendar's zone (X-WR-TIMEZONE), else of UTC; so are days.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import icalendar
import pyarrow as pa
import recurring_ical_events

from static_engine.sources.documents.offered_rows import batches_of, content_of, where_of
from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import timestamp_of

MAX_BYTES = 16 << 20
MAX_EVENTS = 100_000
MAX_SPAN = timedelta(days=3_660)
_TOO_OFTEN = ("SECONDLY", "MINUTELY")
"""Repetitions that take for ever to count from a far start."""
COLUMNS = (
    "uid", "summary", "description", "location", "organizer", "categories", "status", "starts",
    "ends", "all_day", "transparent", "rrule", "recurrence_id",
)  # fmt: skip


def read_calendar(
    definition: SourceDefinition,
    files: tuple[Path, ...],
    interval: tuple[datetime, datetime] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the events of calendars in the declared types.

    Args:
        definition: The table.
        files: The calendars.
        interval: Of the occurrences; None: a series is one row, with its rule.

    Raises:
        TableError: A file is no calendar or too large, or an event cannot be understood.
    """
    for file in files:
        where = where_of(definition, file.name)
        calendar = _parsed(content_of(definition, file, MAX_BYTES), where)
        zone = _zone(calendar, where)
        rows = []
        for number, event in enumerate(_events(calendar, interval, where), 1):
            if number > MAX_EVENTS:
                raise TableError(
                    f"{where} has more than {MAX_EVENTS} events",
                    hint="choose a shorter interval with the options since and until",
                )
            try:
                rows.append(_row(event, zone))
            except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
                title = event.get("SUMMARY", event.get("UID", ""))
                raise TableError(f"{where}: event {str(title)!r:.80}: {error!s:.200}") from None
        yield from batches_of(definition, rows, COLUMNS, file.name)


def _parsed(content: bytes, where: str) -> icalendar.Calendar:
    try:
        calendar = icalendar.Calendar.from_ical(content)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise TableError(
            f"{where} is not an iCalendar file: {error!s:.300}",
            hint="it must begin with BEGIN:VCALENDAR and end with END:VCALENDAR",
        ) from None
    if not isinstance(calendar, icalendar.Calendar):
        raise TableError(f"{where} is not an iCalendar file: it holds no VCALENDAR")
    return calendar


def _zone(calendar: icalendar.Calendar, where: str) -> tzinfo:
    name = str(calendar.get("X-WR-TIMEZONE", "")).strip()
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise TableError(f"{where}: there is no time zone {name!r:.60} (X-WR-TIMEZONE)") from None


def _events(
    calendar: icalendar.Calendar, interval: tuple[datetime, datetime] | None, where: str
) -> list[icalendar.Event]:
    if interval is None:
        return [one for one in calendar.walk("VEVENT") if isinstance(one, icalendar.Event)]
    for event in calendar.walk("VEVENT"):
        _check_rules(event, where)
    try:
        return list(recurring_ical_events.of(calendar).between(*interval))
    except Exception as error:  # noqa: BLE001 - whatever the libraries say of bad input
        what = f"{type(error).__name__}: {error!s:.300}"
        raise TableError(f"{where}: a series of events cannot be unfolded: {what}") from None


def _check_rules(event: icalendar.Component, where: str) -> None:
    """Check that an event does not repeat too often.

    Raises:
        TableError: It does, or its rule cannot be understood.
    """
    title = str(event.get("SUMMARY", ""))
    try:
        given = event.get("RRULE", [])
        rules = given if isinstance(given, list) else [given]
        often = any(
            str(each).upper() in _TOO_OFTEN for rule in rules for each in rule.get("FREQ", [])
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TableError(f"{where}: event {title!r:.80}: {error!s:.200}") from None
    if often:
        raise TableError(
            f"{where}: event {title!r:.80} repeats every minute or second, which is too often for "
            "a table of occurrences"
        )


def _row(event: icalendar.Event, zone: tzinfo) -> dict[str, object]:
    starts = event.decoded("DTSTART")
    all_day = not isinstance(starts, datetime)
    rule = event.get("RRULE")
    moved = event.get("RECURRENCE-ID")
    return {
        "uid": _text(event, "UID"),
        "summary": _text(event, "SUMMARY"),
        "description": _text(event, "DESCRIPTION"),
        "location": _text(event, "LOCATION"),
        "organizer": _text(event, "ORGANIZER"),
        "categories": _categories(event),
        "status": _text(event, "STATUS"),
        "starts": _micros(starts, zone),
        "ends": _micros(_end(event, starts), zone),
        "all_day": all_day,
        "transparent": str(event.get("TRANSP", "OPAQUE")).upper() == "TRANSPARENT",
        "rrule": rule.to_ical().decode() if hasattr(rule, "to_ical") else None,
        "recurrence_id": _micros(moved.dt, zone) if moved is not None else None,
    }


def _end(event: icalendar.Event, starts: date) -> date:
    if "DTEND" in event:
        ends = event.decoded("DTEND")
        return ends if isinstance(ends, date) else starts
    if "DURATION" in event:
        length = event.decoded("DURATION")
        return starts + length if isinstance(length, timedelta) else starts
    return starts if isinstance(starts, datetime) else starts + timedelta(days=1)


def _micros(moment: date, zone: tzinfo) -> int:
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    return timestamp_of(moment if moment.tzinfo else moment.replace(tzinfo=zone))


def _text(event: icalendar.Event, name: str) -> str | None:
    value = event.get(name)
    if isinstance(value, list):
        value = value[0]
    return None if value is None else str(value)


def _categories(event: icalendar.Event) -> str | None:
    given = event.get("CATEGORIES")
    if given is None:
        return None
    lists = given if isinstance(given, list) else [given]
    return ",".join(str(one) for each in lists for one in getattr(each, "cats", [each]))
