"""The service refreshes views: readers get one exact difference per refresh and nothing between."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from host.mqtt import Message
from host.mqtt.in_memory import InMemoryBroker
from static_engine.__main__ import store_of
from static_engine.evaluation.bags import Bag
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.service.static_engine import StaticEngine
from static_engine.static_settings import StaticSettings
from static_engine.tables import table_watch
from streamsql.algebra.operators import Distinct, Plan, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refresh_times import RefreshSchedule
from streamsql.data.delta import Delta
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch, TableSet
from streamsql.wire.site_messages import RefreshState, SiteState
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder
from tests.loop_turns import loop_turns
from tests.static_engine.polls import polls
from tests.static_engine.rooms_table import ROOMS, SCHEMA, TOPICS

VIEW = SourceDefinition(
    "busy", SourceKind.TABLE, SCHEMA, refresh=RefreshSchedule("SELECT DISTINCT …", (840,))
)
DAY = 86_400_000_000
NOON = 20_000 * DAY + DAY // 2


class World:
    """A broker with the service, its clock in our hands, and one reader of the view."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = NOON
        self.deltas: list[Delta] = []
        self.channel = ReceivingChannel(version=1)
        self.broker = InMemoryBroker()
        self.on_clock: list[Callable[[], None]] = []
        self.on_look: list[Callable[[], None]] = []
        self.on_evaluation: list[Callable[[], None]] = []

    async def __aenter__(self) -> "World":
        settings = StaticSettings(
            broker="mqtt://unused", data_dir=str(self.folder / "data"),
            base_dir=str(self.folder), poll_seconds=0.05, use_spark=False,
        )  # fmt: skip
        self.channel = ReceivingChannel(version=1)
        client = self.broker.client("static")
        store = store_of(settings)
        look, local = store.print_of, LocalExecutor(store)
        collect = local.collect

        def looked(definition: SourceDefinition) -> object:
            seen = look(definition)
            for action in self._taken(self.on_look):
                action()
            return seen

        def evaluated(plan: Plan) -> Bag:
            rows = collect(plan)
            for action in self._taken(self.on_evaluation):
                action()
            return rows

        store.print_of = looked  # type: ignore[method-assign, assignment]
        local.collect = evaluated  # type: ignore[method-assign]
        self.engine = StaticEngine(settings, 7, client, store, lambda *_: local, clock=self.clock)
        self.observer = self.broker.client("observer")
        self.observer.on_messages(self._hear)
        await self.observer.connect()
        await self.observer.subscribe("#")
        self._job = asyncio.create_task(self.engine.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._job.cancel()
        await asyncio.gather(self._job, return_exceptions=True)
        await self.observer.close()

    def clock(self) -> int:
        """Return the time; then let one thing happen."""
        now = self.now
        if self.on_clock:
            self.on_clock.pop(0)()
        return now

    @staticmethod
    def _taken(actions: list[Callable[[], None]]) -> list[Callable[[], None]]:
        """Return the actions, once; they run on the thread that reads and evaluates."""
        taken = actions[:]
        actions.clear()
        return taken

    def _hear(self, burst: list[Message]) -> None:
        for message in burst:
            if TOPICS.parts(message.topic)[2:3] == ["x"]:
                _, delta = self.channel.accept(decode_packed(message.payload, DeltaBatch))
                self.deltas.append(delta)

    def write(self, text: str) -> None:
        temporary = self.folder / "rooms.new"
        temporary.write_text("room,seats\n" + text)
        temporary.replace(self.folder / "rooms.csv")

    def define(self, *views: tuple[SourceDefinition, Plan | None]) -> None:
        orders = tuple(encode_packed(RefreshOrder(view, plan)) for view, plan in views)
        payload = encode_json(TableSet((ROOMS,), orders))
        self.observer.publish(TOPICS.tables("static"), payload, retain=True)

    def deploy(self) -> None:
        fragment = Fragment("f1", Engine.STATIC, VIEW.scan(), ("static",), "f2", ("base",), ())
        bundle = FragmentBundle("q1", 1, (fragment,), SCHEMA)
        topic = TOPICS.fragment("q1", "static")
        self.observer.publish(topic, encode_packed(bundle), retain=True)

    def refresh(self, view: str = "busy") -> None:
        command = encode_json(Command(arguments={"view": view}))
        self.observer.publish(TOPICS.command("static", "refresh"), command)

    @property
    def rows(self) -> Delta:
        return self.channel.contents.get("f1", {})

    def state(self) -> RefreshState:
        message = self.broker.retained.get(TOPICS.host_state("static"))
        views = () if message is None else decode_json(message.payload, SiteState).views
        return views[0] if views else RefreshState("")

    def problem(self) -> str:
        message = self.broker.retained.get(TOPICS.error("q1", "static"))
        return message.payload.decode() if message is not None else ""

    async def show(self, rows: Delta) -> None:
        """Begin to read a view that is all of the table; wait for its rows."""
        self.define((VIEW, ROOMS.scan()))
        self.deploy()
        await self.until(lambda: self.rows == rows)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


def run(folder: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    """Run a scenario with a reader that sees the one row of the table."""

    async def reading() -> None:
        world = World(folder)
        world.write("r1,2\n")
        async with world:
            await world.show({("r1", 2): 1})
            await scenario(world)

    asyncio.run(reading())


def test_readers_see_a_change_at_a_refresh_only_and_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        world.write("r1,2\nr2,4\nr2,4\n")
        async with world as w:
            w.define((VIEW, Distinct(ROOMS.scan())))
            w.deploy()
            await w.until(lambda: w.rows == {("r1", 2): 1, ("r2", 4): 1})
            await w.until(lambda: w.state().rows == 2)
            assert (w.state().last, w.state().next) == (NOON, NOON + DAY // 12)
            w.write("r1,3\nr2,4\n")
            await polls(w.engine, 5)
            assert w.rows == {("r1", 2): 1, ("r2", 4): 1}
            count = len(w.deltas)
            w.now = NOON + DAY // 12
            await w.until(lambda: w.rows == {("r1", 3): 1, ("r2", 4): 1})
            assert w.deltas[count:] == [{("r1", 2): -1, ("r1", 3): 1}]
            w.write("r9,9\n")
            await polls(w.engine, 5)
            w.refresh("nobody")
            w.refresh()
            await w.until(lambda: w.rows == {("r9", 9): 1})
            w.write("r7,7\n")
        async with world as w:  # the same folder; the same time
            await w.until(lambda: w.rows == {("r9", 9): 1})
            await polls(w.engine, 5)
            assert w.rows == {("r9", 9): 1}
        w.now += DAY
        async with world as w:  # a time was missed
            await w.until(lambda: w.rows == {("r7", 7): 1})

    asyncio.run(scenario())


def test_what_fails_is_said_and_the_rows_stay(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        (tmp_path / "rooms.csv").unlink()
        w.refresh()
        await w.until(lambda: "is missing" in w.state().problem)
        assert w.rows == {("r1", 2): 1}
        assert w.state().failed == NOON
        await w.until(lambda: "is missing" in w.problem())
        w.write("r2,2\n")
        w.now += 30_000_000
        await w.until(lambda: w.rows == {("r2", 2): 1})
        await w.until(lambda: not w.state().problem)

    run(tmp_path, scenario)


def test_a_view_that_is_gone_is_a_problem_of_its_readers(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        w.define()
        await w.until(lambda: "no table busy" in w.problem())

    run(tmp_path, scenario)


def test_a_time_that_comes_while_tables_are_looked_at_waits_for_the_next_look(
    tmp_path: Path,
) -> None:
    async def scenario(w: World) -> None:
        def comes() -> None:
            w.write("r2,2\n")
            w.now = NOON + DAY // 12

        w.on_look.append(comes)
        await w.until(lambda: w.rows == {("r2", 2): 1})

    run(tmp_path, scenario)


def test_a_time_may_come_between_any_two_looks_at_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_watch, "_SETTLE_SECONDS", 0.01)

    async def scenario(w: World) -> None:
        def comes() -> None:
            w.now += DAY

        for looks in range(12):
            w.write(f"r{looks},{looks}\n")
            w.on_clock += [lambda: None] * looks + [comes]
            await w.until(lambda n=looks: w.rows == {(f"r{n}", n): 1})  # type: ignore[misc]

    run(tmp_path, scenario)


def test_who_asks_while_a_view_is_computed_gets_what_the_tables_hold_then(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        loop = asyncio.get_running_loop()

        async def heard() -> None:
            w.refresh()
            await loop_turns()

        def asks() -> None:
            w.write("r3,3\n")
            asyncio.run_coroutine_threadsafe(heard(), loop).result(60)

        w.on_evaluation.append(asks)
        w.write("r2,2\n")
        w.refresh()
        await w.until(lambda: w.rows == {("r3", 3): 1})

    run(tmp_path, scenario)


def test_a_file_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        w.write("r2,2\n")
        w.on_look.append(lambda: w.write("r2,2\nr3,3\n"))
        w.refresh()
        await w.until(lambda: w.rows != {("r1", 2): 1})
        assert w.rows == {("r2", 2): 1, ("r3", 3): 1}

    run(tmp_path, scenario)
