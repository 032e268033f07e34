"""The connector of calendars: a row while a reservation holds."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import icalendar
import msgspec

from gateway.connectors.calendar.fetching import fetch, in_background
from gateway.connectors.calendar.reservations import Agenda, Reservation, agenda_of, parse
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.options import Seconds
from gateway.connectors.reading import Memory, Reading
from host.files.settings_file import require
from streamsql.errors import DeploymentError

HORIZON = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Key = tuple[str, int, str]
"""Room, start and title: what tells two reservations apart."""
Holding = dict[Key, Reservation]


class CalendarEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A calendar.

    Attributes:
        location: Path of an .ics file, or an http(s) address.
        period: Between two looks at what holds now.
        refresh: Between two readings of the file or address.
        time_zone: Of whole days and of times without a zone, e.g. Europe/Zurich; empty: what the
            calendar says, else UTC.
    """

    location: str
    period: Seconds = Seconds(1)
    refresh: Seconds = Seconds(60)
    time_zone: str = ""

    def __post_init__(self) -> None:
        require(self.location != "", "location is empty")
        require(self.period >= 0.01, "period must be at least 0.01 s")
        require(self.refresh >= 0.01, "refresh must be at least 0.01 s")


class CalendarSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A calendar has nothing to choose from."""


class _Kept(msgspec.Struct):
    """Memory of an earlier incarnation.

    Attributes:
        holding: Room, title, start and end of the reservations whose rows are there.
        versions: Of the definitions of the sources that have these rows.
    """

    holding: list[tuple[str, str, int, int]] = []
    versions: list[tuple[str, int]] = []


class CalendarConnector:
    """Emits a row while a reservation holds, and withdraws it when it ends or is cancelled.

    A calendar that cannot be read keeps what was known of it.
    """

    kind = "calendar"
    endpoint_options = CalendarEndpoint
    source_options = CalendarSource

    def __init__(self) -> None:
        self._content = b""
        self._calendar: icalendar.Calendar | None = None
        self._agenda: Agenda | None = None
        self._holding: Holding = {}
        self._versions: dict[str, int] = {}

    async def run(self, context: ConnectorContext) -> None:
        """Look every period until cancelled."""
        options = context.endpoint_as(CalendarEndpoint)
        loop = asyncio.get_running_loop()
        self._recall(context.memory)
        due = loop.time()
        while True:
            if loop.time() >= due:
                await self._refresh(context, options)
                due = loop.time() + options.refresh
            await self._look(context, options)
            await asyncio.sleep(options.period)

    async def _refresh(self, context: ConnectorContext, options: CalendarEndpoint) -> None:
        location = options.location
        try:
            content = await in_background(lambda: fetch(location), "calendar")
            if content != self._content or self._calendar is None:
                self._calendar = await in_background(lambda: parse(content, location), "calendar")
                self._content, self._agenda = content, None
        except DeploymentError as error:
            context.problem(str(error))

    async def _look(self, context: ConnectorContext, options: CalendarEndpoint) -> None:
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
        readings: list[Reading] = []
        for source in context.sources:
            # Of another definition: it may be a new source of that name, which has no rows.
            is_known = self._versions.get(source.name) == source.definition.version
            readings.extend(changes(source, self._holding, current, now, anew=not is_known))
        self._holding = current
        self._versions = _versions(context.sources)
        if readings:
            context.remember(self._to_remember())
            context.emit(readings)

    def _to_remember(self) -> Memory:
        """Return what to know after a restart: rows that have ended by then must be withdrawn."""
        return {
            "holding": [[r.room, r.title, r.starts, r.ends] for r in self._holding.values()],
            "versions": [[name, version] for name, version in self._versions.items()],
        }

    def _recall(self, memory: Memory | None) -> None:
        try:
            kept = msgspec.convert(memory or {}, _Kept)
        except msgspec.ValidationError:
            return
        reservations = (Reservation(*row) for row in kept.holding)
        self._holding = {(r.room, r.starts, r.title): r for r in reservations}
        self._versions = dict(kept.versions)


def changes(
    source: DeclaredSource, old: Holding, new: Holding, now: int, *, anew: bool = False
) -> Iterator[Reading]:
    """Yield what turns the old reservations into the new ones; anew: all of these again."""
    for key in old.keys() - new.keys():
        yield from source.withdraw_record(_values(old[key]), time=now)
    for key, reservation in new.items():
        if anew or old.get(key) != reservation:
            yield from source.read_record(_values(reservation), time=now)


def _versions(sources: Sequence[DeclaredSource]) -> dict[str, int]:
    return {source.name: source.definition.version for source in sources}


def _values(reservation: Reservation) -> dict[str, object]:
    return {
        "rid": reservation.room,
        "title": reservation.title,
        "starts": _moment(reservation.starts),
        "ends": _moment(reservation.ends),
    }


def _moment(micros: int) -> datetime:
    """Return a time as one that a column of whatever FORMAT reads right."""
    return _EPOCH + timedelta(microseconds=micros)
