"""A gateway that learns declared sources from a broker in memory, and a coordinator's hands."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from gateway.__main__ import serve
from gateway.testing import settings_for, until
from gateway.testing_connectors import TellingConnector
from host.mqtt import Message, Will
from host.mqtt.in_memory import InMemoryBroker, InMemoryClient
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import expand
from streamsql.data.types import Row
from streamsql.errors import DeploymentError
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch, QueryProblem
from streamsql.wire.site_messages import Birth, DeclaredState, SiteState
from streamsql.wire.source_orders import encode_order
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")


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
                        self.hands.publish(TOPICS.command("gw-1", "resync"), command)
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
