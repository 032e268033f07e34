"""Furnish a building: machines at desks, sensors, a radio mote in each room."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from shapely import Point

from building.furnishing.desks import desk_places
from building.furnishing.rfid import place_detectors
from building.furnishing.software import PROCESSORS, software_of
from building.model.site_model import (
    VERTICAL,
    Door,
    Machine,
    Mote,
    Sensor,
    SensorKind,
    Site,
    Software,
    Space,
    SpaceKind,
)
from building.walking.walking_graph import derive_walking_graph, middle_of

HOST_MACHINE: Final = "this-machine"
"""Id of the machine that stands for the computer Pando runs on."""

ROOM_SENSORS: Final = ((SensorKind.LIGHT, "lx"), (SensorKind.TEMPERATURE, "Cel"))
MACHINE_SENSORS: Final = (
    (SensorKind.SEAT, "kg"),
    (SensorKind.ENERGY, "W"),
    (SensorKind.LOAD, "%"),
)
UNEQUIPPED: Final = VERTICAL | {SpaceKind.OUTSIDE}
SENSOR_PREFIX: Final = {SensorKind.TEMPERATURE: "temp"}


@dataclass(frozen=True, slots=True)
class Furniture:
    """How many desks a room has and what they are used for (a key of `software.PROFILES`)."""

    desks: int
    use: str


def furnish(
    site: Site, furniture: Mapping[str, Furniture], *, host_room: str | None = None
) -> Site:
    """Return the site with machines, walking graph, detectors, sensors and motes.

    Args:
        site: Levels, spaces, doors and connectors.
        furniture: Room id to what stands in it.
        host_room: Room in which one more desk carries the machine Pando itself runs on.
    """
    machines = tuple(_machines(site, furniture, host_room))
    walking = derive_walking_graph(site.spaces, site.doors, site.connectors, machines)
    detectors = place_detectors(site.spaces, site.doors, walking)
    sensors = [*_room_sensors(site.spaces), *_machine_sensors(machines)]
    sensors += [detector.sensor for detector in detectors]
    return replace(
        site,
        machines=machines,
        points=walking.points,
        edges=walking.edges,
        room_points=walking.room_points,
        machine_points=walking.machine_points,
        detector_points={d.sensor.id: d.point for d in detectors},
        sensors=tuple(sensors),
        motes=tuple(_motes(site.spaces)),
        warnings=(*site.warnings, *walking.warnings),
    )


def machine_stem(room: str) -> str:
    """Return what the ids of a room's machines begin with.

    Examples:
        >>> machine_stem("L101"), machine_stem("O204"), machine_stem("way-7")
        ('lab101', 'office204', 'way-7')
    """
    words = {"L": "lab", "O": "office"}
    match = re.fullmatch(r"([LO])(\d+)", room)
    return words[match[1]] + match[2] if match else room.lower()


def _machines(
    site: Site, furniture: Mapping[str, Furniture], host_room: str | None
) -> Iterator[Machine]:
    for space in site.spaces:
        wanted = furniture.get(space.id)
        extra = 1 if space.id == host_room else 0
        if wanted is None:
            continue
        doors = _doors_of(space, site.doors)
        places = desk_places(space.polygon, wanted.desks + extra, doors, middle_of(space.polygon))
        for number, place in enumerate(places, start=1):
            is_host = bool(extra) and number == len(places)
            yield _machine(space, number, place, wanted.use, is_host=is_host)


def _doors_of(space: Space, doors: Iterable[Door]) -> list[Point]:
    return [door.point for door in doors if space.id in door.spaces]


def _machine(space: Space, number: int, place: Point, use: str, *, is_host: bool) -> Machine:
    cpu, cores = PROCESSORS[use]
    mid = HOST_MACHINE if is_host else f"{machine_stem(space.id)}-{number:02d}"
    return Machine(
        mid=mid,
        room=space.id,
        desk=f"{space.id}-d{number:02d}",
        x=place.x,
        y=place.y,
        level=space.level,
        host="localhost" if is_host else f"{mid}.lan",
        cpu="unknown" if is_host else cpu,
        cores=0 if is_host else cores,
        # Python is the one package known to be on the computer that runs this.
        software=(Software("Python", "3"),) if is_host else software_of(use, number),
        is_host=is_host,
    )


def _room_sensors(spaces: Sequence[Space]) -> Iterator[Sensor]:
    for space in spaces:
        if space.kind in UNEQUIPPED:
            continue
        middle = middle_of(space.polygon)
        for kind, unit in ROOM_SENSORS:
            name = f"{SENSOR_PREFIX.get(kind, kind.value)}-{space.id}"
            yield Sensor(name, kind, space.id, None, middle.x, middle.y, space.level, unit)


def _machine_sensors(machines: Sequence[Machine]) -> Iterator[Sensor]:
    for m in machines:
        for kind, unit in MACHINE_SENSORS:
            yield Sensor(f"{kind.value}-{m.mid}", kind, m.room, m.mid, m.x, m.y, m.level, unit)


def _motes(spaces: Sequence[Space]) -> Iterator[Mote]:
    for space in spaces:
        if space.kind is SpaceKind.OUTSIDE:
            continue
        middle = middle_of(space.polygon)
        yield Mote(f"m-{space.id}", space.id, middle.x, middle.y, space.level)
