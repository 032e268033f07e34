"""Calendars: the reservations that hold now, from an iCalendar file or address (RFC 5545).

Recurrence rules, exceptions and time zones are the business of `icalendar` and
`recurring_ical_events`. An event reserves the room its LOCATION names.
"""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import icalendar
import msgspec
import recurring_ical_events

from gateway.wrappers.wrapper import Reading, WrapperContext
from streamsql.data.types import timestamp_of
from streamsql.errors import DeploymentError

MAX_BYTES = 10_000_000
MAX_TITLE = 200
FETCH_SECONDS = 20.0

Key = tuple[str, int, str]


class CalendarOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the calendar wrapper.

    Attributes:
        location: Path of an .ics file, or an http(s) address.
        period: Seconds between two looks at what holds now.
        refresh: Seconds between two readings of the file or address.
    """

    location: str
    period: float = 1.0
    refresh: float = 60.0


class CalendarWrapper:
    """Emits a row while a reservation holds, and withdraws it when it ends or is cancelled."""

    kind = "calendar"
    streams: tuple[str, ...] = ("roomreservation",)

    async def run(self, context: WrapperContext) -> None:
        """Look every period until cancelled. A calendar that cannot be read keeps its old rows."""
        try:
            options = msgspec.convert(dict(context.options), CalendarOptions)
        except msgspec.ValidationError as error:
            raise DeploymentError(f"options of wrapper calendar: {error}") from error
        loop = asyncio.get_running_loop()
        calendar: icalendar.Calendar | None = None
        holding: dict[Key, Reading] = {}
        due = loop.time()
        while True:
            if loop.time() >= due:
                due = loop.time() + options.refresh
                try:
                    calendar = await asyncio.to_thread(read_calendar, options.location)
                except DeploymentError as error:
                    context.problem(str(error))
            if calendar is not None:
                now = context.clock()
                current = await asyncio.to_thread(reservations, calendar, now)
                context.emit(list(changes(holding, current, now)))
                holding = current
            await asyncio.sleep(options.period)


def read_calendar(location: str) -> icalendar.Calendar:
    """Read and parse a calendar.

    Raises:
        DeploymentError: It cannot be read or is not a calendar.
    """
    content = _fetch(location) if _is_address(location) else _read(Path(location))
    try:
        return icalendar.Calendar.from_ical(content)
    except (ValueError, IndexError, KeyError) as error:
        raise DeploymentError(
            f"{location} is not an iCalendar file: {error}",
            hint="it must begin with BEGIN:VCALENDAR",
        ) from error


def reservations(calendar: icalendar.Calendar, now: int) -> dict[Key, Reading]:
    """Return the reservations that hold at `now` (microseconds), by (room, start, title)."""
    moment = datetime.fromtimestamp(now / 1_000_000, UTC)
    found: dict[Key, Reading] = {}
    for event in recurring_ical_events.of(calendar).between(moment, moment + timedelta(seconds=1)):
        room = str(event.get("LOCATION", "")).strip()
        starts, ends = _moment(event.start), _moment(event.end)
        if not room or not starts <= moment < ends or str(event.get("STATUS")) == "CANCELLED":
            continue
        title = str(event.get("SUMMARY", "reserved"))[:MAX_TITLE]
        key = (room, timestamp_of(starts), title)
        values = {"rid": room, "title": title, "starts": key[1], "ends": timestamp_of(ends)}
        found[key] = Reading("roomreservation", values, now)
    return found


def changes(old: dict[Key, Reading], new: dict[Key, Reading], now: int) -> Iterable[Reading]:
    """Yield what turns the old reservations into the new ones."""
    for key in old.keys() - new.keys():
        yield Reading("roomreservation", old[key].values, now, delete=True)
    for key, reading in new.items():
        if key not in old or old[key].values != reading.values:
            yield reading


def _moment(value: datetime | date) -> datetime:
    """Return an aware time; all-day and floating times count as UTC."""
    if not isinstance(value, datetime):
        value = datetime.combine(value, time(), UTC)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _is_address(location: str) -> bool:
    return urlsplit(location).scheme in ("http", "https")


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DeploymentError(f"calendar {path} is larger than {MAX_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise DeploymentError(f"cannot read calendar {path}: {error.strerror}") from error


def _fetch(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=FETCH_SECONDS) as answer:  # noqa: S310
            content: bytes = answer.read(MAX_BYTES + 1)
    except (OSError, urllib.error.URLError) as error:
        raise DeploymentError(f"cannot fetch calendar {address}: {error}") from error
    if len(content) > MAX_BYTES:
        raise DeploymentError(f"calendar {address} is larger than {MAX_BYTES} bytes")
    return content
