"""The CSV tables of a provisioned site."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from building.model.site_model import Sensor, SensorKind, Site, SpaceKind
from building.walking.walking_graph import middle_of

Value = str | int | float | bool | None
Row = tuple[Value, ...]

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "rooms": ("rid", "name", "kind", "level", "open_lab", "x", "y", "point"),
    "machines": ("mid", "rid", "host", "cpu", "x", "y", "level", "point"),
    "machine_software": ("mid", "software", "version"),
    "routing": ("src", "dst", "distance", "kind", "wheelchair", "room", "leaves"),
    "point_rooms": ("point", "rid"),
    "rfid_detectors": ("detector", "x", "y", "level", "point"),
    "sensors": ("sensor", "kind", "rid", "mid", "gateway", "x", "y", "level"),
}
"""Table name to its columns; `point` is a routing point, distances and coordinates are metres.

`routing.room` is the room a step is inside, empty in corridors; `leaves` says that it ends at a
door by which only people leave who began in that room.
"""


def tables(site: Site) -> dict[str, bytes]:
    """Return each table's CSV text in UTF-8, with a header line."""
    rows: dict[str, Iterable[Row]] = {
        "rooms": _rooms(site),
        "machines": _machines(site),
        "machine_software": _software(site),
        "routing": _routing(site),
        "point_rooms": _point_rooms(site),
        "rfid_detectors": _detectors(site),
        "sensors": _sensors(site),
    }
    return {name: _csv(columns, rows[name]) for name, columns in COLUMNS.items()}


def _rooms(site: Site) -> Iterator[Row]:
    for s in site.spaces:
        if s.kind is not SpaceKind.OUTSIDE:
            place = middle_of(s.polygon)
            point = site.room_points[s.id]
            yield (s.id, s.name, s.kind, s.level, s.open_lab, place.x, place.y, point)


def _machines(site: Site) -> Iterator[Row]:
    for m in site.machines:
        yield (m.mid, m.room, m.host, m.cpu, m.x, m.y, m.level, site.machine_points[m.mid])


def _software(site: Site) -> Iterator[Row]:
    for machine in site.machines:
        for package in machine.software:
            yield (machine.mid, package.name, package.version)


def _routing(site: Site) -> Iterator[Row]:
    for edge in site.edges:
        for src, dst in ((edge.src, edge.dst), (edge.dst, edge.src)):
            leaves = dst in edge.exits
            yield (src, dst, edge.distance, edge.kind, edge.wheelchair, edge.room, leaves)


def _point_rooms(site: Site) -> Iterator[Row]:
    """Yield the points inside rooms: their doors belong to no room alone."""
    doors = {door.id for door in site.doors}
    inside = {
        end: edge.room
        for edge in site.edges
        if edge.room is not None
        for end in (edge.src, edge.dst)
        if end not in doors
    }
    yield from sorted(inside.items())


def _detectors(site: Site) -> Iterator[Row]:
    for s in site.sensors:
        if s.kind is SensorKind.RFID:
            yield (s.id, s.x, s.y, s.level, site.detector_points[s.id])


def _sensors(site: Site) -> Iterator[Row]:
    for s in site.sensors:
        yield (s.id, s.kind, s.room, s.mid, _gateway(site, s), s.x, s.y, s.level)


def _gateway(site: Site, sensor: Sensor) -> str:
    return site.gateways[sensor.room]


def _csv(columns: tuple[str, ...], rows: Iterable[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _field(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
