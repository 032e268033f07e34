"""The walking graph of a building, derived from its geometry.

Doors, the middles of rooms, desks, stops of stairs and lifts, and points on the centre lines of
corridors become routing points; straight segments inside one space become edges whose distance
is their Euclidean length; stairs and lifts join levels at stated costs.

Rooms are no passages: an edge that leaves a room with several doors says so (`RouteEdge.exits`),
for a route takes it only where it has begun in that room. A room is a passage where another space
can only be reached through rooms.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import ceil, hypot
from typing import Final

import networkx as nx
import shapely
from shapely import Point, Polygon

from building.model.site_model import (
    CIRCULATION,
    OUTSIDE,
    VERTICAL,
    Connector,
    Door,
    EdgeKind,
    Machine,
    RouteEdge,
    RoutingPoint,
    Space,
    SpaceKind,
)
from building.walking.floor import Floor, Terminal
from building.walking.floor_paths import (
    LONGEST_PIECE,
    FloorPaths,
    along_centre_lines,
    star,
)
from building.walking.medial_axis import Coordinate, rounded

STAIRS_METRES_PER_LEVEL: Final = 15.0
"""Walking as long as climbing one storey takes: two flights of about 5 m at half the pace,
and a landing. A stated cost, not a measured one."""

LIFT_METRES_PER_LEVEL: Final = 4.0
LIFT_WAIT_METRES: Final = 25.0
"""Walking as long as waiting for a lift (18 s at 1.4 m/s), paid once a ride."""


OUTSIDE_PIECE: Final = 40.0
"""Metres: nobody stands outside, so routes there need few points."""

WALKED_ALONG: Final = CIRCULATION | {SpaceKind.OUTSIDE}
PASSED_THROUGH: Final = WALKED_ALONG | VERTICAL


@dataclass(frozen=True)
class WalkingGraph:
    """Routing points and edges of a building, one edge for both directions.

    Attributes:
        room_points: Room id to the point that represents the room.
        machine_points: Machine id to the point at its desk.
        warnings: Rooms that cannot be reached, one sentence each.
    """

    points: tuple[RoutingPoint, ...]
    edges: tuple[RouteEdge, ...]
    room_points: Mapping[str, str]
    machine_points: Mapping[str, str]
    warnings: tuple[str, ...]


def derive_walking_graph(
    spaces: Sequence[Space],
    doors: Sequence[Door],
    connectors: Sequence[Connector] = (),
    machines: Sequence[Machine] = (),
) -> WalkingGraph:
    """Return the walking graph of these spaces.

    Each machine gets the routing point `d-<mid>` at its desk, each room `r-<room>` in its middle;
    the middle of a corridor is the point of its centre line nearest to it.
    """
    by_id = {space.id: space for space in spaces}
    through = _rooms_of_several_doors(by_id, doors) - _passages(spaces, doors, connectors)
    builder = _Builder(by_id, {door.id: door for door in doors}, through)
    by_room = _terminals_by_room(doors, connectors, machines)
    for space in spaces:
        builder.add_space(space, by_room.get(space.id, []))
    for connector in connectors:
        builder.add_connector(connector)
    machine_points = {
        machine.mid: builder.point_at(machine.level, Point(machine.x, machine.y))
        for machine in machines
    }
    points = tuple(builder.points.values())
    edges = tuple(builder.edges.values())
    entrances = [builder.aliases[door.id] for door in doors if door.is_entrance]
    reached = _reachable_points(edges, entrances, points)
    warnings = [*builder.warnings, *_unreachable_rooms(spaces, builder.room_points, reached)]
    return WalkingGraph(points, edges, builder.room_points, machine_points, tuple(warnings))


def _reachable_points(
    edges: Iterable[RouteEdge], entrances: Sequence[str], points: Sequence[RoutingPoint]
) -> set[str]:
    """Return the points reachable from any entrance, or the largest part if there is none."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(point.id for point in points)
    graph.add_edges_from((edge.src, edge.dst) for edge in edges)
    if entrances:
        return {p for entrance in entrances for p in nx.node_connected_component(graph, entrance)}
    return max(nx.connected_components(graph), key=len, default=set())


def middle_of(polygon: Polygon) -> Point:
    """Return a point well inside: the centroid where that is inside, else the widest place."""
    centroid = polygon.centroid
    if polygon.buffer(-0.5).contains(centroid):
        return Point(round(centroid.x, 3), round(centroid.y, 3))
    widest = Point(shapely.get_coordinates(shapely.maximum_inscribed_circle(polygon))[0])
    return Point(round(widest.x, 3), round(widest.y, 3))


def _terminals_by_room(
    doors: Iterable[Door], connectors: Iterable[Connector], machines: Iterable[Machine]
) -> dict[str, list[Terminal]]:
    by_room: dict[str, list[Terminal]] = {}
    for door in doors:
        for room in door.spaces:
            if room is not None:
                by_room.setdefault(room, []).append(Terminal(door.id, door.point))
    for connector in connectors:
        for stop in connector.stops:
            terminal = Terminal(stop_key(connector, stop.level), stop.point)
            by_room.setdefault(stop.room, []).append(terminal)
    for machine in machines:
        desk = Terminal(f"d-{machine.mid}", Point(machine.x, machine.y), is_desk=True)
        by_room.setdefault(machine.room, []).append(desk)
    return by_room


def stop_key(connector: Connector, level: int) -> str:
    """Return the id of the routing point where a connector is entered on a level."""
    return f"s-{connector.id}-{level}"


@dataclass
class _Builder:
    """Collects points and edges; a place is one point however many spaces meet there."""

    spaces: Mapping[str, Space]
    doors: Mapping[str, Door]
    through: frozenset[str]
    points: dict[str, RoutingPoint] = field(default_factory=dict)
    edges: dict[tuple[str, str], RouteEdge] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    room_points: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    _places: dict[tuple[int, Coordinate], str] = field(default_factory=dict)

    def add_space(self, space: Space, terminals: list[Terminal]) -> None:
        """Add the paths inside one space."""
        middle = Terminal(f"r-{space.id}", middle_of(space.polygon))
        if space.kind not in PASSED_THROUGH:
            terminals = [*terminals, middle]
        paths = _paths_of(space, terminals or [middle])
        for key, coordinate in paths.terminals.items():
            self.aliases[key] = self._point(space, coordinate, key)
        for coordinate in paths.graph:
            self._point(space, coordinate)
        for start, end in paths.graph.edges:
            self._walk(space, start, end)
        self._name_room_point(space, paths, middle)
        self.warnings += [
            f"level {space.level}: {_title(space)}: no straight path from {key} to the rest of it"
            for key in paths.unattached
        ]

    def add_connector(self, connector: Connector) -> None:
        """Join the stops: flights of stairs one by one, a lift's stops each with each."""
        if connector.kind is SpaceKind.LIFT:
            rides = list(combinations(connector.stops, 2))
        else:
            rides = list(pairwise(connector.stops))
        for low, high in rides:
            storeys = high.level - low.level
            run = hypot(low.point.x - high.point.x, low.point.y - high.point.y)
            if connector.kind is SpaceKind.LIFT:
                cost, kind = LIFT_WAIT_METRES + LIFT_METRES_PER_LEVEL * storeys, EdgeKind.LIFT
            else:
                cost, kind = STAIRS_METRES_PER_LEVEL * storeys, EdgeKind.STAIRS
            src, dst = (self.aliases[stop_key(connector, stop.level)] for stop in (low, high))
            self._edge(src, dst, max(cost, run), kind, wheelchair=connector.wheelchair)

    def point_at(self, level: int, place: Point) -> str:
        """Return the id of the routing point at a place where there is one."""
        return self._places[level, rounded((place.x, place.y))]

    def _point(self, space: Space, coordinate: Coordinate, key: str | None = None) -> str:
        place = (space.level, coordinate)
        if place not in self._places:
            name = key or f"c-{space.id}-{len(self.points)}"
            self._places[place] = name
            self.points[name] = RoutingPoint(name, *coordinate, space.level, space.id)
        return self._places[place]

    def _walk(self, space: Space, start: Coordinate, end: Coordinate) -> None:
        src, dst = (self._places[space.level, coordinate] for coordinate in (start, end))
        passed = [self.doors[point] for point in (src, dst) if point in self.doors]
        kind = EdgeKind.DOOR if any(map(self._is_closed, passed)) else EdgeKind.WALK
        wheelchair = space.wheelchair and all(door.wheelchair for door in passed)
        length = hypot(start[0] - end[0], start[1] - end[1])
        room = None if space.kind in PASSED_THROUGH else space.id
        exits = tuple(door.id for door in passed if space.id in self.through)
        self._edge(src, dst, length, kind, wheelchair=wheelchair, room=room, exits=exits)

    def _is_closed(self, door: Door) -> bool:
        """Whether it is a door rather than an opening between corridors."""
        kinds = {self.spaces[room].kind for room in door.spaces if room is not None}
        return door.is_entrance or not kinds <= CIRCULATION

    def _edge(  # noqa: PLR0913 - what an edge consists of
        self,
        src: str,
        dst: str,
        distance: float,
        kind: EdgeKind,
        *,
        wheelchair: bool,
        room: str | None = None,
        exits: tuple[str, ...] = (),
    ) -> None:
        if src == dst:
            return
        # Rounded up: a distance must never be shorter than the straight line.
        metres = ceil(round(distance * 1000, 6)) / 1000
        ends = (src, dst) if src <= dst else (dst, src)
        known = self.edges.get(ends)
        # Two doors between the same spaces: one walks by the corridor, not through the room.
        if known is None or (known.room is not None and room is None):
            self.edges[ends] = RouteEdge(*ends, metres, kind, wheelchair, room, exits)

    def _name_room_point(self, space: Space, paths: FloorPaths, middle: Terminal) -> None:
        if middle.key in self.aliases:
            self.room_points[space.id] = self.aliases[middle.key]
            return
        x, y = middle.coordinate
        nearest = min(paths.graph, key=lambda c: (hypot(c[0] - x, c[1] - y), c))
        self.room_points[space.id] = self._places[space.level, nearest]


def _paths_of(space: Space, terminals: Sequence[Terminal]) -> FloorPaths:
    floor = Floor(space.polygon, terminals)
    if space.kind not in WALKED_ALONG or len(terminals) <= 1 or _is_short_hop(terminals):
        direct = star(floor, terminals)
        if direct is not None:
            return direct
    piece = OUTSIDE_PIECE if space.kind is SpaceKind.OUTSIDE else LONGEST_PIECE
    return along_centre_lines(floor, terminals, longest_piece=piece)


def _is_short_hop(terminals: Sequence[Terminal]) -> bool:
    return len(terminals) == 2 and terminals[0].point.distance(terminals[1].point) <= LONGEST_PIECE


def _rooms_of_several_doors(spaces: Mapping[str, Space], doors: Iterable[Door]) -> frozenset[str]:
    counts = Counter(room for door in doors for room in door.spaces if room is not None)
    return frozenset(
        room
        for room, count in counts.items()
        if count > 1 and spaces[room].kind not in PASSED_THROUGH
    )


def _passages(
    spaces: Iterable[Space], doors: Iterable[Door], connectors: Iterable[Connector]
) -> frozenset[str]:
    """Return the rooms one has to walk through to get to other spaces: as few as possible a walk.

    They are the inner nodes of a tree of walks from outside (or the space with most doors) to
    every space, where leaving a room costs one and leaving any other space nothing.
    """
    kinds = {space.id: space.kind for space in spaces}
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(kinds)
    graph.add_edges_from((door.spaces[0], door.spaces[1] or OUTSIDE) for door in doors)
    for connector in connectors:
        graph.add_edges_from(pairwise(stop.room for stop in connector.stops))
    rooms = {room for room, kind in kinds.items() if kind not in PASSED_THROUGH}

    def leaving(here: str, _there: str, _edge: object) -> int:
        return int(here in rooms)

    found: set[str] = set()
    for part in nx.connected_components(graph):
        root = min(part, key=lambda n: (n != OUTSIDE, n in rooms, -graph.degree(n), n))
        walks = nx.single_source_dijkstra_path(graph, root, weight=leaving)
        found |= {room for walk in walks.values() for room in walk[1:-1]}
    return frozenset(found & rooms)


def _unreachable_rooms(
    spaces: Iterable[Space], room_points: Mapping[str, str], reached: set[str]
) -> Iterator[str]:
    lost = [s for s in spaces if s.id != OUTSIDE and room_points[s.id] not in reached]
    for level in sorted({space.level for space in lost}):
        names = [_title(space) for space in lost if space.level == level]
        yield f"level {level}: not reachable on foot from an entrance: {', '.join(names)}"


def _title(space: Space) -> str:
    name = f" ({space.name})" if space.name and space.name != space.id else ""
    return f"{space.kind} {space.id}{name}"
