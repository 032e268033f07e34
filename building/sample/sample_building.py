"""The sample building: a computer science building of our own making, on three levels."""

from collections.abc import Iterator
from typing import Final

from shapely import Point

from building.furnishing.furnishing import Furniture, furnish
from building.model.site_model import (
    CIRCULATION,
    Connector,
    Door,
    Level,
    Site,
    Space,
    SpaceKind,
    Stop,
)
from building.osm.adjacency import shared_wall
from building.sample.floor_plan import NAMES, OUTSIDE_DOORS, Room, rooms_of_level
from building.walking.walking_graph import middle_of

HOST_ROOM: Final = "L032"
"""The open lab in which the computer Pando runs on has its desk."""


def sample_building() -> Site:
    """Return the sample building with machines, sensors and its walking graph.

    Nothing in it depends on the clock, on chance or on the computer it is built on.
    """
    rooms = {level: rooms_of_level(level) for level in range(len(NAMES))}
    site = Site(
        name="Sample building",
        origin=None,
        levels=tuple(Level(level, name) for level, name in enumerate(NAMES)),
        spaces=tuple(_space(room, level) for level in rooms for room in rooms[level]),
        doors=tuple(_doors(rooms)),
        connectors=tuple(_connectors(rooms)),
    )
    furniture = {
        room.id: Furniture(room.desks, room.use)
        for level in rooms.values()
        for room in level
        if room.desks
    }
    return furnish(site, furniture, host_room=HOST_ROOM)


def _space(room: Room, level: int) -> Space:
    return Space(room.id, room.name, room.kind, level, room.floor, room.open_lab)


def _doors(rooms: dict[int, list[Room]]) -> Iterator[Door]:
    for level, on_level in rooms.items():
        by_id = {room.id: room for room in on_level}
        for room in on_level:
            for neighbour in room.doors_to:
                yield _door(room, by_id[neighbour], level)
    for entrance, x, y in OUTSIDE_DOORS:
        yield Door(f"door-{entrance}-out", (entrance, None), 0, Point(x, y), width=1.8)


def _door(room: Room, neighbour: Room, level: int) -> Door:
    wall = shared_wall(room.floor, neighbour.floor)
    if wall is None:
        message = f"the plan gives {room.id} a door to {neighbour.id}, but they share no wall"
        raise ValueError(message)
    is_opening = {room.kind, neighbour.kind} <= CIRCULATION
    return Door(
        f"door-{room.id}-{neighbour.id}",
        (room.id, neighbour.id),
        level,
        wall.middle,
        width=wall.length if is_opening else 0.9,
    )


def _connectors(rooms: dict[int, list[Room]]) -> Iterator[Connector]:
    vertical = (
        ("ST1", SpaceKind.STAIRS, "ST{}1"),
        ("ST2", SpaceKind.STAIRS, "ST{}2"),
        ("LF1", SpaceKind.LIFT, "LF{}1"),
    )
    for name, kind, pattern in vertical:
        stops = []
        for level, on_level in rooms.items():
            room = next(room for room in on_level if room.id == pattern.format(level))
            stops.append(Stop(level, room.id, middle_of(room.floor)))
        yield Connector(name, kind, tuple(stops), wheelchair=kind is SpaceKind.LIFT)
