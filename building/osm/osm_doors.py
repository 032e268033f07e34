"""Doors of an OSM map: those drawn as points, and where none is drawn, derived ones."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import networkx as nx
import shapely
from shapely import Point

from building.model.site_model import (
    CIRCULATION,
    OUTSIDE,
    VERTICAL,
    Connector,
    Door,
    Space,
    SpaceKind,
)
from building.osm.adjacency import SharedWall, shared_wall
from building.osm.osm_features import IndoorMap, MappedPoint
from building.osm.osm_outside import space_graph

DOOR_REACH: Final = 0.8
"""Metres a door point may lie from the outline of a room it opens into."""

ENTRANCE_REACH: Final = 5.0
"""Metres an entrance point, drawn on the building's outline, may lie from the nearest floor."""


def mapped_doors(found: IndoorMap, spaces: Sequence[Space]) -> tuple[list[Door], list[str]]:
    """Return the doors drawn as points, and a warning for each point that is no passage."""
    doors: list[Door] = []
    warnings: list[str] = []
    for mapped in found.doors:
        for level in mapped.levels:
            door = _door(mapped, level, [space for space in spaces if space.level == level])
            if door is None:
                warnings.append(f"{mapped.feature.label}: no room near this door on level {level}")
            else:
                doors.append(door)
    return doors, warnings


def _door(mapped: MappedPoint, level: int, spaces: Sequence[Space]) -> Door | None:
    tags = mapped.feature.tags
    is_entrance = tags.get("entrance", "no") != "no"
    reach = ENTRANCE_REACH if is_entrance else DOOR_REACH
    indoors = [space for space in spaces if space.kind is not SpaceKind.OUTSIDE]
    distances = [(space.polygon.distance(mapped.point), space.id, space) for space in indoors]
    near = [space for metres, _, space in sorted(distances, key=_first_two) if metres <= reach]
    if is_entrance and near:
        # Who comes in arrives in a corridor, if one begins here.
        first = next((space for space in near if space.kind in CIRCULATION), near[0])
        second = next((space.id for space in spaces if space.id == OUTSIDE), None)
    elif len(near) > 1:
        first, second = near[0], near[1].id
    else:
        return None
    outline = first.polygon.boundary
    on_outline = outline.interpolate(outline.project(mapped.point))
    suffix = f"-{level}" if len(mapped.levels) > 1 else ""
    return Door(
        id=f"door-{mapped.feature.key}{suffix}",
        spaces=(first.id, second),
        level=level,
        point=Point(round(on_outline.x, 3), round(on_outline.y, 3)),
        wheelchair=tags.get("wheelchair") != "no",
    )


def _first_two(entry: tuple[float, str, Space]) -> tuple[float, str]:
    return entry[:2]


@dataclass(frozen=True, slots=True)
class _Contact:
    """Two spaces that share a wall; `a` is the one with the shorter outline."""

    a: Space
    b: Space
    wall: SharedWall

    def other(self, space: Space) -> Space:
        """Return the space on the other side."""
        return self.b if self.a.id == space.id else self.a


def derived_doors(
    spaces: Sequence[Space], mapped: Sequence[Door], connectors: Sequence[Connector]
) -> list[Door]:
    """Return the passages nobody drew, inferred from shared walls.

    Corridors and areas that touch are open to each other. A room without a drawn door gets one
    to the corridor it shares the longest wall with. What then is still cut off from outside
    gets a door to it, where the site has an outside, and a room without a door yet one to a
    neighbour that has one.
    """
    return _Derivation(spaces, mapped, connectors).run()


class _Derivation:
    def __init__(
        self, spaces: Sequence[Space], mapped: Sequence[Door], connectors: Sequence[Connector]
    ) -> None:
        self._spaces = spaces
        self._mapped = mapped
        self._connectors = connectors
        self._contacts = _contacts(spaces)
        self._joined = {frozenset(door.spaces) for door in mapped}
        self._with_door = {room for door in mapped for room in door.spaces if room is not None}
        self._doors: list[Door] = []

    def run(self) -> list[Door]:
        for contact in self._contacts.all:
            if contact.a.kind in CIRCULATION and contact.b.kind in CIRCULATION:
                self._join(contact)
        self._give_doors(lambda space: space.kind in CIRCULATION)
        self._open_to_outside()
        # Rooms behind rooms; a shop's upper storey with stairs inside needs no other door.
        self._with_door |= {
            stop.room
            for connector in self._connectors
            for stop in connector.stops
            if self._contacts.spaces[stop.room].kind not in VERTICAL
        }
        while self._give_doors(self._is_connected_room):
            pass
        return self._doors

    def _is_connected_room(self, space: Space) -> bool:
        return space.id in self._with_door and space.kind not in VERTICAL

    def _give_doors(self, is_wanted: Callable[[Space], bool]) -> bool:
        """Give every room without a door the best one to a wanted neighbour; tell if any got."""
        found = False
        for space in self._spaces:
            if space.kind in CIRCULATION or space.id in self._with_door | {OUTSIDE}:
                continue
            ways = [c for c in self._contacts.of(space.id) if is_wanted(c.other(space))]
            if ways:
                found = True
                self._join(_widest(ways))
        return found

    def _open_to_outside(self) -> None:
        """Give every part of the building that is cut off from outside a door to it."""
        graph = space_graph(self._spaces, [*self._mapped, *self._doors], self._connectors)
        if OUTSIDE not in graph:
            return
        for part in list(nx.connected_components(graph)):
            if OUTSIDE in part:
                continue
            ways = [c for c in self._contacts.of(OUTSIDE) if c.a.id in part or c.b.id in part]
            corridors = [c for c in ways if {c.a.kind, c.b.kind} & CIRCULATION]
            if ways:
                self._join(_widest(corridors or ways))

    def _join(self, contact: _Contact) -> None:
        ends = frozenset((contact.a.id, contact.b.id))
        self._with_door.update(ends - {OUTSIDE})
        if ends in self._joined:
            return
        self._joined.add(ends)
        a, b = contact.a, contact.b
        if a.id == OUTSIDE:
            a, b = b, a
        is_opening = {a.kind, b.kind} <= CIRCULATION
        self._doors.append(
            Door(
                id=f"opening-{len(self._doors) + 1}",
                spaces=(a.id, b.id),
                level=a.level,
                point=contact.wall.middle,
                width=round(contact.wall.length, 2) if is_opening else 0.9,
                derived=True,
            )
        )


class _Contacts:
    """All pairs of spaces that share a wall, found by either of them."""

    def __init__(self, spaces: Iterable[Space], contacts: Iterable[_Contact]) -> None:
        self.spaces = {space.id: space for space in spaces}
        self.all = list(contacts)
        self._by_room: dict[str, list[_Contact]] = {}
        for contact in self.all:
            self._by_room.setdefault(contact.a.id, []).append(contact)
            self._by_room.setdefault(contact.b.id, []).append(contact)

    def of(self, room: str) -> list[_Contact]:
        return self._by_room.get(room, [])


def _contacts(spaces: Sequence[Space]) -> _Contacts:
    tree = shapely.STRtree([space.polygon for space in spaces])
    contacts: list[_Contact] = []
    for index, space in enumerate(spaces):
        near = tree.query(space.polygon, predicate="dwithin", distance=1.0)
        for other in sorted(int(i) for i in near):
            if other > index and spaces[other].level == space.level:
                # Look from the smaller outline: its sides are the straight ones.
                a, b = sorted((space, spaces[other]), key=lambda s: (s.polygon.length, s.id))
                wall = shared_wall(a.polygon, b.polygon)
                if wall is not None:
                    contacts.append(_Contact(a, b, wall))
    return _Contacts(spaces, contacts)


def _widest(contacts: Iterable[_Contact]) -> _Contact:
    return max(contacts, key=lambda c: (c.wall.length, c.a.id, c.b.id))
