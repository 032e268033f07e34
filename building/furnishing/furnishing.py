"""Furnish a building: machines at desks, sensors, a radio mote in each room."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

import shapely
from shapely import Point, Polygon
from shapely.geometry.base import BaseGeometry

from building.furnishing.rfid import place_detectors
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
    (SensorKind.LOAD, "/"),
)
UNEQUIPPED: Final = VERTICAL | {SpaceKind.OUTSIDE}
SENSOR_PREFIX: Final = {SensorKind.TEMPERATURE: "temp"}


@dataclass(frozen=True, slots=True)
class Furniture:
    """How many desks a room has and what they are used for (a key of `PROFILES`)."""

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


WALL_DISTANCE: Final = 0.9
DOOR_DISTANCE: Final = 1.5
MIDDLE_DISTANCE: Final = 0.8
CLOSEST: Final = 1.2
"""Metres kept free: from walls, from doors, from the middle of the room, between desks."""


def desk_places(room: Polygon, count: int, doors: Sequence[Point], middle: Point) -> list[Point]:
    """Return up to `count` desk positions in rows, fewer where the room is too small.

    Of all regular grids with enough free places the one with the fewest places too many is
    taken, then the widest. Positions are rounded to centimetres.
    """
    inner = room.buffer(-WALL_DISTANCE, join_style="mitre")
    if inner.is_empty or count < 1:
        return []
    best: list[Point] = []
    best_rank = (0, 0, 0.0)
    for rows, columns, gap in _grids(inner, count):
        free = [p for p in _grid(inner, rows, columns) if _is_free(p, inner, doors, middle)]
        rank = (min(len(free), count), -rows * columns, gap)
        if free and (not best or rank > best_rank):
            best, best_rank = free, rank
    return best[:count]


def _grids(inner: BaseGeometry, count: int) -> Iterator[tuple[int, int, float]]:
    """Yield rows, columns and the smallest gap of the grids that may hold `count` desks."""
    x0, y0, x1, y1 = inner.bounds
    for rows in range(1, count + 2):
        for columns in range(ceil(count / rows), 3 * ceil(count / rows) + 2):
            gap = min(_gap(x1 - x0, columns), _gap(y1 - y0, rows))
            if gap >= CLOSEST:
                yield rows, columns, gap


def _gap(length: float, places: int) -> float:
    return length / (places - 1) if places > 1 else max(length, CLOSEST)


def _grid(inner: BaseGeometry, rows: int, columns: int) -> list[Point]:
    x0, y0, x1, y1 = inner.bounds
    return [
        Point(round(x, 2), round(y, 2))
        for y in _spread(y0, y1, rows)
        for x in _spread(x0, x1, columns)
    ]


def _spread(low: float, high: float, places: int) -> list[float]:
    if places == 1:
        return [(low + high) / 2]
    return [low + (high - low) * i / (places - 1) for i in range(places)]


def _is_free(place: Point, inner: BaseGeometry, doors: Sequence[Point], middle: Point) -> bool:
    return (
        bool(shapely.dwithin(inner, place, 0.01))
        and place.distance(middle) >= MIDDLE_DISTANCE
        and all(place.distance(door) >= DOOR_DISTANCE for door in doors)
    )


WORD: Final = Software("Word", "16.0")
OFFICE: Final = Software("Office", "16.0")
LATEX: Final = Software("LaTeX", "2024")
PYTHON: Final = Software("Python", "3.12")
MATLAB: Final = Software("MATLAB", "R2024a")
VIDEO: Final = Software("Video editor", "24.02")
CAD: Final = Software("CAD", "2024")
GIS: Final = Software("GIS", "3.34")
STATISTICS: Final = Software("Statistics", "4.3")

PROFILES: Final[dict[str, tuple[Software, ...]]] = {
    "drop-in": (OFFICE, PYTHON, WORD),
    "teaching": (LATEX, OFFICE, PYTHON, WORD),
    "science": (LATEX, PYTHON, STATISTICS),
    "design": (CAD, OFFICE),
    "office": (OFFICE, WORD),
    "research": (LATEX, PYTHON),
}
"""Software on every machine of a room, by the use of the room."""

SPECIAL: Final[dict[str, tuple[tuple[int, Software], ...]]] = {
    "drop-in": ((5, LATEX),),
    "teaching": ((6, MATLAB),),
    "science": ((4, MATLAB),),
    "design": ((3, VIDEO), (5, GIS)),
    "office": ((5, LATEX),),
    "research": ((4, STATISTICS),),
}
"""Licences for few seats: every n-th machine of such a room has the package, too."""

PROCESSORS: Final[dict[str, tuple[str, int]]] = {
    "drop-in": ("Intel Core i3-10100", 4),
    "teaching": ("Intel Core i5-12400", 6),
    "science": ("AMD Ryzen 7 5700G", 8),
    "design": ("AMD Ryzen 9 7900", 12),
    "office": ("Intel Core i5-10500T", 6),
    "research": ("AMD Ryzen 5 5600G", 6),
}
"""Processor and number of cores by use."""


def software_of(use: str, number: int) -> tuple[Software, ...]:
    """Return what the machine with this number (from 1) in a room of this use has, by name."""
    special = {package for every, package in SPECIAL[use] if number % every == 0}
    return tuple(sorted({*PROFILES[use], *special}, key=lambda package: package.name))
