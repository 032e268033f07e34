"""Importing OSM indoor maps: made-up small ones, and two real ones where they are at hand."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import Point

from building.model.site_model import (
    CIRCULATION,
    ID_PATTERN,
    OUTSIDE,
    VERTICAL,
    EdgeKind,
    SensorKind,
    Site,
    SiteError,
    SpaceKind,
)
from building.osm.osm_indoor import read_osm_indoor
from streamsql.errors import DeploymentError
from tests.building.edge_lengths import check_edges

METRE = 1 / 111_194.9
"""Degrees of latitude, and near the equator of longitude, in a metre."""


def box_at(x0: float, y0: float, x1: float, y1: float) -> dict[str, Any]:
    ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]
    return {
        "type": "Polygon",
        "coordinates": [[[x * METRE, y * METRE] for x, y in ring]],
    }


def point_at(x: float, y: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [x * METRE, y * METRE]}


def tagged(identity: str, geometry: dict[str, Any], **tags: str) -> dict[str, Any]:
    return {"type": "Feature", "id": identity, "properties": tags, "geometry": geometry}


def small_building() -> list[dict[str, Any]]:
    """A corridor with two rooms, a lift and stairs to an upper corridor with one room."""
    return [
        tagged("way/1", box_at(0, 4, 20, 6), indoor="corridor", level="0"),
        tagged("way/2", box_at(0, 6, 8, 14), indoor="room", level="0", name="Café", shop="yes"),
        tagged("way/3", box_at(8, 6, 20, 14), indoor="room", level="0", room="office"),
        tagged("way/4", box_at(0, 0, 3, 4), indoor="room", level="0;1", elevator="yes"),
        tagged("way/5", box_at(3, 0, 8, 4), indoor="corridor", level="0-1", stairs="yes"),
        tagged("way/6", box_at(0, 4, 20, 6), indoor="corridor", level="1"),
        tagged("way/7", box_at(0, 6, 20, 14), indoor="room", level="1", name="Loft"),
        tagged("node/1", point_at(20, 5), entrance="main", level="0"),
    ]


def write(folder: Path, features: list[dict[str, Any]]) -> Path:
    path = folder / "map.geojson"
    document = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def read(folder: Path, *features: dict[str, Any]) -> Site:
    return read_osm_indoor(write(folder, list(features)))


def as_graph(site: Site) -> "nx.Graph[str]":
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(point.id for point in site.points)
    graph.add_edges_from((edge.src, edge.dst) for edge in site.edges)
    return graph


def doors_between(site: Site, a: str, b: str | None) -> int:
    return sum(set(door.spaces) == {a, b} for door in site.doors)


def test_a_small_building(tmp_path: Path) -> None:
    site = read(tmp_path, *small_building())
    assert [level.ordinal for level in site.levels] == [0, 1]
    kinds = {space.id: space.kind for space in site.spaces}
    assert kinds == {
        "way-1": SpaceKind.CORRIDOR,
        "Cafe": SpaceKind.SHOP,
        "way-3": SpaceKind.OFFICE,
        "way-4_0": SpaceKind.LIFT,
        "way-4_1": SpaceKind.LIFT,
        "way-5_0": SpaceKind.STAIRS,
        "way-5_1": SpaceKind.STAIRS,
        "way-6": SpaceKind.CORRIDOR,
        "Loft": SpaceKind.ROOM,
    }
    assert site.space("Cafe").name == "Café"
    assert site.space("Cafe").polygon.area == pytest.approx(64, rel=0.01)
    assert site.warnings == ()
    assert nx.is_connected(as_graph(site))
    assert Counter(e.kind for e in site.edges)[EdgeKind.LIFT] == 1
    assert Counter(e.kind for e in site.edges)[EdgeKind.STAIRS] == 1
    for room in ("Cafe", "way-3", "way-4_0", "way-5_0"):
        assert doors_between(site, room, "way-1") == 1
    assert doors_between(site, "way-1", None) == 1
    assert doors_between(site, "Cafe", "way-3") == 0


def test_coordinates_are_metres_from_the_middle(tmp_path: Path) -> None:
    features = small_building()
    for feature in features:
        text = json.dumps(feature["geometry"])
        feature["geometry"] = shift(json.loads(text), 5.0, 45.0)
    site = read(tmp_path, *features)
    assert site.origin is not None
    assert site.origin[1] == pytest.approx(45.0, abs=0.001)
    # A degree of longitude is shorter there by the cosine of the latitude.
    x0, y0, x1, y1 = site.space("way-1").polygon.bounds
    assert x1 - x0 == pytest.approx(20 * math.cos(math.radians(45)), rel=0.001)
    assert y1 - y0 == pytest.approx(2, rel=0.01)


def shift(geometry: dict[str, Any], longitude: float, latitude: float) -> dict[str, Any]:
    def moved(value: Any) -> Any:
        if isinstance(value[0], list):
            return [moved(item) for item in value]
        return [value[0] + longitude, value[1] + latitude]

    return {**geometry, "coordinates": moved(geometry["coordinates"])}


def test_machines_and_sensors_stand_in_reachable_rooms(tmp_path: Path) -> None:
    site = read(tmp_path, *small_building())
    graph = as_graph(site)
    entrance = next(door.id for door in site.doors if door.is_entrance)
    for machine in site.machines:
        assert site.space(machine.room).polygon.contains(Point(machine.x, machine.y))
        assert nx.has_path(graph, entrance, site.machine_points[machine.mid])
    assert sum(machine.is_host for machine in site.machines) == 1
    assert {"Word", "LaTeX"} & {p.name for m in site.machines for p in m.software}
    kinds = {sensor.kind for sensor in site.sensors}
    assert {SensorKind.SEAT, SensorKind.LIGHT, SensorKind.TEMPERATURE, SensorKind.RFID} <= kinds


def test_a_mapped_door_is_used_instead_of_a_derived_one(tmp_path: Path) -> None:
    door = tagged("node/9", point_at(1, 6), door="hinged", level="0", wheelchair="no")
    site = read(tmp_path, *small_building(), door)
    (used,) = (d for d in site.doors if "Cafe" in d.spaces)
    assert used.id == "door-node-9"
    assert not used.derived
    assert not used.wheelchair
    place = next(v for f in site.spaces if f.id == "Cafe" for v in [f.polygon.bounds[0] + 1])
    assert used.point.x == pytest.approx(place, abs=0.05)


def test_a_room_behind_a_room(tmp_path: Path) -> None:
    store = tagged("way/8", box_at(0, 14, 8, 18), indoor="room", level="0", name="Store")
    site = read(tmp_path, *small_building(), store)
    assert doors_between(site, "Store", "Cafe") == 1
    assert nx.is_connected(as_graph(site))


def test_a_kiosk_is_cut_out_of_the_hall(tmp_path: Path) -> None:
    hall = tagged("way/1", box_at(0, 0, 30, 30), indoor="area", level="0", name="Hall")
    kiosk = tagged("way/2", box_at(10, 10, 20, 20), indoor="room", level="0", name="Kiosk")
    site = read(tmp_path, hall, kiosk, tagged("n", point_at(0, 15), entrance="yes", level="0"))
    hall_floor, kiosk_floor = site.space("Hall").polygon, site.space("Kiosk").polygon
    assert shapely.intersection(hall_floor, kiosk_floor).area < 0.01
    assert hall_floor.area == pytest.approx(800, rel=0.01)
    assert doors_between(site, "Kiosk", "Hall") == 1


def test_a_wall_closes_a_corridor(tmp_path: Path) -> None:
    wall = {"type": "LineString", "coordinates": [[10 * METRE, 3 * METRE], [10 * METRE, 7 * METRE]]}
    site = read(tmp_path, *small_building(), tagged("way/9", wall, indoor="wall", level="0"))
    parts = [space.id for space in site.spaces if space.source.startswith("feature 'way/1'")]
    assert parts == ["way-1", "way-1_part2"]
    assert doors_between(site, "way-1", "way-1_part2") in {0, 1}


def test_parts_joined_only_outside_get_an_outside(tmp_path: Path) -> None:
    features = [f for f in small_building() if "level" in f["properties"]]
    cabin = tagged("way/8", box_at(40, 0, 50, 10), indoor="room", level="0", name="Cabin")
    site = read(tmp_path, *features, cabin)
    assert doors_between(site, "Cabin", OUTSIDE) == 1
    assert nx.is_connected(as_graph(site))
    outside = site.space(OUTSIDE)
    for space in site.spaces:
        if space.level == 0 and space.id != OUTSIDE:
            assert shapely.intersection(outside.polygon, space.polygon).area < 0.1
    assert not any(s.room == OUTSIDE for s in site.sensors)


def test_repeated_rooms_are_rooms_of_their_own(tmp_path: Path) -> None:
    features = small_building()
    features[6]["properties"]["repeat_on"] = "2-3"
    features[3]["properties"]["level"] = "0-3"
    features[5]["properties"]["repeat_on"] = "2;3"
    site = read(tmp_path, *features)
    assert {s.id for s in site.spaces if s.name == "Loft"} == {"Loft_1", "Loft_2", "Loft_3"}
    (lift,) = (c for c in site.connectors if c.kind is SpaceKind.LIFT)
    assert [stop.level for stop in lift.stops] == [0, 1, 2, 3]


def test_stairs_drawn_as_a_line_and_a_lift_drawn_as_a_point(tmp_path: Path) -> None:
    steps = {
        "type": "LineString",
        "coordinates": [[15 * METRE, 5 * METRE], [19 * METRE, 5 * METRE]],
    }
    features = [f for f in small_building() if f["id"] not in {"way/4", "way/5"}]
    features += [
        tagged("way/8", steps, highway="steps", level="0;1", incline="up"),
        tagged("node/8", point_at(2, 5), highway="elevator", level="0;1"),
    ]
    site = read(tmp_path, *features)
    by_kind = {c.kind: c for c in site.connectors}
    low, high = by_kind[SpaceKind.STAIRS].stops
    assert (low.room, high.room) == ("way-1", "way-6")
    assert high.point.x - low.point.x == pytest.approx(4, abs=0.05)
    assert [stop.room for stop in by_kind[SpaceKind.LIFT].stops] == ["way-1", "way-6"]
    assert by_kind[SpaceKind.LIFT].wheelchair
    assert nx.is_connected(as_graph(site))


def test_a_shop_on_two_levels_has_stairs_inside_and_says_so(tmp_path: Path) -> None:
    shop = tagged("way/8", box_at(20, 0, 40, 14), indoor="room", level="0;1", name="Store")
    site = read(tmp_path, *small_building(), shop)
    assert any(c.id == "inside-Store_0" for c in site.connectors)
    assert any("way/8" in w and "stairs inside it are assumed" in w for w in site.warnings)


@pytest.mark.parametrize(
    ("tags", "geometry", "warning"),
    [
        ({"indoor": "room"}, box_at(0, 20, 5, 25), "way/66.*no 'level'"),
        ({"indoor": "room", "level": "0.5"}, box_at(0, 20, 5, 25), "way/66.*between storeys"),
        ({"indoor": "room", "level": "0"}, box_at(0, 20, 0.5, 20.5), "way/66.*smaller than"),
        ({"indoor": "room", "level": "0"}, point_at(3, 3), "way/66.*must be a Polygon"),
        ({"door": "yes", "level": "0"}, point_at(300, 3), "way/66.*no room near this door"),
        (
            {"highway": "elevator", "level": "0"},
            point_at(15, 5),
            "way/66.*does not connect two levels",
        ),
    ],
)
def test_incomplete_features_are_left_out_and_named(
    tmp_path: Path, tags: dict[str, str], geometry: dict[str, Any], warning: str
) -> None:
    site = read(tmp_path, *small_building(), tagged("way/66", geometry, **tags))
    (found,) = site.warnings
    assert re.search(warning, found), found


BOW_TIE = {
    "type": "Polygon",
    "coordinates": [
        [[0, 0], [9 * METRE, 9 * METRE], [9 * METRE, 0], [0, 9 * METRE], [0, 0]],
    ],
}


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([], "no rooms: no feature has indoor=room"),
        ([tagged("way/1", box_at(0, 0, 9, 9), building="yes")], "no rooms"),
        (
            [tagged("way/1", box_at(0, 0, 9, 9), indoor="corridor", level="0")],
            "no rooms: only corridors",
        ),
        ([tagged("way/1", box_at(0, 0, 9, 9), indoor="room")], "way/1.*no 'level'"),
        (
            [tagged("way/1", box_at(0, 0, 9, 9), indoor="room", level="upstairs")],
            "way/1.*level='upstairs' is not a level",
        ),
        (
            [tagged("way/1", box_at(0, 0, 9, 9), indoor="room", level="0", repeat_on="x")],
            "way/1.*repeat_on='x'",
        ),
        (
            [tagged("way/1", BOW_TIE, indoor="room", level="0", name="Bow")],
            r"way/1.*Bow.*broken polygon.*Self-intersection",
        ),
        (
            [
                tagged("way/1", box_at(0, 0, 9, 9), indoor="room", level="0"),
                tagged("way/2", box_at(90_000, 0, 90_009, 9), indoor="room", level="0"),
            ],
            r"way/\d.*m from the middle",
        ),
    ],
)
def test_broken_maps_are_refused(
    tmp_path: Path, features: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(SiteError, match=message):
        read(tmp_path, *features)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["room", "corridor", "area", "wall", "x"]),
            st.sampled_from(["0", "1", "0;1", "-1-1", "0.5", None]),
            st.tuples(st.integers(0, 30), st.integers(0, 30)),
            st.tuples(st.integers(1, 20), st.integers(1, 20)),
            st.sampled_from([{}, {"elevator": "yes"}, {"stairs": "yes"}, {"name": "A"}]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_heap_of_boxes_gives_a_sound_site_or_an_error(
    tmp_path_factory: pytest.TempPathFactory,
    boxes: list[tuple[str, str | None, tuple[int, int], tuple[int, int], dict[str, str]]],
) -> None:
    features = []
    for number, (indoor, level, (x, y), (width, depth), more) in enumerate(boxes):
        tags = {"indoor": indoor, **more} | ({"level": level} if level is not None else {})
        features.append(tagged(f"way/{number}", box_at(x, y, x + width, y + depth), **tags))
    folder = tmp_path_factory.mktemp("heap")
    try:
        site = read(folder, *features)
    except DeploymentError:
        return
    check_soundness(site)


def check_soundness(site: Site) -> None:
    """Spaces are disjoint, ids usable, and edges straight, inside and as long as they look."""
    for one, two in combinations(site.spaces, 2):
        if one.level == two.level:
            assert shapely.intersection(one.polygon, two.polygon).area < 0.2, (one.id, two.id)
    ids = [s.id for s in site.spaces] + [m.mid for m in site.machines]
    ids += [s.id for s in site.sensors] + [p.id for p in site.points]
    assert all(ID_PATTERN.fullmatch(name) for name in ids)
    places = {point.id: point for point in site.points}
    assert len(places) == len(site.points)
    floors = {
        level.ordinal: shapely.union_all(
            [s.polygon.buffer(0.35) for s in site.spaces if s.level == level.ordinal]
        )
        for level in site.levels
    }
    check_edges(site, floors)
    for space in site.spaces:
        assert site.room_points[space.id] in places
    for machine in site.machines:
        assert site.space(machine.room).polygon.contains(Point(machine.x, machine.y))


def test_caserne_can_be_walked_on_all_levels(shared_file: Callable[[str], Path]) -> None:
    site = read_osm_indoor(shared_file("osm-indoor/caserne.geojson"))
    assert [level.ordinal for level in site.levels] == [-1, 0, 1]
    assert site.name == "Caserne de Bonne"
    check_soundness(site)
    graph = as_graph(site)
    entrances = [door.id for door in site.doors if door.is_entrance and not door.derived]
    assert len(entrances) >= 5
    for level in (-1, 0, 1):
        rooms = [s for s in site.spaces if s.level == level and s.kind not in CIRCULATION]
        assert rooms
        for room in rooms:
            assert nx.has_path(graph, entrances[0], site.room_points[room.id]), room.id
    assert not any("not reachable" in warning for warning in site.warnings)
    assert any("way/398056943" in w and "no 'level'" in w for w in site.warnings)
    assert {m.level for m in site.machines} == {-1, 0, 1}
    assert {c.kind for c in site.connectors} == VERTICAL


def test_gare_de_l_est_without_any_door(shared_file: Callable[[str], Path]) -> None:
    site = read_osm_indoor(shared_file("osm-indoor/gare-de-l-est.geojson"))
    assert [level.ordinal for level in site.levels] == [-1, 0]
    check_soundness(site)
    graph = as_graph(site)
    entrance = next(door.id for door in site.doors if door.is_entrance and not door.derived)
    for space in site.spaces:
        if space.level == 0:
            assert nx.has_path(graph, entrance, site.room_points[space.id]), space.id
    # The map has neither stairs nor lifts; that must be said, with the names of the rooms.
    (lost,) = (warning for warning in site.warnings if "not reachable" in warning)
    assert lost.startswith("level -1")
    assert "shop Hema" in lost
    assert {m.level for m in site.machines} == {0}
    assert any("way/-228111" in w and "repaired" in w for w in site.warnings)


def test_importing_twice_gives_the_same_site(tmp_path: Path) -> None:
    assert read(tmp_path, *small_building()) == read(tmp_path, *small_building())
