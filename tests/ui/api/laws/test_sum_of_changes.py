"""The sum of what any reader is told is the relation: snapshots and changes never overlap or gap.

Readers of every kind (signed rows or upserts, with and without snapshot and progress) come at any
time and read when they like, through the same server-sent events as over HTTP, while batches get
lost and are repaired, the result site restarts, and the query is deployed again.
"""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from federated_optimizer.coordinator.contract.coordinator_model import QueryInfo, QueryStatus
from federated_optimizer.coordinator.queries.answers.results import QueryResult
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, timestamp_text
from streamsql.wire.channel_protocol import SendingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from ui.api.changes import Reading, change_events

SCHEMA = Schema.of(("k", DataType.TEXT), ("v", DataType.INTEGER))
BEHIND = 2
"""So few changes may wait that slow readers often get a snapshot instead."""

Contents = dict[str, int]


def bundle(version: int) -> FragmentBundle:
    plan = Scan("s", SourceKind.STREAM, SCHEMA)
    return FragmentBundle("q1", version, (Fragment("f0", Engine.BASE, plan, ("base",)),), SCHEMA)


@dataclass
class Reader:
    """Adds up what it is told, as a client would."""

    reading: Reading
    rows: Counter[Row]
    told: dict[str, Counter[Row]]
    task: Any = None
    may_read: asyncio.Event = field(default_factory=asyncio.Event)
    progressed: int = 0

    def take(self, text: bytes) -> None:
        lines = dict(line.split(": ", 1) for line in text.decode().strip().splitlines())
        kind, data = lines.get("event"), json.loads(lines.get("data", "{}"))
        if kind == "snapshot":
            self.rows = Counter()
        if kind == "progress":
            self.progressed += 1
            assert self.rows == self.told[data["up_to"]]
        if kind not in ("snapshot", "change"):
            return
        for change in data.get("changes", ()):
            self.rows[tuple(change["row"].values())] += change["diff"]
        for upsert in data.get("upserts", ()):
            for row in [row for row in self.rows if row[0] == upsert["key"]["k"]]:
                del self.rows[row]
            if upsert["row"] is not None:
                self.rows[tuple(upsert["row"].values())] = 1
        self.rows = Counter({row: count for row, count in self.rows.items() if count})
        assert min(self.rows.values(), default=1) > 0


class World:
    """One query's result, the site that sends it, and its readers; a `CoordinatorApi` in part."""

    def __init__(self) -> None:
        self.time = 0
        self.shown = QueryResult(bundle(1), clock=self.clock, max_behind=BEHIND)
        self.version = self.epoch = 1
        self.contents: Contents = {}
        self.readers: list[Reader] = []
        self.told: dict[str, Counter[Row]] = {}
        self.channel = self._channel()
        self.repair()

    def clock(self) -> int:
        self.time += 1
        return self.time

    def query(self, _query: str) -> QueryInfo:
        return QueryInfo("q1", "q1", "SELECT k, v FROM s", QueryStatus.RUNNING, SCHEMA)

    def relation(self, _query: str) -> tuple[Row, ...]:
        return self.shown.rows()

    def subscribe(self, _query: str, *, snapshot: bool, progress: bool) -> Any:
        return self.shown.subscribe(lambda _: None, snapshot=snapshot, progress=progress)

    # --- what may happen ---------------------------------------------------------------------

    def change(self, to: Contents, *, lost: bool, split: bool) -> None:
        gone: Delta = {r: -1 for r in self.contents.items() if r not in to.items()}
        new: Delta = {r: 1 for r in to.items() if r not in self.contents.items()}
        self.contents = to
        for delta in (new, gone) if split else ({**new, **gone},):
            for batch in self.channel.push("f0", delta, now=0):
                if not lost:
                    self.shown.accept("base", batch)

    def restart(self, *, again: bool) -> None:
        if again:
            self.version += 1
            self.shown.redeploy(bundle(self.version))
        else:
            self.epoch += 1
        self.channel = self._channel()
        self.repair()

    def repair(self) -> None:
        for batch in self.channel.snapshot(now=0):
            self.shown.accept("base", batch)

    def release(self) -> None:
        if not self.shown.is_synchronised:
            self.repair()
        if self.shown.held:
            self.shown.release()

    def progress(self) -> None:
        self.repair()
        self.release()
        self.told[timestamp_text(self.time + 1)] = Counter(self.shown.rows())
        self.shown.tell_progress()

    def come(self, reading: Reading) -> None:
        reader = Reader(reading, Counter(self.shown.rows()), self.told)
        events = change_events(self, "q1", reading, closing=asyncio.Event())  # type: ignore[arg-type]

        async def read() -> None:
            async for text in events:
                await reader.may_read.wait()
                reader.take(text)

        reader.may_read.set()
        reader.task = asyncio.create_task(read())
        self.readers.append(reader)

    def _channel(self) -> SendingChannel:
        channel = SendingChannel(version=self.version, epoch=self.epoch, ports=("f0",))
        channel.contents = {"f0": dict.fromkeys(self.contents.items(), 1)}
        return channel


contents = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), max_size=4)
readings = st.builds(
    Reading, snapshot=st.booleans(), progress=st.booleans(), key=st.sampled_from([(), (0,)])
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("change"), contents, st.booleans()),
        st.tuples(st.just("change"), contents, st.booleans()),
        st.tuples(st.just("lose"), contents),
        st.tuples(st.just("restart"), st.booleans()),
        st.tuples(st.sampled_from(["repair", "release", "progress", "wait"])),
        st.tuples(st.just("come"), readings),
        st.tuples(st.just("pause"), st.integers(0, 3)),
    ),
    max_size=25,
)


async def turns(number: int) -> None:
    """Let readers read what they can."""
    for _ in range(number):
        await asyncio.sleep(0)


async def live(what: list[Any]) -> World:
    world = World()
    for name, *how in what:
        match name:
            case "change":
                world.change(how[0], lost=False, split=how[1])
            case "lose":
                world.change(how[0], lost=True, split=False)
            case "restart":
                world.restart(again=how[0])
            case "come":
                world.come(how[0])
                await turns(1)  # it is subscribed, and has read nothing
            case "pause" if how[0] < len(world.readers):
                gate = world.readers[how[0]].may_read
                gate.clear() if gate.is_set() else gate.set()
            case "wait":
                await turns(20)
            case "repair" | "release" | "progress":
                getattr(world, name)()
            case _:
                pass
    world.progress()
    for reader in world.readers:
        reader.may_read.set()
    world.shown.end(QueryStatus.STOPPED)
    await asyncio.wait_for(asyncio.gather(*(reader.task for reader in world.readers)), 30)
    return world


COME, ONE, TWO = ("come", Reading()), ("change", {"a": 1}, False), ("change", {"b": 1}, False)


@given(steps)
@example([ONE, COME, TWO, ("wait",)])  # while the first snapshot is owed
@example([COME, ("wait",), ("pause", 0), ONE, TWO, ONE, TWO, ONE])  # while one is, to a slow reader
def test_what_every_reader_is_told_adds_up_to_the_relation(what: list[Any]) -> None:
    world = asyncio.run(live(what))
    relation = Counter(world.contents.items())
    assert Counter(world.shown.rows()) == relation
    for reader in world.readers:
        assert reader.rows == relation, reader.reading


def test_readers_are_told_how_far_the_answer_is_complete() -> None:
    what = [
        ("come", Reading(snapshot=False, progress=True)),
        ("come", Reading(snapshot=True, progress=True, key=(0,))),
        ("change", {"a": 1}, False),
        ("wait",),
        ("progress",),
        ("wait",),
    ]
    world = asyncio.run(live(what))
    assert all(reader.progressed >= 2 for reader in world.readers)
