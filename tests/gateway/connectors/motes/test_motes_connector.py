"""Simulated motes: a world that is a function of seed and time, and does what it is told."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from building.files.provision import provision
from building.sample.sample_building import sample_building
from gateway.connectors.connector import ConnectorContext, Simulation
from gateway.connectors.motes.mote_field import load_detectors, load_field
from gateway.connectors.motes.motes_connector import ACTIONS, MotesConnector
from gateway.connectors.motes.sensing import TOPICS
from gateway.connectors.reading import Memory, Reading
from gateway.connectors.testing.source_statements import definitions_of
from gateway.intake.validation import event_of
from gateway.testing import SECOND, until
from streamsql.errors import DeploymentError
from streamsql.wire.site_messages import SensorDescription
from tests.gateway.connectors.building import building_sources, context_for, fed_by

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
        self.connector = MotesConnector()
        self.memory: Memory | None = None
        self.described: list[tuple[list[SensorDescription], list[str]]] = []
        plain = {
            "file": str(folder / "gw-1.json"),
            "detectors": str(folder / "detectors.csv"),
            "period": 0.25,
            "turnover": 1e9,
            "visitors": 2,
        }
        self.endpoint = {**plain, **options}
        self.context = self.make_context()

    def make_context(self) -> ConnectorContext:
        return context_for(
            fed_by("motes"),
            self.endpoint,
            clock=lambda: self.now,
            emit=self.emitted.extend,
            problem=self.problems.append,
            memory=self.memory,
            remember=self._remember,
            describe=lambda sensors, rooms: self.described.append((list(sensors), list(rooms))),
        )

    def _remember(self, memory: Memory) -> None:
        self.memory = memory

    def of(self, source: str) -> list[Reading]:
        return [reading for reading in self.emitted if reading.source == source]

    def newest(self, source: str, **key: str) -> dict[str, Any]:
        found = [r for r in self.of(source) if key.items() <= dict(r.values).items()]
        return dict(found[-1].values)


def run(folder: Path, scenario: Callable[[Field], Any], **options: Any) -> Field:
    field = Field(folder, **options)

    async def whole() -> None:
        task = asyncio.create_task(field.connector.run(field.context))
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
    assert {r.source for r in field.emitted} == set(TOPICS)
    known = {mote["sensor"] for mote in FIELD["motes"]} | {"soft-ws-1"}
    assert {r.sensor for r in field.emitted if r.source != "link"} <= known
    assert {r.values["mid"] for r in field.of("seatsensor")} == {"ws-1", "ws-2"}
    assert {r.values["mid"] for r in field.of("energymeter")} == {"ws-1", "ws-2"}
    loads = {r.values["mid"]: r for r in field.of("machineload")}
    assert loads.keys() == {"ws-1", "ws-2"}
    assert loads["ws-1"].sensor == "soft-ws-1", "it is measured"
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
        told = field.connector.command
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
    assert isinstance(field.connector, Simulation)
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
            field.connector.command(action, arguments)

    run(tmp_path, scenario)


def test_before_it_runs_it_follows_nothing() -> None:
    for action in ACTIONS:
        with pytest.raises(ValueError, match="not running yet"):
            MotesConnector().command(action, {})


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
        asyncio.run(field.connector.run(field.context))
    (tmp_path / name).unlink()
    with pytest.raises(DeploymentError, match=name):
        asyncio.run(field.connector.run(field.context))


def test_provisioned_files_are_understood(tmp_path: Path) -> None:
    paths = provision(sample_building(), tmp_path, gateways=3, host="here")
    fields = [load_field(path) for path in paths.gateways.values()]
    assert len(fields) == 3
    sensors = [mote.sensor for field in fields for mote in field.motes]
    assert len(sensors) == len(set(sensors)) > 50
    assert len(load_detectors(paths.tables["rfid_detectors"])) > 3


def test_a_source_of_another_name_takes_the_readings_of_its_topic(tmp_path: Path) -> None:
    seats, odd = definitions_of(
        "CREATE SOURCE pads (id TEXT FROM 'mid', weightLevel DOUBLE, KEY (id)) "
        "WITH (connector = 'motes', topic = 'seatsensor');"
        "CREATE SOURCE odd (id TEXT) WITH (connector = 'motes');"
    )
    field = Field(tmp_path)
    field.context.sources = context_for(
        [seats, odd], {}, clock=lambda: NOW, emit=None, problem=field.problems.append
    ).sources

    async def scenario() -> None:
        task = asyncio.create_task(field.connector.run(field.context))
        await until(lambda: len(field.emitted) >= 2)
        task.cancel()

    asyncio.run(scenario())
    assert {r.source for r in field.emitted} == {"pads"}
    assert {r.values["id"] for r in field.emitted} == {"ws-1", "ws-2"}
    assert any("motes have no readings 'odd'" in text for text in field.problems)


def test_people_stay_where_they_sit_while_sources_change(tmp_path: Path) -> None:
    async def scenario(field: Field) -> None:
        for mid in ("ws-1", "ws-2"):
            field.connector.command("sit", {"mid": mid})
        field.connector.command("lights_off", {"rid": "L101"})

    field = run(tmp_path, scenario)
    weights = {mid: field.newest("seatsensor", mid=mid) for mid in ("ws-1", "ws-2")}
    field.emitted.clear()
    again = MotesConnector()

    async def go_on() -> None:
        task = asyncio.create_task(again.run(field.make_context()))
        await until(lambda: len(field.of("roomsensor")) > 0 and len(field.of("seatsensor")) > 1)
        task.cancel()

    asyncio.run(go_on())
    for mid, before in weights.items():
        assert field.newest("seatsensor", mid=mid)["weightlevel"] == before["weightlevel"]
    assert field.newest("roomsensor", rid="L101")["status"] == "closed"


def test_it_tells_which_sensors_stand_where(tmp_path: Path) -> None:
    async def scenario(_field: Field) -> None:
        await asyncio.sleep(0)

    ((sensors, rooms),) = run(tmp_path, scenario).described
    assert rooms == ["L101"]
    seat = next(sensor for sensor in sensors if sensor.name == "s1")
    assert seat == SensorDescription("s1", "seatsensor", "kg", "seat", "L101", 0, 3.0, 4.0)
    assert {s.name: s.stream for s in sensors}["x2"] == "", "no source takes what it reads"
