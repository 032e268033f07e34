"""Sources that the catalog declares come into force at a running gateway (broker in memory)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gateway.connectors import registry
from gateway.testing import until
from gateway.testing_connectors import TELLING, TellingConnector, declared
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType
from streamsql.wire.site_messages import DeclaredState
from tests.gateway.declared_world import World, run

WIDER = (("device", DataType.TEXT), ("humidity", DataType.DOUBLE), ("celsius", DataType.DOUBLE))


@pytest.fixture(autouse=True)
def _telling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.BUILT_IN, "telling", TELLING)
    TellingConnector.forget()
    yield
    TellingConnector.forget()


def test_an_order_becomes_rows_of_a_query(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        await until(world.is_online)
        world.order(declared())
        world.query(declared())
        connector = await world.connector()
        connector.tell("air", b'{"device": "k1", "celsius": 21.5}')
        await until(lambda: world.rows() == {("k1", 21.5)}, "the row is there")
        await until(lambda: world.told() is not None, "the gateway says what it serves")
        told = world.told()
        assert told is not None
        assert (told.version, told.problem, told.endpoint) == (1, "", "home")
        assert "climate" in world.birth().sources

    run(tmp_path, scenario)


def test_a_column_more_takes_effect_without_a_restart_and_keyed_rows_stay(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        world.order(declared())
        world.query(declared())
        connector = await world.connector()
        connector.tell("air", b'{"device": "k1", "celsius": 21.5}')
        await until(lambda: world.rows() == {("k1", 21.5)}, "the row is there")
        wider = declared(columns=WIDER, version=2)
        world.order(wider)
        await until(lambda: world.problem() is not None, "the old plan ends by name")
        problem = world.problem()
        assert problem is not None
        assert problem.code == "definition_differs"
        world.query(wider, version=2)
        await until(lambda: world.rows() == {("k1", None, 21.5)}, "the row was carried over")
        await until(lambda: world.problem() is None, "nothing is wrong any more")
        again = await world.connector(life=2)
        again.tell("air", b'{"device": "k2", "humidity": 40, "celsius": 20}')
        await until(lambda: ("k2", 40.0, 20.0) in world.rows(), "new rows are of the new columns")
        assert not world.tasks[-1].done()

    run(tmp_path, scenario)


def test_a_plan_that_comes_before_its_definition_runs_when_that_has_come(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        world.order(declared())
        await world.connector()
        wider = declared(columns=WIDER, version=2)
        world.query(wider)
        await until(lambda: world.problem() is not None, "it is refused by name")
        world.order(wider)
        await until(lambda: world.problem() is None, "it runs")
        connector = await world.connector(life=2)
        connector.tell("air", b'{"device": "k1", "celsius": 20}')
        await until(lambda: world.rows() == {("k1", None, 20.0)}, "its rows come")

    run(tmp_path, scenario)


def test_what_a_connector_of_the_former_definition_emits_is_refused(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        world.order(declared(units=("", "Cel")))
        former = await world.connector()
        kelvin = declared(units=("", "K"), version=2)
        world.order(kelvin)
        world.query(kelvin)
        await world.connector(life=2)
        with pytest.raises(asyncio.CancelledError):  # it must not acknowledge this
            former.tell("air", b'{"device": "k1", "celsius": 21.5}')
        TellingConnector.running["home"].tell("air", b'{"device": "k2", "celsius": 294.65}')
        await until(lambda: world.rows() == {("k2", 294.65)}, "only the new one is heard")

    run(tmp_path, scenario)


def test_a_value_in_another_unit_is_not_carried_over(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        celsius, kelvin = declared(units=("", "Cel")), declared(units=("", "K"), version=2)
        world.order(celsius)
        world.query(celsius)
        (await world.connector()).tell("air", b'{"device": "k1", "celsius": 21.5}')
        await until(lambda: world.rows() == {("k1", 21.5)}, "the row is there")
        world.order(kelvin)
        await until(lambda: world.problem() is not None, "the old plan is stopped")
        assert world.rows() == {("k1", 21.5)}, "nothing is sent by the old plan"
        world.query(kelvin, 2)
        await until(lambda: world.rows() == {("k1", None)}, "its value means something else")

    run(tmp_path, scenario)


def test_a_dropped_source_is_served_no_more(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        world.order(declared())
        world.order(declared("noise", topic="sound"))
        await world.connector()
        world.drop("climate")
        await until(lambda: "climate" not in world.birth().sources, "its birth says so")
        await until(lambda: world.served() == ["noise"], "the other source is served on")
        await until(lambda: world.told() is None, "its state says so")

    run(tmp_path, scenario)


def test_a_gateway_starts_without_the_coordinator(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        world.order(declared())
        (await world.connector()).tell("air", b'{"device": "k1", "celsius": 21.5}')
        await until(lambda: (world.told() or DeclaredState("", 0)).rows == 1, "it has a row")
        await world.end()
        world.broker.retained.clear()
        world.begin()
        await until(world.is_online)
        world.query(declared())
        await until(lambda: world.rows() == {("k1", 21.5)}, "its rows are there again")
        (await world.connector(life=2)).tell("air", b'{"device": "k2", "celsius": 20}')
        await until(lambda: world.rows() == {("k1", 21.5), ("k2", 20.0)}, "and new ones come")

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        (declared(endpoint="cellar", gateways=("gw-1",)), "endpoint 'cellar' is unknown here"),
        (declared(connector="modbus"), "endpoint home is of connector telling here, not modbus"),
        (declared(endpoint="", connector="mqtt", gateways=("gw-1",)), "no endpoint here is of"),
        (declared(options=(("topic", "t"), ("qos", "1"))), "has no option `qos`"),
        (declared(endpoint="far"), "connector 'satellite' is not installed at this gateway"),
        (declared(endpoint="old"), "no_such_field"),
        (declared(endpoint="down"), "ConnectionError: no route to ***"),
    ],
)
def test_what_cannot_be_served_is_said_by_name_and_without_secrets(
    tmp_path: Path, definition: SourceDefinition, problem: str
) -> None:
    kinds = {"far": "satellite"}
    if definition.mapping is not None and definition.mapping.endpoint == "far":
        changed = {"connector": "satellite"}
        definition = msgspec.structs.replace(
            definition, mapping=msgspec.structs.replace(definition.mapping, **changed)
        )
    endpoints = {
        "home": {"connector": "telling"},
        "far": {"connector": kinds["far"]},
        "old": {"connector": "telling", "no_such_field": "hunter2"},
        "down": {"connector": "telling", "password": "hunter2"},
    }
    TellingConnector.refusing["down"] = ConnectionError("no route to hunter2")

    async def scenario(world: World) -> None:
        world.begin(endpoints=endpoints)
        world.order(definition)
        await until(lambda: (world.told() or DeclaredState("", 0)).problem != "", "it says why")
        told = world.told()
        assert told is not None
        assert problem in told.problem
        retained = b"".join(message.payload for message in world.broker.retained.values())
        assert b"hunter2" not in retained

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "definition",
    [
        declared(endpoint="cellar"),
        declared(gateways=("gw-2",)),
        declared(endpoint="", connector="mqtt"),
    ],
)
def test_a_source_for_other_gateways_is_not_mentioned(
    tmp_path: Path, definition: SourceDefinition
) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        world.order(definition)
        world.order(declared("noise"))
        await until(lambda: world.told("noise") is not None, "the other one is served")
        assert world.told() is None
        assert world.birth().sources == ("noise",)

    run(tmp_path, scenario)
