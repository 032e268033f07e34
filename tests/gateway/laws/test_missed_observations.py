"""A base site that is cut off from the broker alone lacks nothing afterwards, or says what.

Gateway and base site as wholes, on an in-memory broker that forgets who is cut off, as brokers do.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from gateway.buffer import published_packs
from gateway.connectors import registry
from gateway.connectors.reading import Reading
from gateway.gateway_settings import SnapshotSettings
from gateway.observations import followed_logs
from gateway.observations.pack_answers import PackAnswers
from gateway.runtime import Gateway
from gateway.state import state_keeper
from gateway.testing import SEATS, SECOND, settings_for, until
from gateway.testing_connectors import TELLING, TellingConnector
from host.files.site_directory import SiteDirectory
from host.mqtt import Message
from host.mqtt.in_memory import InMemoryBroker
from streamsql.algebra.operators import SourceKind, Window, WindowKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import expand
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.codec import (
    decode_compressed_packed,
    decode_json,
    decode_packed,
    encode_json,
    encode_packed,
)
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch, QueryProblem
from streamsql.wire.site_messages import SiteFlows, SiteState
from streamsql.wire.topics import Topics

pytestmark = pytest.mark.timeout(120)

TOPICS = Topics("demo")
CARS = SourceDefinition(
    "cars",
    SourceKind.STREAM,
    Schema.of(("n", DataType.INTEGER), ("ts", DataType.TIMESTAMP)),
    time_column=1,
)
"""A log: passed on, not kept."""
LAST = 4


def last_cars() -> FragmentBundle:
    """The last four cars of all gateways, which the base site reads itself."""
    window = Window(CARS.scan(), WindowKind.ROWS, LAST)
    fragment = Fragment("f0", Engine.BASE, window, ("base",))
    return FragmentBundle("q1", 1, (fragment,), window.schema)


class World:
    """A broker, one life of each site after another, and a reader of the query."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = InMemoryBroker()
        self.console = self.broker.client("console")
        self.console.on_messages(self._hear)
        self.out = ReceivingChannel(version=1)
        self.problems: list[str] = []
        self.problem = ""
        self.busy = True
        self.settled_rows: list[list[int]] = []
        self.requests = 0
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.lives: dict[str, int] = {}
        self.sites: dict[str, Gateway] = {}
        self.cars = 0

    def _hear(self, burst: list[Message]) -> None:
        for message in burst:
            match TOPICS.parts(message.topic):
                case ["q", "q1", "out", "base"]:
                    batch = decode_packed(message.payload, DeltaBatch)
                    if self.out.accept(batch)[0] == Reception.GAP:
                        self.ask()
                case ["q", "q1", "error", "base"]:
                    self.problem = (
                        decode_json(message.payload, QueryProblem).message
                        if message.payload
                        else ""
                    )
                    self.problems += [self.problem] if self.problem else []
                case ["gw", "base", "flow"]:
                    self.busy = (
                        decode_compressed_packed(message.payload, SiteFlows).reports["q1"].busy
                    )
                case ["gw", _, "cmd", "packs", "base"]:
                    self.requests += 1
                case _:
                    pass

    def ask(self) -> None:
        command = encode_json(Command(query="q1", channel="out"))
        self.console.publish(TOPICS.command("base", "resync"), command)

    async def start(self, name: str, source: SourceDefinition = CARS) -> None:
        """Begin another life of a site, and wait until it is there."""
        role = "base" if name == "base" else "gateway"
        lives = len(TellingConnector.lives)
        settings = settings_for(
            self.folder,
            name,
            role=role,
            sources=(source,),
            snapshots=SnapshotSettings(seconds=0.5),
        )
        self.lives[name] = self.lives.get(name, 0) + 1

        async def live() -> None:
            with SiteDirectory(Path(settings.data_dir)) as directory:
                self.sites[name] = Gateway(
                    settings,
                    directory,
                    self.lives[name],
                    lambda will: self.broker.client(name, will=will),
                )
                await self.sites[name].run()

        self.tasks[name] = asyncio.create_task(live())
        await until(lambda: self.epoch(name) == self.lives[name], f"{name} is there")
        if role == "gateway":
            await until(lambda: len(TellingConnector.lives) > lives)

    def epoch(self, name: str) -> int:
        message = self.broker.retained.get(TOPICS.state(name))
        if message is None:
            return 0
        state = decode_json(message.payload, SiteState)
        return state.epoch if state.online else 0

    async def kill(self, name: str) -> None:
        """End a life as kill -9 does, as far as one process can: nothing more is sent or heard."""
        self.broker.cut(name)
        self.tasks[name].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.tasks[name]

    async def pass_by(self, cars: int, name: str = "gw-1") -> None:
        """Let cars pass, each in a pack of its own, and the broker have them all."""
        lane = self.sites[name].lane
        for _ in range(cars):
            self.cars += 1
            TellingConnector.lives[-1].emit(Reading("cars", {"n": self.cars}, self.cars * SECOND))
            lane.flush()
        await until(lambda: not len(lane.buffer), "the broker has all packs")
        await self.broker.settle()

    def rows(self) -> list[int]:
        found: list[Row] = [row for port in self.out.contents.values() for row in expand(port)]
        return sorted(int(str(row[0])) for row in found)

    def newest(self) -> list[int]:
        return list(range(max(self.cars - LAST, 0) + 1, self.cars + 1))

    async def until_looked(self) -> None:
        """Wait until the base site has looked which gaps are over."""
        keeper = self.sites["base"].keeper
        looked = keeper._say_at
        await until(lambda: keeper._say_at > looked, "it looks again")

    async def until_settled(self) -> None:
        """Wait until the base site says that it has all there is."""
        site = self.sites["base"]
        await until(
            lambda: (
                self.broker._sessions["base"].client.connected
                and site.host.inbox.is_whole("q1")
                and not self.busy
            ),
            "the base site is at rest",
        )
        self.ask()
        await until(lambda: bool(self.out.contents), "the result is there")
        await self.broker.settle()


def run(folder: Path, scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        world = World(folder)
        await world.console.connect()
        await world.console.subscribe(f"{TOPICS.root}/#")
        bundle = encode_packed(last_cars())
        world.console.publish(TOPICS.fragment("q1", "base"), bundle, retain=True)
        try:
            async with asyncio.timeout(90):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setitem(registry.BUILT_IN, "telling", TELLING)
                    TellingConnector.forget()
                    await world.start("gw-1")
                    await world.start("base")
                    await until(lambda: "q1" in world.sites["base"].engine.queries)
                    await world.pass_by(3)
                    await until(lambda: world.rows() == [1, 2, 3], "the first cars")
                    await scenario(world)
        finally:
            for task in world.tasks.values():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await world.console.close()

    asyncio.run(whole())


@pytest.mark.parametrize("afterwards", [0, 1])
def test_a_base_that_was_cut_off_gets_what_was_published_meanwhile(
    tmp_path: Path, afterwards: int
) -> None:
    async def scenario(world: World) -> None:
        world.broker.cut("base")
        await world.pass_by(3)
        world.broker.restore("base")
        await world.pass_by(afterwards)
        await until(lambda: world.rows() == world.newest(), "the cars of meanwhile")
        await world.until_settled()
        assert world.problems == []

    run(tmp_path, scenario)


def test_a_base_that_comes_back_is_not_at_rest_before_it_has_all(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.until_settled()
        world.broker.cut("base")
        await world.pass_by(2)
        world.busy = True
        seen: list[tuple[bool, bool]] = []
        hear = world._hear

        def watch(burst: list[Message]) -> None:
            for message in burst:
                hear([message])
                if message.topic == TOPICS.flow("base"):
                    seen.append((world.busy, world.rows() == world.newest()))

        world.console._on_messages = [watch]
        world.broker.restore("base")
        await until(lambda: bool(seen) and not seen[-1][0], "it says that it is at rest")
        assert seen[0] == (True, False), "the first that is heard of it is that it waits"
        assert all(busy or right for busy, right in seen)

    run(tmp_path, scenario)


def test_a_base_that_was_killed_gets_what_was_published_meanwhile(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for _ in range(2):
            await world.kill("base")
            await world.pass_by(3)
            await world.start("base")
            await world.until_settled()
            await until(lambda: world.rows() == world.newest(), "the cars of meanwhile")
        assert world.problems == []

    run(tmp_path, scenario)


def test_a_gateway_that_the_broker_hears_before_the_base_loses_nothing(tmp_path: Path) -> None:
    """A broker that was away is reached by one after the other."""

    async def scenario(world: World) -> None:
        world.broker.cut("base")
        world.broker.cut("gw-1")
        world.cars += 1
        TellingConnector.lives[-1].emit(Reading("cars", {"n": world.cars}, world.cars * SECOND))
        world.sites["gw-1"].lane.flush()
        world.broker.restore("gw-1")
        await world.pass_by(1)
        world.broker.restore("base")
        await until(lambda: world.rows() == world.newest(), "the cars of meanwhile")
        await world.until_settled()
        assert world.problems == []

    run(tmp_path, scenario)


def test_what_no_gateway_keeps_any_more_is_named_before_the_base_is_at_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_packs, "MAX_KEPT_BYTES", 200)
    monkeypatch.setattr(state_keeper, "REPEAT_SECONDS", 0.1)

    async def scenario(world: World) -> None:
        world.broker.cut("base")
        await world.pass_by(6)
        world.broker.restore("base")
        await until(lambda: bool(world.problem), "it says what is missing")
        assert "gw-1 published it" in world.problem
        assert world.rows() != world.newest()
        await world.until_settled()
        assert world.problem
        for _ in range(LAST - 1):
            await world.pass_by(1)
            await world.until_looked()
            assert world.problem, "a lost car would be among the last"
        await world.pass_by(1)
        await until(lambda: not world.problem, "no lost car can be among the last")
        assert world.rows() == world.newest()

    run(tmp_path, scenario)


def test_a_gateway_that_was_killed_meanwhile_has_forgotten_what_it_published(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        world.broker.cut("base")
        await world.pass_by(2)
        await world.kill("gw-1")
        await world.start("gw-1")
        world.broker.restore("base")
        await until(lambda: bool(world.problem), "it says what is missing")
        await world.pass_by(LAST)
        await until(lambda: world.rows() == world.newest(), "later cars count")

    run(tmp_path, scenario)


def test_a_gateway_that_is_killed_while_it_is_heard_leaves_no_gap(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for _ in range(3):
            await world.kill("gw-1")
            await world.start("gw-1")
            await world.pass_by(2)
        await until(lambda: world.rows() == world.newest(), "all cars")
        await world.until_settled()
        assert world.problems == []

    run(tmp_path, scenario)


def test_nobody_asks_while_nothing_is_lost(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.until_settled()
        before = world.requests
        assert before <= 2, "where a log begins is asked once"
        for _ in range(20):
            await world.pass_by(2)
        await until(lambda: world.rows() == world.newest(), "all cars")
        assert world.requests == before

    run(tmp_path, scenario)


def test_an_offline_gateway_without_the_stream_keeps_nothing_unsettled(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.start("gw-2", SEATS)
        await world.kill("gw-2")
        world.broker.cut("base")
        world.broker.restore("base")
        await asyncio.wait_for(world.until_settled(), 15)
        assert world.sites["base"].host.inbox.logs.are_whole()
        assert world.problems == []

    run(tmp_path, scenario)


def test_a_gateway_that_lived_only_during_the_cut_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_logs, "OFFLINE_SECONDS", 0.5)

    async def scenario(world: World) -> None:
        await world.until_settled()
        world.broker.cut("base")
        await world.start("gw-2")
        await world.pass_by(1, "gw-2")
        await world.kill("gw-2")
        world.busy = True
        world.broker.restore("base")
        await until(lambda: bool(world.problem), "it says what is missing")
        assert "gw-2 is offline" in world.problem
        await world.until_settled()

    run(tmp_path, scenario)


def test_a_gateway_that_never_answers_is_named_and_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_logs, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(PackAnswers, "answer", lambda *_given: None)

    async def scenario(world: World) -> None:
        world.broker.cut("base")
        await world.pass_by(2)
        world.broker.restore("base")
        await until(lambda: bool(world.problem), "it says what is missing")
        assert "cmd/packs" in world.problem
        await world.until_settled()
        await world.pass_by(LAST)
        await until(lambda: world.rows() == world.newest(), "later cars count")

    run(tmp_path, scenario)


def test_a_late_will_of_an_earlier_life_does_not_end_the_questions(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.kill("gw-1")
        await world.start("gw-1")
        will = SiteState(online=False, epoch=1, ts=0, reason="lost")
        logs = world.sites["base"].host.inbox.logs
        await until(lambda: logs.is_online("gw-1"), "the second life")
        world.sites["base"].host.inbox.take(Message(TOPICS.state("gw-1"), encode_json(will)))
        assert logs.is_online("gw-1")

    run(tmp_path, scenario)
