"""The sample building: its rooms, desks, detectors and walking graph fit together."""

import re
from collections import Counter
from itertools import combinations
from math import hypot

import networkx as nx
import pytest
import shapely
from shapely import LineString, Point

from building.furnishing.furnishing import HOST_MACHINE
from building.model.site_model import (
    CIRCULATION,
    ID_PATTERN,
    EdgeKind,
    SensorKind,
    Site,
    SpaceKind,
)
from building.sample.sample_building import sample_building
from tests.building.edge_lengths import check_edges


def distances(site: Site, start: str) -> dict[str, float]:
    graph: nx.Graph[str] = nx.Graph()
    for edge in site.edges:
        graph.add_edge(edge.src, edge.dst, distance=edge.distance)
    lengths: dict[str, float] = nx.single_source_dijkstra_path_length(
        graph, start, weight="distance"
    )
    return lengths


def test_size(sample: Site) -> None:
    rooms = [s for s in sample.spaces if s.kind not in CIRCULATION]
    assert len(sample.levels) == 3
    assert 40 <= len(rooms) <= 70
    assert 60 <= len(sample.machines) <= 80
    assert sum(door.is_entrance for door in sample.doors) == 2
    assert sample.warnings == ()


def test_rooms_do_not_overlap(sample: Site) -> None:
    for a, b in combinations(sample.spaces, 2):
        if a.level == b.level:
            assert shapely.intersection(a.polygon, b.polygon).area < 1e-6, (a.id, b.id)


def test_rooms_fill_the_outline_of_every_level(sample: Site) -> None:
    for level in sample.levels:
        floor = shapely.union_all([s.polygon for s in sample.spaces if s.level == level.ordinal])
        assert floor.area == pytest.approx(60 * 32)


def test_desks_stand_inside_their_rooms_and_apart(sample: Site) -> None:
    for machine in sample.machines:
        room = sample.space(machine.room)
        assert room.level == machine.level
        assert room.polygon.buffer(-0.8).contains(Point(machine.x, machine.y))
    for a, b in combinations(sample.machines, 2):
        if a.room == b.room:
            assert hypot(a.x - b.x, a.y - b.y) >= 1.2


def test_doors_are_on_the_walls_of_both_rooms(sample: Site) -> None:
    for door in sample.doors:
        for room in filter(None, door.spaces):
            assert sample.space(room).polygon.boundary.distance(door.point) < 0.01


def test_every_machine_is_reachable_from_every_entrance(sample: Site) -> None:
    for door in sample.doors:
        if door.is_entrance:
            reached = distances(sample, door.id)
            assert all(sample.machine_points[m.mid] in reached for m in sample.machines)
            assert all(point in reached for point in sample.room_points.values())


def test_wheelchairs_reach_every_machine_by_the_lift(sample: Site) -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_edges_from((e.src, e.dst) for e in sample.edges if e.wheelchair)
    assert not any(e.wheelchair for e in sample.edges if e.kind is EdgeKind.STAIRS)
    reached = nx.node_connected_component(graph, "door-E000-out")
    assert all(sample.machine_points[m.mid] in reached for m in sample.machines)


def test_edges_are_as_long_as_they_look_and_stay_inside(sample: Site) -> None:
    floors = {
        level.ordinal: shapely.union_all(
            [s.polygon for s in sample.spaces if s.level == level.ordinal]
        ).buffer(0.03)
        for level in sample.levels
    }
    check_edges(sample, floors)


def test_walls_are_crossed_only_at_doors(sample: Site) -> None:
    places = {point.id: point for point in sample.points}
    doors = shapely.union_all([door.point.buffer(0.1) for door in sample.doors])
    rooms = {space.id: space for space in sample.spaces}
    for edge in sample.edges:
        a, b = places[edge.src], places[edge.dst]
        if edge.kind not in {EdgeKind.WALK, EdgeKind.DOOR}:
            continue
        path = shapely.difference(LineString([(a.x, a.y), (b.x, b.y)]), doors)
        crossed = [
            s.id
            for s in rooms.values()
            if s.level == a.level and shapely.intersection(path, s.polygon.buffer(-0.05)).length > 0
        ]
        assert len(crossed) <= 1, edge


def test_stairs_and_lift_join_all_levels(sample: Site) -> None:
    vertical = Counter(e.kind for e in sample.edges if e.kind in {EdgeKind.STAIRS, EdgeKind.LIFT})
    assert vertical == {EdgeKind.STAIRS: 4, EdgeKind.LIFT: 3}


def test_detectors_hang_about_every_fifteen_metres(sample: Site) -> None:
    detectors = [s for s in sample.sensors if s.kind is SensorKind.RFID]
    spacing = [
        min(hypot(a.x - b.x, a.y - b.y) for b in detectors if b.level == a.level and b.id != a.id)
        for a in detectors
    ]
    assert min(spacing) > 5
    assert max(spacing) <= 15
    corridors = {s.id for s in sample.spaces if s.kind is SpaceKind.CORRIDOR}
    for point in sample.points:
        if point.room in corridors and point.id.startswith("c-"):
            assert any(
                d.level == point.level and hypot(d.x - point.x, d.y - point.y) <= 7.5
                for d in detectors
            ), point


def test_detectors_are_at_routing_points_where_corridors_meet(sample: Site) -> None:
    places = {point.id: (point.x, point.y, point.level) for point in sample.points}
    hung = {s.id: (s.x, s.y, s.level) for s in sample.sensors if s.kind is SensorKind.RFID}
    assert {places[p] for p in sample.detector_points.values()} == set(hung.values())
    for level in (0, 1, 2):
        corners = {f"door-C{level}{a}-C{level}{b}" for a in "WE" for b in "SN"}
        assert corners <= set(sample.detector_points.values())


def test_every_desk_has_its_sensors_and_every_room_light_and_temperature(sample: Site) -> None:
    by_machine = Counter((s.mid, s.kind) for s in sample.sensors if s.mid is not None)
    for machine in sample.machines:
        for kind in (SensorKind.SEAT, SensorKind.ENERGY, SensorKind.LOAD):
            assert by_machine[machine.mid, kind] == 1
    by_room = Counter((s.room, s.kind) for s in sample.sensors if s.mid is None)
    for space in sample.spaces:
        if space.kind not in {SpaceKind.STAIRS, SpaceKind.LIFT}:
            assert by_room[space.id, SensorKind.LIGHT] == 1
            assert by_room[space.id, SensorKind.TEMPERATURE] == 1


def test_software_is_common_or_rare(sample: Site) -> None:
    counts = Counter(package.name for m in sample.machines for package in m.software)
    assert counts["Word"] > 30
    assert counts["LaTeX"] > 15
    assert 1 <= counts["Video editor"] <= 4
    assert 1 <= counts["MATLAB"] <= 8
    in_open_labs = {
        package.name
        for m in sample.machines
        if sample.space(m.room).open_lab
        for package in m.software
    }
    assert {"Word", "LaTeX", "Video editor", "MATLAB"} <= in_open_labs


def test_ids_are_topic_levels_and_unique(sample: Site) -> None:
    assert any(m.mid == "lab101-03" and m.room == "L101" for m in sample.machines)
    kinds = [
        [s.id for s in sample.spaces],
        [m.mid for m in sample.machines],
        [m.desk for m in sample.machines],
        [s.id for s in sample.sensors],
        [p.id for p in sample.points],
        [m.id for m in sample.motes],
        [d.id for d in sample.doors],
    ]
    for ids in kinds:
        assert len(set(ids)) == len(ids)
        assert all(ID_PATTERN.fullmatch(name) for name in ids)


def test_one_machine_stands_for_this_computer(sample: Site) -> None:
    (host,) = (m for m in sample.machines if m.is_host)
    assert host.mid == HOST_MACHINE
    assert sample.space(host.room).open_lab
    assert re.fullmatch(r"lab032-\d\d", next(m.mid for m in sample.machines if m.room == "L032"))


def test_building_it_twice_gives_the_same_site(sample: Site) -> None:
    assert sample_building() == sample
