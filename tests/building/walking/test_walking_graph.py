"""Walking graphs of made-up floors, against a visibility graph as the oracle of distances."""

from itertools import combinations, pairwise
from math import hypot

import networkx as nx
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import LineString, Point, Polygon, box

from building.model.site_model import (
    Connector,
    Door,
    EdgeKind,
    Machine,
    Space,
    SpaceKind,
    Stop,
)
from building.walking.walking_graph import (
    LIFT_METRES_PER_LEVEL,
    LIFT_WAIT_METRES,
    STAIRS_METRES_PER_LEVEL,
    WalkingGraph,
    derive_walking_graph,
    middle_of,
)


def space(rid: str, floor: Polygon, kind: SpaceKind = SpaceKind.ROOM, level: int = 0) -> Space:
    return Space(rid, rid, kind, level, floor)


def machine(mid: str, room: str, x: float, y: float) -> Machine:
    return Machine(mid, room, f"{room}-{mid}", x, y, 0, mid, "cpu", 1)


def as_graph(walking: WalkingGraph) -> "nx.Graph[str]":
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(point.id for point in walking.points)
    for edge in walking.edges:
        graph.add_edge(edge.src, edge.dst, distance=edge.distance, kind=edge.kind)
    return graph


def walked(walking: WalkingGraph, src: str, dst: str) -> float:
    length: float = nx.dijkstra_path_length(as_graph(walking), src, dst, weight="distance")
    return length


def shortest_inside(floor: Polygon, start: Point, end: Point) -> float:
    """Return the length of the shortest path inside a polygon: it turns at corners only."""
    region = floor.buffer(1e-6)
    corners = [Point(c) for ring in (floor.exterior, *floor.interiors) for c in ring.coords[:-1]]
    graph: nx.Graph[int] = nx.Graph()
    places = [start, end, *corners]
    for i, j in combinations(range(len(places)), 2):
        line = LineString([places[i], places[j]])
        if region.covers(line):
            graph.add_edge(i, j, length=line.length)
    length: float = nx.dijkstra_path_length(graph, 0, 1, weight="length")
    return length


@st.composite
def corridors(draw: st.DrawFn) -> tuple[Polygon, list[Point]]:
    """Corridors of a few metres' width along a walk in four directions, with doors on walls."""
    x, y = 0.0, 0.0
    parts = []
    half = draw(st.sampled_from([1.0, 1.5, 3.0]))
    for _ in range(draw(st.integers(1, 5))):
        dx, dy = draw(st.sampled_from([(1, 0), (0, 1), (-1, 0), (0, -1)]))
        length = draw(st.integers(4, 20))
        line = LineString([(x, y), (x + dx * length, y + dy * length)])
        parts.append(line.buffer(half, cap_style="square", join_style="mitre"))
        x, y = x + dx * length, y + dy * length
    floor = shapely.simplify(shapely.union_all(parts), 0)
    assert isinstance(floor, Polygon)
    shares = draw(st.lists(st.integers(0, 99), min_size=3, max_size=6, unique=True))
    outline = floor.boundary
    points = [outline.interpolate(share / 100, normalized=True) for share in sorted(shares)]
    return floor, [Point(round(p.x, 3), round(p.y, 3)) for p in points]


@given(corridors())
def test_any_corridor_is_walked_inside_and_without_great_detours(
    drawn: tuple[Polygon, list[Point]],
) -> None:
    floor, places = drawn
    doors = [Door(f"door{i}", ("C", None), 0, point) for i, point in enumerate(places)]
    walking = derive_walking_graph([space("C", floor, SpaceKind.CORRIDOR)], doors)
    assert walking.warnings == ()
    points = {p.id: (p.x, p.y) for p in walking.points}
    region = floor.buffer(0.03)
    for edge in walking.edges:
        a, b = points[edge.src], points[edge.dst]
        assert region.covers(LineString([a, b]))
        straight = hypot(a[0] - b[0], a[1] - b[1])
        assert straight - 1e-9 <= edge.distance <= straight + 0.002
    for i, j in combinations(range(len(places)), 2):
        if places[i].distance(places[j]) < 0.01:
            continue
        best = shortest_inside(floor, places[i], places[j])
        found = walked(walking, f"door{i}", f"door{j}")
        assert found >= best - 0.05
        assert found <= 1.25 * best + 8


@given(st.integers(3, 9), st.integers(0, 10_000))
def test_any_polygon_with_corners_joins_all_its_doors(corners: int, seed: int) -> None:
    """A star-shaped polygon with random radii: sharp corners, any angles."""
    radii = [3 + ((seed * 7919 + i * 104729) % 1000) / 60 for i in range(corners)]
    floor = Polygon(
        [
            shapely.affinity.rotate(Point(r, 0), 360 * i / corners, origin=(0, 0)).coords[0]
            for i, r in enumerate(radii)
        ]
    )
    middles = [
        LineString(side).interpolate(0.5, normalized=True)
        for side in pairwise(floor.exterior.coords)
    ]
    doors = [Door(f"door{i}", ("A", None), 0, point) for i, point in enumerate(middles)]
    walking = derive_walking_graph([space("A", floor, SpaceKind.AREA)], doors)
    assert walking.warnings == ()
    assert nx.is_connected(as_graph(walking))


def test_a_convex_room_is_walked_straight_from_door_to_desk() -> None:
    door = Door("door", ("R", None), 0, Point(0, 4))
    walking = derive_walking_graph([space("R", box(0, 0, 6, 8))], [door], [], [
        machine("near", "R", 1, 6), machine("far", "R", 5, 7),
    ])  # fmt: skip
    assert walked(walking, "door", "d-near") == pytest.approx(hypot(1, 2), abs=0.002)
    assert walked(walking, "door", "d-far") == pytest.approx(hypot(5, 3), abs=0.002)
    assert walking.room_points == {"R": "r-R"}
    assert walking.machine_points == {"near": "d-near", "far": "d-far"}


def test_the_way_round_a_corner_does_not_go_through_the_wall() -> None:
    u_shape = Polygon([(0, 0), (20, 0), (20, 20), (16, 20), (16, 4), (4, 4), (4, 20), (0, 20)])
    doors = [
        Door("left", ("U", None), 0, Point(2, 20)),
        Door("right", ("U", None), 0, Point(18, 20)),
    ]
    walking = derive_walking_graph([space("U", u_shape)], doors)
    best = shortest_inside(u_shape, Point(2, 20), Point(18, 20))
    assert best <= walked(walking, "left", "right") <= 1.25 * best


def test_what_stands_in_a_hall_is_walked_round() -> None:
    hall = box(0, 0, 40, 30).difference(box(15, 5, 25, 25))
    assert isinstance(hall, Polygon)
    doors = [
        Door("west", ("H", None), 0, Point(0, 15)),
        Door("east", ("H", None), 0, Point(40, 15)),
    ]
    walking = derive_walking_graph([space("H", hall, SpaceKind.AREA)], doors)
    best = shortest_inside(hall, Point(0, 15), Point(40, 15))
    assert best - 0.01 <= walked(walking, "west", "east") <= 1.2 * best + 4


def test_a_door_joins_two_rooms_and_its_edges_are_door_edges() -> None:
    rooms = [space("A", box(0, 0, 4, 4)), space("B", box(4, 0, 8, 4))]
    doors = [Door("d", ("A", "B"), 0, Point(4, 2)), Door("out", ("A", None), 0, Point(0, 2))]
    walking = derive_walking_graph(rooms, doors)
    assert walked(walking, "r-A", "r-B") == pytest.approx(4, abs=0.01)
    assert {e.kind for e in walking.edges if "d" in {e.src, e.dst}} == {EdgeKind.DOOR}


def test_openings_between_corridors_are_no_doors() -> None:
    rooms = [
        space("A", box(0, 0, 20, 2), SpaceKind.CORRIDOR),
        space("B", box(20, 0, 40, 2), SpaceKind.CORRIDOR),
    ]
    doors = [Door("d", ("A", "B"), 0, Point(20, 1)), Door("out", ("A", None), 0, Point(0, 1))]
    walking = derive_walking_graph(rooms, doors)
    assert {e.kind for e in walking.edges if "d" in {e.src, e.dst}} == {EdgeKind.WALK}


def test_a_lift_waits_once_and_stairs_go_flight_by_flight() -> None:
    levels = range(3)
    wells = [
        space(f"{kind}{level}", box(10 * i, 0, 10 * i + 3, 3), kind, level)
        for i, kind in enumerate((SpaceKind.STAIRS, SpaceKind.LIFT))
        for level in levels
    ]
    connectors = [
        Connector(
            kind.value,
            kind,
            tuple(Stop(level, f"{kind}{level}", middle_of(box(10 * i, 0, 10 * i + 3, 3)))
                  for level in levels),
            wheelchair=kind is SpaceKind.LIFT,
        )
        for i, kind in enumerate((SpaceKind.STAIRS, SpaceKind.LIFT))
    ]  # fmt: skip
    walking = derive_walking_graph(wells, [], connectors)
    assert walked(walking, "s-stairs-0", "s-stairs-2") == 2 * STAIRS_METRES_PER_LEVEL
    assert walked(walking, "s-lift-0", "s-lift-2") == LIFT_WAIT_METRES + 2 * LIFT_METRES_PER_LEVEL
    assert {e.wheelchair for e in walking.edges if e.kind is EdgeKind.STAIRS} == {False}
    assert {e.wheelchair for e in walking.edges if e.kind is EdgeKind.LIFT} == {True}


def test_unreachable_rooms_are_named() -> None:
    rooms = [
        space("A", box(0, 0, 4, 4)),
        Space("B", "Vault", SpaceKind.SERVICE, 0, box(4, 0, 8, 4)),
    ]
    walking = derive_walking_graph(rooms, [Door("out", ("A", None), 0, Point(0, 2))])
    (warning,) = walking.warnings
    assert "service B (Vault)" in warning
    assert "level 0" in warning
    assert "room A" not in warning


def test_rooms_are_passages_only_where_there_is_no_other_way() -> None:
    """Y and X are beside a corridor, I is behind both of them; Z has two doors to the corridor."""
    spaces = [
        space("C", box(0, 0, 30, 2), SpaceKind.CORRIDOR),
        space("Y", box(0, 2, 10, 8)),
        space("X", box(10, 2, 20, 8)),
        space("Z", box(20, 2, 30, 8)),
        space("I", box(0, 8, 20, 12)),
    ]
    doors = [
        Door("y", ("Y", "C"), 0, Point(2, 2)),
        Door("yx", ("Y", "X"), 0, Point(10, 5)),
        Door("x", ("X", "C"), 0, Point(18, 2)),
        Door("z1", ("Z", "C"), 0, Point(21, 2)),
        Door("z2", ("Z", "C"), 0, Point(29, 2)),
        Door("i", ("I", "Y"), 0, Point(5, 8)),
        Door("ix", ("I", "X"), 0, Point(15, 8)),
    ]
    walking = derive_walking_graph(spaces, doors)
    exits = {(edge.room, door) for edge in walking.edges for door in edge.exits}
    own = {("I", "i"), ("I", "ix"), ("Z", "z1"), ("Z", "z2")}
    assert exits == {*own, ("X", "yx"), ("X", "x"), ("X", "ix")}  # one gets to I through Y
    rooms = {edge.room for edge in walking.edges}
    assert rooms == {None, "Y", "X", "Z", "I"}
    assert not any(edge.exits for edge in walking.edges if edge.room is None)


def test_a_wheelchair_does_not_pass_a_narrow_door() -> None:
    rooms = [space("A", box(0, 0, 4, 4)), space("B", box(4, 0, 8, 4))]
    narrow = Door("d", ("A", "B"), 0, Point(4, 2), wheelchair=False)
    walking = derive_walking_graph(rooms, [narrow, Door("out", ("A", None), 0, Point(0, 2))])
    assert {e.wheelchair for e in walking.edges if "d" in {e.src, e.dst}} == {False}
    assert all(e.wheelchair for e in walking.edges if "d" not in {e.src, e.dst})
