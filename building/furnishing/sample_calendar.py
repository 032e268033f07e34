"""A calendar of room reservations for a site, as iCalendar text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from icalendar import Calendar, Event

from building.model.site_model import CIRCULATION, VERTICAL, Site, Space, SpaceKind

MAX_ROOMS: Final = 12
FIRST_MONDAY: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""Reservations begin here and recur weekly without end."""

WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR")
WEEKEND: Final = ("SA", "SU")
DAYS: Final = (*WEEKDAYS, *WEEKEND)

NEVER_RESERVED: Final = (
    CIRCULATION
    | VERTICAL
    | {SpaceKind.OUTSIDE, SpaceKind.TOILETS, SpaceKind.SERVICE, SpaceKind.OFFICE, SpaceKind.LAB}
)


@dataclass(frozen=True, slots=True)
class _Reservation:
    """A weekly reservation: days, first hour (UTC) and length in hours."""

    room: str
    title: str
    days: tuple[str, ...]
    hour: int
    hours: int


def sample_calendar(site: Site) -> bytes:
    """Return weekly recurring reservations of lecture, meeting and other rooms.

    At any time of any week at least one room is reserved, if the site has a room that can be.
    Times are UTC and LOCATION is the room id. The same site gives the same bytes.
    """
    calendar = Calendar()
    calendar.add("prodid", "-//Pando//Sample reservations//EN")
    calendar.add("version", "2.0")
    calendar.add("name", f"{site.name} reservations")
    for number, reservation in enumerate(_reservations(_rooms(site)), start=1):
        calendar.add_component(_event(number, reservation))
    return bytes(calendar.to_ical())


def _rooms(site: Site) -> list[str]:
    wanted = (SpaceKind.LECTURE, SpaceKind.MEETING)

    def rank(space: Space) -> tuple[bool, float, str]:
        return (space.kind not in wanted, -round(space.polygon.area, 2), space.id)

    usable = [space for space in site.spaces if space.kind not in NEVER_RESERVED]
    # Where rooms have no such kinds, those without machines come first, like shops without.
    furnished = {machine.room for machine in site.machines}
    usable.sort(key=lambda space: (space.id in furnished, *rank(space)))
    return [space.id for space in usable[:MAX_ROOMS]]


def _reservations(rooms: Sequence[str]) -> Iterator[_Reservation]:
    if not rooms:
        return
    for number, room in enumerate(rooms[1:] or rooms):
        hour = 8 + 2 * (number % 5)
        yield _Reservation(room, "Lecture", ("MO", "WE", "FR"), hour, 2)
        yield _Reservation(room, "Seminar", ("TU", "TH"), 8 + 2 * ((number + 2) % 5), 2)
    # The first room carries what runs at night and at weekends, so that something always does.
    yield _Reservation(rooms[0], "Overnight measurements", DAYS, 18, 14)
    yield _Reservation(rooms[0], "Open day", WEEKEND, 8, 10)
    yield _Reservation(rooms[0], "Course", WEEKDAYS, 9, 3)


def _event(number: int, reservation: _Reservation) -> Event:
    first_day = DAYS.index(reservation.days[0])
    start = FIRST_MONDAY + timedelta(days=first_day, hours=reservation.hour)
    event = Event()
    event.add("uid", f"reservation-{number}@pando.example")
    event.add("dtstamp", FIRST_MONDAY)
    event.add("summary", f"{reservation.title} in {reservation.room}")
    event.add("location", reservation.room)
    event.add("dtstart", start)
    event.add("dtend", start + timedelta(hours=reservation.hours))
    event.add("rrule", {"freq": "weekly", "byday": list(reservation.days)})
    return event
