"""Simulated motes: a world that is a function of seed and time, and does what it is told."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building.files.provision import provision
from building.sample.sample_building import sample_building
from gateway.connectors.reading import Reading
from gateway.intake.validation import event_of
from gateway.testing import SECOND, until
from gateway.wrappers.motes import world as simulation
from gateway.wrappers.motes.settings import Detector, Peer, load_detectors, load_field
from gateway.wrappers.motes.world import World
from gateway.wrappers.motes.wrapper import ACTIONS, PIN, MotesWrapper
from gateway.wrappers.wrapper import Simulation, WrapperContext
from streamsql.errors import DeploymentError
from tests.gateway.wrappers.building import building_sources

NOW = 1_800_000_000 * SECOND
PLACE = {"x": 3.0, "y": 4.0, "level": 0}
FIELD: dict[str, Any] = {
    "gateway": "gw-1",
    "rooms": ["L101"],
    "motes": [
        {"sensor": "s1", "kind": "seat", "rid": "L101", "mid": "ws-1", "unit": "kg", **PLACE},
        {"sensor": "s2", "kind": "seat", "rid": "L101", "mid": "ws-2", "unit": "kg", **PLACE},
        {"sensor": "l1", "kind": "light", "rid": "L101", "mid": None, "unit": "lx", **PLACE},
        {"sensor": "t1", "kind": "temperature", "rid": "L101", "mid": None, **PLACE},
        {"sensor": "e1", "kind": "energy", "rid": "L101", "mid": "ws-1", **PLACE},
        {"sensor": "e2", "kind": "energy", "rid": "L101", "mid": "ws-2", **PLACE},
        {"sensor": "c2", "kind": "load", "rid": "L101", "mid": "ws-2", **PLACE},
        {"sensor": "r1", "kind": "rfid", "rid": "L101", "mid": None, **PLACE},
        {"sensor": "x1", "kind": "seat", "rid": "L101", "mid": None, **PLACE},
        {"sensor": "x2", "kind": "of another kind", "rid": "L101", "mid": None, **PLACE},
    ],
    "soft": [],
    "nodes": [],
    "peers": [
        {"src": "n1", "dst": "n2", "distance": 2.0},
        {"src": "n1", "dst": "n3", "distance": 60.0},
    ],
}
DETECTORS = "detector,x,y,level,point\nr1,3.0,4.0,0,p\nr2,30.0,4.0,0,p\nr3,3.0,4.0,1,p\n"


class Field:
    """Motes on a clock of their own."""

    def __init__(self, folder: Path, **options: Any) -> None:
        (folder / "gw-1.json").write_text(json.dumps(FIELD))
        (folder / "detectors.csv").write_text(DETECTORS)
        self.now = NOW
        self.emitted: list[Reading] = []
        self.problems: list[str] = []
        self.wrapper = MotesWrapper()
        plain = {
            "file": str(folder / "gw-1.json"),
            "detectors": str(folder / "detectors.csv"),
            "period": 0.25,
            "turnover": 1e9,
            "visitors": 2,
        }
        self.context = WrapperContext(
            "gw-1",
            lambda: self.now,
            self.emitted.extend,
            self.problems.append,
            {**plain, **options},
        )

    def of(self, source: str) -> list[Reading]:
        return [reading for reading in self.emitted if reading.source == source]

    def newest(self, source: str, **key: str) -> dict[str, Any]:
        found = [r for r in self.of(source) if key.items() <= dict(r.values).items()]
        return dict(found[-1].values)


def run(folder: Path, scenario: Callable[[Field], Any], **options: Any) -> Field:
    field = Field(folder, **options)

    async def whole() -> None:
        task = asyncio.create_task(field.wrapper.run(field.context))
        await until(lambda: len(field.of("link")) >= 2)
        await scenario(field)
        assert not task.done()
        task.cancel()

    asyncio.run(whole())
    return field


def test_every_reading_fits_the_buildings_schema_and_comes_from_a_sensor_of_ours(
    tmp_path: Path,
) -> None:
    async def scenario(field: Field) -> None:
        for minute in range(10):
            field.now = NOW + minute * 60 * SECOND
            count = len(field.emitted)
            await until(lambda count=count: len(field.emitted) > count + 9)  # type: ignore[misc]

    field = run(tmp_path, scenario, live_machine="ws-1")
    sources = building_sources()
    for reading in field.emitted:
        event_of(reading, sources[reading.source], field.now)
    assert {r.source for r in field.emitted} == set(MotesWrapper.streams)
    known = {mote["sensor"] for mote in FIELD["motes"]}
    assert {r.sensor for r in field.emitted if r.source != "link"} <= known
    assert {r.values["mid"] for r in field.of("seatsensor")} == {"ws-1", "ws-2"}
    assert {r.values["mid"] for r in field.of("energymeter")} == {"ws-1", "ws-2"}
    assert {r.values["mid"] for r in field.of("machineload")} == {"ws-2"}, "ws-1 is measured"
    assert field.problems == []


def test_links_come_and_go_with_the_distance(tmp_path: Path) -> None:
    async def scenario(_field: Field) -> None:
        await asyncio.sleep(0)

    links = run(tmp_path, scenario).of("link")
    assert {r.values["dst"]: r.delete for r in links} == {"n2": False, "n3": True}
    near = next(dict(r.values) for r in links if not r.delete)
    assert isinstance(near["pdr"], float)
    assert near["cost"] == round(1 / near["pdr"], 3)


def test_it_does_what_it_is_told_and_says_so_at_once(tmp_path: Path) -> None:
    async def scenario(field: Field) -> None:
        told = field.wrapper.command
        for action, taken in (("sit", True), ("leave", False), ("sit", True)):
            assert told(action, {"mid": "ws-2"}) == f"{action} at ws-2"
            assert (field.newest("seatsensor", mid="ws-2")["weightlevel"] > 5.0) is taken
        for action, status in (("lights_off", "closed"), ("lights_on", "open")):
            assert told(action, {"rid": "L101"}) == f"{action} in L101"
            assert field.newest("roomsensor", rid="L101")["status"] == status
        before = field.newest("temperature", rid="L101")["celsius"]
        assert told("heat", {"rid": "L101", "celsius": 10}) == "L101 heated by 10 degrees"
        assert field.newest("temperature", rid="L101")["celsius"] == pytest.approx(
            before + 10, abs=2
        )
        # A seat stays as it was told for ten minutes, whoever comes by.
        count = len(field.emitted)
        await until(lambda: len(field.emitted) > count + 20)
        assert field.newest("seatsensor", mid="ws-2")["weightlevel"] > 5.0

    field = run(tmp_path, scenario, turnover=0.001)
    assert isinstance(field.wrapper, Simulation)
    assert len({r.values["weightlevel"] for r in field.of("seatsensor")}) > 5, "others come and go"


@pytest.mark.parametrize(
    ("action", "arguments", "complaint"),
    [
        ("sit", {"mid": "ws-9"}, "no seat sensor of 'ws-9'"),
        ("sit", {}, "no seat sensor"),
        ("lights_off", {"rid": "L999"}, "no light sensor of 'L999'"),
        ("heat", {"rid": "L101", "celsius": "hot"}, "could not convert"),
        ("heat", {"rid": "L101", "celsius": 1e9}, "between"),
        ("dance", {}, "unknown action 'dance'; known: sit"),
    ],
)
def test_what_it_cannot_do_is_said(
    tmp_path: Path, action: str, arguments: dict[str, Any], complaint: str
) -> None:
    async def scenario(field: Field) -> None:
        with pytest.raises(ValueError, match=complaint):
            field.wrapper.command(action, arguments)

    run(tmp_path, scenario)


def test_before_it_runs_it_follows_nothing() -> None:
    for action in ACTIONS:
        with pytest.raises(ValueError, match="not running yet"):
            MotesWrapper().command(action, {})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gw-1.json", "{"),
        ("gw-1.json", '{"gateway": 5}'),
        ("gw-1.json", '{"gateway": "gw-1", "motes": [{"kind": "seat"}]}'),
        ("detectors.csv", "detector,x\nr1,2\n"),
        ("detectors.csv", "detector,x,y,level\nr1,far,0,0\n"),
        ("detectors.csv", "detector,x,y,level\nr1,1\n"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: str) -> None:
    field = Field(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(DeploymentError, match=name):
        asyncio.run(field.wrapper.run(field.context))
    (tmp_path / name).unlink()
    with pytest.raises(DeploymentError, match=name):
        asyncio.run(field.wrapper.run(field.context))


def test_provisioned_files_are_understood(tmp_path: Path) -> None:
    paths = provision(sample_building(), tmp_path, gateways=3, host="here")
    fields = [load_field(path) for path in paths.gateways.values()]
    assert len(fields) == 3
    sensors = [mote.sensor for field in fields for mote in field.motes]
    assert len(sensors) == len(set(sensors)) > 50
    assert len(load_detectors(paths.tables["rfid_detectors"])) > 3


# The world ------------------------------------------------------------------------------------

TIMES = st.integers(0, 2_000_000_000_000_000)


def facts(world: World, now: int) -> list[object]:
    return [
        world.seat("m1"),
        world.light("r1", now),
        world.celsius("r1", 1.0, 2.0, 0, now),
        world.load("m1", now),
        simulation.delivery_ratio(Peer("a", "b", 12.0), world.seed, now),
    ]


@given(st.integers(0, 100), TIMES)
def test_equal_seeds_give_equal_worlds(seed: int, now: int) -> None:
    assert facts(World(seed, 60.0), now) == facts(World(seed, 60.0), now)


@given(st.integers(0, 100), TIMES, st.floats(0, 200), st.integers(0, 3))
def test_values_stay_within_what_is_possible(
    seed: int, now: int, metres: float, level: int
) -> None:
    world = World(seed, 60.0)
    assert 0.0 <= simulation.delivery_ratio(Peer("a", "b", metres), seed, now) <= 1.0
    assert 0.0 < world.light("r", now) < 400.0
    assert 15.0 < world.celsius("r", metres, 12.0, level, now) < 35.0
    cpu, task = world.load("m", now)
    assert 0.0 <= cpu <= 1.0
    assert task


def test_people_sit_about_as_long_as_told() -> None:
    world = World(1, turnover=60.0)
    changes = sum(world.live("m", 0, 1.0) for _ in range(6_000))
    assert 60 < changes < 150, "about one a minute in a hundred minutes"


def test_a_pinned_seat_stays() -> None:
    world = World(1, turnover=1e-9)
    world.sit("m", taken=True, until=NOW + PIN)
    assert not world.live("m", NOW + PIN - 1, 1.0)
    assert world.live("m", NOW + PIN, 1.0)


@given(st.integers(0, 5), TIMES)
def test_visitors_walk_along_the_tour_on_one_level_at_a_time(number: int, now: int) -> None:
    detectors = tuple(
        Detector(f"d{n}", float(n * 15 % 70), float(n % 3 * 10), n % 2) for n in range(9)
    )
    tour = simulation.tour_of(detectors)
    assert sorted(tour, key=lambda d: d.detector) == sorted(detectors, key=lambda d: d.detector)
    x, y, level = simulation.visitor_place(number, tour, now)
    on_level = [d for d in detectors if d.level == level]
    assert min(d.x for d in on_level) <= x <= max(d.x for d in on_level)
    assert min(d.y for d in on_level) <= y <= max(d.y for d in on_level)


def test_a_building_without_detectors_has_no_tour() -> None:
    assert simulation.tour_of(()) == ()
