"""Sources that the catalog declares come into force at a running gateway (broker in memory)."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.__main__ import serve
from gateway.connectors import registry
from gateway.testing import settings_for, until
from gateway.testing_connectors import TELLING, TellingConnector, declared
from host.mqtt import Message, Will
from host.mqtt.in_memory import InMemoryBroker, InMemoryClient
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import expand
from streamsql.data.types import DataType, Row
from streamsql.errors import DeploymentError
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch, QueryProblem
from streamsql.wire.site_messages import Birth, DeclaredState, SiteState
from streamsql.wire.source_orders import encode_order
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
WIDER = (("device", DataType.TEXT), ("humidity", DataType.DOUBLE), ("celsius", DataType.DOUBLE))


class World:
    """A broker with a coordinator's hands, and one gateway."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = InMemoryBroker()
        self.hands = self.broker.client("coordinator")
        self.result = ReceivingChannel(version=1)
        self.tasks: list[asyncio.Task[None]] = []

    def begin(self, **changes: Any) -> None:
        settings = settings_for(
            self.folder,
            **{
                "sources": (),
                "endpoints": {"home": {"connector": "telling", "password": "hunter2"}},
                **changes,
            },
        )

        def client(will: Will) -> InMemoryClient:
            return self.broker.client("gw-1", will=will)

        self.tasks.append(asyncio.create_task(serve(settings, client)))

    async def end(self) -> None:
        """Stop the gateway, cleanly."""
        self.tasks[-1].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.tasks[-1]

    def order(self, definition: SourceDefinition) -> None:
        topic = TOPICS.source(definition.name)
        self.hands.publish(topic, encode_order(definition), retain=True)

    def drop(self, name: str) -> None:
        self.hands.publish(TOPICS.source(name), b"", retain=True)

    def query(self, definition: SourceDefinition, version: int = 1) -> None:
        """Ask for all rows of a source."""
        scan = definition.scan()
        fragment = Fragment("f", Engine.GATEWAY, scan, ("gw-1",))
        bundle = FragmentBundle("q1", version, (fragment,), scan.columns)
        self.result = ReceivingChannel(version=version)
        self.hands.publish(TOPICS.fragment("q1", "gw-1"), encode_packed(bundle), retain=True)

    def hear(self, burst: list[Message]) -> None:
        for message in burst:
            match TOPICS.parts(message.topic):
                case ["q", "q1", "out", "gw-1"]:
                    reception, _ = self.result.accept(decode_packed(message.payload, DeltaBatch))
                    if reception == Reception.GAP:
                        command = encode_json(Command(query="q1", channel="out"))
                        self.hands.publish(TOPICS.request("gw-1", "resync", "coordinator"), command)
                case _:
                    pass

    def rows(self) -> set[Row]:
        return {row for port in self.result.contents.values() for row in expand(port)}

    def problem(self) -> QueryProblem | None:
        message = self.broker.retained.get(TOPICS.error("q1", "gw-1"))
        return decode_json(message.payload, QueryProblem) if message is not None else None

    def birth(self) -> Birth:
        return decode_json(self.broker.retained[TOPICS.birth("gw-1")].payload, Birth)

    def state(self) -> SiteState | None:
        message = self.broker.retained.get(TOPICS.state("gw-1"))
        return decode_json(message.payload, SiteState) if message is not None else None

    def is_online(self) -> bool:
        state = self.state()
        return state is not None and state.online

    def told(self, name: str = "climate") -> DeclaredState | None:
        state = self.state()
        found = [each for each in state.declared if each.name == name] if state else []
        return found[0] if found else None

    def served(self, endpoint: str = "home") -> list[str]:
        """Return the sources of the connector that runs at an endpoint."""
        running = TellingConnector.running.get(endpoint)
        context = running.context if running is not None else None
        return [source.name for source in context.sources] if context is not None else []

    async def connector(self, endpoint: str = "home", life: int = 1) -> TellingConnector:
        """Wait until a connector runs that was started for the so-manieth time."""
        await until(lambda: TellingConnector.started.count(endpoint) >= life, "it is started")
        return TellingConnector.running[endpoint]


@pytest.fixture(autouse=True)
def _telling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.BUILT_IN, "telling", TELLING)
    TellingConnector.forget()
    yield
    TellingConnector.forget()


def run(folder: Path, scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        world = World(folder)
        world.hands.on_messages(world.hear)
        await world.hands.connect()
        await world.hands.subscribe(TOPICS.output())
        try:
            async with asyncio.timeout(60):
                await scenario(world)
        finally:
            for task in world.tasks:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, DeploymentError):
                    await task
            await world.hands.close()

    asyncio.run(whole())


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


def test_what_a_connector_of_the_former_definition_emits_is_dropped(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        world.order(declared(units=("", "Cel")))
        former = await world.connector()
        world.order(declared(units=("", "K"), version=2))
        world.query(declared())
        await world.connector(life=2)
        former.tell("air", b'{"device": "k1", "celsius": 21.5}')
        TellingConnector.running["home"].tell("air", b'{"device": "k2", "celsius": 294.65}')
        await until(lambda: world.rows() == {("k2", 294.65)}, "only the new one is heard")

    run(tmp_path, scenario)


def test_a_value_in_another_unit_is_not_carried_over(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        world.order(declared(units=("", "Cel")))
        world.query(declared())
        (await world.connector()).tell("air", b'{"device": "k1", "celsius": 21.5}')
        await until(lambda: world.rows() == {("k1", 21.5)}, "the row is there")
        world.order(declared(units=("", "K"), version=2))
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
        (declared(options=(("topic", "t"), ("qos", "1"))), "unknown field `qos`"),
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
