"""The calendar wrapper: a row while a reservation holds."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import icalendar
import msgspec

from gateway.connectors.reading import Memory, Reading
from gateway.wrappers.calendar.fetching import fetch, in_background
from gateway.wrappers.calendar.reservations import Agenda, Reservation, agenda_of, parse
from gateway.wrappers.options import read_options
from gateway.wrappers.wrapper import WrapperContext
from host.files.settings_file import require
from streamsql.errors import DeploymentError

SOURCE = "roomreservation"
HORIZON = timedelta(days=1)

Key = tuple[str, int, str]
"""Room, start and title: the source's key."""


class CalendarOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the calendar wrapper.

    Attributes:
        location: Path of an .ics file, or an http(s) address.
        period: Seconds between two looks at what holds now.
        refresh: Seconds between two readings of the file or address.
        time_zone: Of whole days and of times without a zone, e.g. Europe/Zurich; empty: what the
            calendar says, else UTC.
    """

    location: str
    period: float = 1.0
    refresh: float = 60.0
    time_zone: str = ""

    def __post_init__(self) -> None:
        require(self.location != "", "location is empty")
        require(self.period >= 0.01, "period must be at least 0.01 s")
        require(self.refresh >= 0.01, "refresh must be at least 0.01 s")


class CalendarWrapper:
    """Emits a row while a reservation holds, and withdraws it when it ends or is cancelled.

    A calendar that cannot be read keeps what was known of it.
    """

    kind = "calendar"
    streams: tuple[str, ...] = (SOURCE,)

    def __init__(self) -> None:
        # Kept when the wrapper is started again after a fault: rows must not stay for ever.
        self._content = b""
        self._calendar: icalendar.Calendar | None = None
        self._agenda: Agenda | None = None
        self._holding: dict[Key, Reservation] = {}

    async def run(self, context: WrapperContext) -> None:
        """Look every period until cancelled."""
        options = read_options(context, self.kind, CalendarOptions)
        loop = asyncio.get_running_loop()
        if not self._holding and context.memory is not None:
            self._holding = recalled(context.memory)
        due = loop.time()
        while True:
            if loop.time() >= due:
                await self._refresh(context, options)
                due = loop.time() + options.refresh
            await self._look(context, options)
            await asyncio.sleep(options.period)

    async def _refresh(self, context: WrapperContext, options: CalendarOptions) -> None:
        location = options.location
        try:
            content = await in_background(lambda: fetch(location), "calendar")
            if content != self._content or self._calendar is None:
                self._calendar = await in_background(lambda: parse(content, location), "calendar")
                self._content, self._agenda = content, None
        except DeploymentError as error:
            context.problem(str(error))

    async def _look(self, context: WrapperContext, options: CalendarOptions) -> None:
        calendar, now = self._calendar, context.clock()
        if calendar is None:
            return
        if self._agenda is None or not self._agenda.covers(now):
            zone = options.time_zone
            self._agenda = await in_background(
                lambda: agenda_of(calendar, now, HORIZON, zone), "calendar"
            )
            for complaint in self._agenda.complaints:
                context.problem(f"{options.location}: {complaint}")
        current = {(r.room, r.starts, r.title): r for r in self._agenda.at(now)}
        context.remember(remembered(current))
        context.emit(list(changes(self._holding, current, now)))
        self._holding = current


def remembered(holding: dict[Key, Reservation]) -> Memory:
    """Return what to know after a restart: rows that have ended by then must be withdrawn."""
    return {"holding": [[r.room, r.title, r.starts, r.ends] for r in holding.values()]}


def recalled(memory: Memory) -> dict[Key, Reservation]:
    """Return what held when the gateway's state was saved."""
    rows = memory.get("holding")
    reservations = [Reservation(*row) for row in rows] if isinstance(rows, list) else []
    return {(r.room, r.starts, r.title): r for r in reservations}


def changes(
    old: dict[Key, Reservation], new: dict[Key, Reservation], now: int
) -> Iterable[Reading]:
    """Yield what turns the old reservations into the new ones."""
    for key in old.keys() - new.keys():
        yield _reading(old[key], now, delete=True)
    for key, reservation in new.items():
        if old.get(key) != reservation:
            yield _reading(reservation, now)


def _reading(reservation: Reservation, now: int, *, delete: bool = False) -> Reading:
    values = {
        "rid": reservation.room,
        "title": reservation.title,
        "starts": reservation.starts,
        "ends": reservation.ends,
    }
    return Reading(SOURCE, values, now, delete=delete)
