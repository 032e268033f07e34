"""Directions in the sample building: nobody is sent through a third room; networkx judges."""

import contextlib
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest
from shapely import Point

from building.files.provision import provision
from building.model.site_model import Machine, SensorKind, Site
from building.walking.walking_graph import PASSED_THROUGH
from deploy.local.configure import SCHEMAS
from deploy.session import LocalSession, Result
from ui.map.directions import Wish, route_query
from ui.map.site_map import SiteMap, read_site, site_map

STARTS = ("L101", "T031", "M231", "K140", "O024", "C0S", "ST01")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sample: Site) -> Path:
    made = tmp_path_factory.mktemp("site")
    provision(sample, made, gateways=3, host="h")
    return made


@pytest.fixture
def session(folder: Path) -> Iterator[LocalSession]:
    """The building with no reservation, everything lit, and nobody sitting anywhere."""
    script = (SCHEMAS / "building.sql").read_text(encoding="utf-8")
    script = script.replace("path = '", f"path = '{folder}/tables/")
    with contextlib.closing(LocalSession("stream")) as opened:
        opened.run(script)
        yield opened


@pytest.fixture(scope="module")
def known(folder: Path) -> SiteMap:
    return site_map(read_site(folder / "site.geojson"))


def offer(session: LocalSession, machines: list[Machine]) -> None:
    """Make machines free: nobody sits there, and their rooms are lit."""
    ts = "'2026-01-01T00:00:00Z'"
    seats = ", ".join(f"('{m.mid}', '{m.room}', 1.0, {ts})" for m in machines)
    lights = ", ".join(f"('{room}', 'open', 400.0, {ts})" for room in {m.room for m in machines})
    session.run(f"INSERT INTO SeatSensor VALUES {seats}; INSERT INTO RoomSensor VALUES {lights}")


@pytest.fixture(scope="module")
def insides(sample: Site) -> dict[tuple[str, str], set[str]]:
    """The rooms each edge is inside, found from its ends' places, not from what it says."""
    floors = {space.id: space.polygon.buffer(0.01) for space in sample.spaces}
    points = {point.id: point for point in sample.points}
    found: dict[tuple[str, str], set[str]] = {}
    for edge in sample.edges:
        a, b = points[edge.src], points[edge.dst]
        middle = Point((a.x + b.x) / 2, (a.y + b.y) / 2)
        on_level = [space for space in sample.spaces if a.level == b.level == space.level]
        around = [space for space in on_level if floors[space.id].contains(middle)]
        passages = [space for space in around if space.kind in PASSED_THROUGH]
        found[edge.src, edge.dst] = set() if passages else {space.id for space in around}
    return found


def allowed(
    sample: Site,
    insides: dict[tuple[str, str], set[str]],
    own: set[str],
    *,
    wheelchair: bool = False,
) -> "nx.Graph[str]":
    """Return the walking graph without the insides of all rooms but some."""
    graph: nx.Graph[str] = nx.Graph()
    for edge in sample.edges:
        inside = insides[edge.src, edge.dst]
        if (edge.wheelchair or not wheelchair) and (not inside or inside & own):
            graph.add_edge(edge.src, edge.dst, distance=edge.distance)
    return graph


def answer_of(result: Result) -> tuple[float, str, str]:
    """Return distance, machine and path of the one row of a route's answer."""
    ((distance, mid, path),) = result.rows
    assert isinstance(distance, float)
    assert isinstance(mid, str)
    assert isinstance(path, str)
    return distance, mid, path


def rooms_of(path: str, sample: Site) -> list[str]:
    """Return the rooms whose inner points a path has."""
    points = {point.id: point for point in sample.points}
    doors = {door.id for door in sample.doors}
    kinds = {space.id: space.kind for space in sample.spaces}
    rooms = [points[step].room for step in path.split(">") if step not in doors]
    return [room for room in dict.fromkeys(rooms) if kinds[room] not in PASSED_THROUGH]


@pytest.mark.parametrize("wish", [Wish(s, "Word", w) for s in STARTS for w in (False, True)])
def test_a_walk_keeps_to_corridors_and_its_own_two_rooms(
    session: LocalSession,
    sample: Site,
    insides: dict[tuple[str, str], set[str]],
    known: SiteMap,
    wish: Wish,
) -> None:
    with_word = [m for m in sample.machines if any(s.name == "Word" for s in m.software)]
    offer(session, with_word)
    (answer,) = session.run(route_query(wish, known))
    distance, mid, path = answer_of(answer)
    best = min(
        nx.dijkstra_path_length(
            allowed(sample, insides, {wish.start, m.room}, wheelchair=wish.wheelchair),
            sample.room_points[wish.start],
            sample.machine_points[m.mid],
            weight="distance",
        )
        for m in with_word
    )
    assert distance == pytest.approx(best)
    room = next(m.room for m in with_word if m.mid == mid)
    assert set(rooms_of(path, sample)) <= {wish.start, room}


def test_some_walks_would_be_shorter_through_a_third_room(
    sample: Site, insides: dict[tuple[str, str], set[str]]
) -> None:
    """Otherwise the test above could not fail."""
    whole = allowed(sample, insides, {space.id for space in sample.spaces})
    kept = allowed(sample, insides, set())
    starts = [sample.room_points[space.id] for space in sample.spaces if space.level == 0]
    corridors = [point for point in starts if kept.has_node(point)]
    shorter = [
        (src, dst)
        for src, dst in combinations(corridors, 2)
        if nx.dijkstra_path_length(whole, src, dst, weight="distance") + 0.5
        < nx.dijkstra_path_length(kept, src, dst, weight="distance")
    ]
    assert shorter


def test_nobody_is_sent_through_a_reserved_room_or_to_one(
    session: LocalSession, sample: Site, known: SiteMap
) -> None:
    machines = [m for m in sample.machines if any(s.name == "Word" for s in m.software)]
    offer(session, machines)
    text = route_query(Wish("C0S", "Word"), known)
    _, mid, _ = answer_of(session.run(text)[0])
    room = next(m.room for m in machines if m.mid == mid)
    ts, end = "'2026-01-01T00:00:00Z'", "'2026-01-01T09:00:00Z'"
    session.run(f"INSERT INTO RoomReservation VALUES ('{room}', 'x', {ts}, {end}, {ts})")
    _, other, path = answer_of(session.run(text)[0])
    assert next(m.room for m in machines if m.mid == other) != room
    assert room not in rooms_of(path, sample)


def test_a_badge_walks_out_of_the_room_it_is_heard_in(
    session: LocalSession, sample: Site, known: SiteMap
) -> None:
    offer(session, [m for m in sample.machines if any(s.name == "Word" for s in m.software)])
    detector = next(s for s in sample.sensors if s.kind is SensorKind.RFID)
    ts = "'2026-01-01T00:00:00Z'"
    session.run(f"INSERT INTO RfidBeacon VALUES ('{detector.id}', 'badge-1', -50.0, {ts})")
    distance, mid, path = answer_of(session.run(route_query(Wish("badge-1", "Word"), known))[0])
    assert path.split(">")[0] == sample.detector_points[detector.id]
    assert path.split(">")[-1] == sample.machine_points[mid]
    assert distance > 0
