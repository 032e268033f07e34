"""A base site counts no rows that were made by another definition; it names them as a gap."""

import asyncio
import contextlib
from pathlib import Path

from gateway.__main__ import serve
from gateway.testing import settings_for, until
from gateway.testing_connectors import declared
from host.clocks import wall_clock
from host.mqtt import Message, Will
from host.mqtt.in_memory import InMemoryBroker, InMemoryClient
from streamsql.algebra.operators import Window, WindowKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import expand
from streamsql.data.types import Row
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch, ObservationPack, QueryProblem
from streamsql.wire.senml import records_of
from streamsql.wire.site_messages import SiteRole, SiteState
from streamsql.wire.source_orders import encode_order
from streamsql.wire.source_shapes import layout_of
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
CELSIUS = declared(key=(), units=("", "Cel"))
ELSEWHERE = declared(key=(), units=("", "Cel"), topic="elsewhere", version=2)
KELVIN = declared(key=(), units=("", "K"), topic="elsewhere", version=3)


class World:
    """A base site, and the hands of a coordinator and of a gateway."""

    def __init__(self) -> None:
        self.broker = InMemoryBroker()
        self.hands = self.broker.client("coordinator")
        self.hands.on_messages(self._hear)
        self.out = ReceivingChannel(version=1)
        self.sent = 0

    def _hear(self, burst: list[Message]) -> None:
        for message in burst:
            self.out.accept(decode_packed(message.payload, DeltaBatch))

    def client(self, will: Will) -> InMemoryClient:
        return self.broker.client("base", will=will)

    def order(self, definition: SourceDefinition) -> None:
        self.hands.publish(TOPICS.source("climate"), encode_order(definition), retain=True)

    def query(self, definition: SourceDefinition, version: int) -> None:
        """Ask for the last four rows of all gateways."""
        self.out = ReceivingChannel(version=version)
        window = Window(definition.scan(), WindowKind.ROWS, 4)
        fragment = Fragment("f", Engine.BASE, window, ("base",))
        bundle = FragmentBundle("q1", version, (fragment,), window.schema)
        self.hands.publish(TOPICS.fragment("q1", "base"), encode_packed(bundle), retain=True)

    def gateway(self) -> None:
        state = SiteState(True, 1, wall_clock(), sources=("climate",))
        self.hands.publish(TOPICS.state("gw-1"), encode_json(state), retain=True)

    def pack(self, definition: SourceDefinition, celsius: float) -> None:
        """Send one row, as the gateway's observation lane does."""
        ts = wall_clock()
        records = tuple(records_of("gw-1", ts, ("k1", celsius), definition.schema))
        layout = layout_of(definition.scan())
        sent = ObservationPack(
            1, self.sent, records, self.sent, version=definition.version, layout=layout
        )
        self.sent += 1
        self.hands.publish(TOPICS.observation("gw-1", "climate"), encode_json(sent))

    def rows(self) -> list[Row]:
        return sorted(row for port in self.out.contents.values() for row in expand(port))

    def problem(self) -> str:
        message = self.broker.retained.get(TOPICS.error("q1", "base"))
        return decode_json(message.payload, QueryProblem).message if message is not None else ""


def test_rows_of_another_definition_are_no_rows_of_this_one(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await until(lambda: TOPICS.state("base") in world.broker.retained, "the base is there")
        world.order(CELSIUS)
        world.gateway()
        world.query(CELSIUS, 1)
        await until(lambda: world.out.synchronised, "the query runs")
        world.pack(CELSIUS, 20.0)
        await until(lambda: world.rows() == [("k1", 20.0)], "a row is counted")

        world.order(ELSEWHERE)
        world.pack(CELSIUS, 21.0)
        await until(lambda: len(world.rows()) == 2, "where it was read does not matter")

        world.order(KELVIN)
        await until(lambda: "has changed" in world.problem(), "the old plan is stopped")
        world.query(KELVIN, 2)
        await until(lambda: world.out.synchronised, "the query runs")
        assert world.rows() == []
        world.pack(ELSEWHERE, 22.0)
        world.pack(KELVIN, 295.15)
        await until(lambda: world.rows() == [("k1", 295.15)], "rows of the new one only")
        named = "gw-1 has published it by another definition of climate"
        await until(lambda: named in world.problem(), "the gap is named")

    async def whole() -> None:
        world = World()
        await world.hands.connect()
        await world.hands.subscribe(TOPICS.output())
        settings = settings_for(tmp_path, "base", sources=(), role=SiteRole.BASE)
        task = asyncio.create_task(serve(settings, world.client))
        try:
            async with asyncio.timeout(60):
                await scenario(world)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await world.hands.close()

    asyncio.run(whole())
