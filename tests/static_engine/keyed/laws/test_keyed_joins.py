"""Joins by key over a changing table and changing keys: exact, and the table is not read whole."""

import asyncio
import contextlib
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from host.mqtt import Message, Will
from host.mqtt.in_memory import InMemoryBroker, InMemoryClient
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.keyed import keyed_fragments, keyed_queries
from static_engine.service.engine_reports import will_state
from static_engine.service.static_engine import StaticEngine
from static_engine.sources.table_locations import Locations
from static_engine.static_settings import StaticSettings
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    RemoteSource,
    SourceKind,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.channel_protocol import ReceivingChannel, SendingChannel
from streamsql.wire.codec import (
    decode_compressed_packed,
    decode_json,
    decode_packed,
    encode_json,
    encode_packed,
)
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch, FlowReport, QueryProblem, TableSet
from streamsql.wire.site_messages import SiteFlows
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
SCHEMA = Schema.of(("id", DataType.INTEGER), ("name", DataType.TEXT), ("size", DataType.INTEGER))
KEYS = RemoteSource("f3", Schema.of(("k0", DataType.INTEGER), ("k1", DataType.TEXT)))
IDS = (None, 0, 1, 2, 3)
NAMES = (None, "a", "A", "ä", "a ")

Match = Callable[[list[Row], list[Row]], Iterator[Row]]


def table(source: str) -> SourceDefinition:
    where = {
        "sql": (("source", "sql"), ("url", "sqlite:///rows.db"), ("table", "t")),
        "numeric": (("source", "sql"), ("url", "sqlite:///rows.db"), ("table", "loose")),
        "csv": (("source", "csv"), ("path", "rows.csv")),
        "snapshot": (("source", "csv"), ("path", "rows.csv")),
    }
    return SourceDefinition("t", SourceKind.TABLE, SCHEMA, options=where[source], text=source)


def semi_of_table(keys: list[Row], rows: list[Row]) -> Iterator[Row]:
    yield from (row for row in rows if any(_meet(key, row) for key in keys))


def distinct_of_table(keys: list[Row], rows: list[Row]) -> Iterator[Row]:
    yield from set(semi_of_table(keys, rows))


def semi_of_keys(keys: list[Row], rows: list[Row]) -> Iterator[Row]:
    yield from (key for key in keys if any(_meet(key, row) for row in rows))


def anti_of_keys(keys: list[Row], rows: list[Row]) -> Iterator[Row]:
    yield from (key for key in keys if not any(_meet(key, row) for row in rows))


def left_of_keys(keys: list[Row], rows: list[Row]) -> Iterator[Row]:
    for key in keys:
        matches = [key + row for row in rows if _meet(key, row)]
        yield from matches or [(*key, None, None, None)]


def _meet(key: Row, row: Row) -> bool:
    return None not in key and key == row[:2] and isinstance(row[2], int) and row[2] >= 1


LARGE = Filter(
    table("sql").scan(),
    Call(
        ">=",
        (Column(2, "size", DataType.INTEGER), Literal(1, DataType.INTEGER)),
        DataType.BOOLEAN,
    ),
)
ON_KEYS = ((0, 0), (1, 1))
FORMS: dict[str, tuple[Plan, Match]] = {
    "rows": (Join(LARGE, KEYS, JoinKind.SEMI, ON_KEYS), semi_of_table),
    "distinct": (Join(Distinct(LARGE), KEYS, JoinKind.SEMI, ON_KEYS), distinct_of_table),
    "semi": (Join(KEYS, LARGE, JoinKind.SEMI, ON_KEYS), semi_of_keys),
    "anti": (Join(KEYS, LARGE, JoinKind.ANTI, ON_KEYS), anti_of_keys),
    "left": (Join(KEYS, LARGE, JoinKind.LEFT, ON_KEYS), left_of_keys),
}


@dataclass
class World:
    """A static engine, a base site that sends keys and reads rows, and a table."""

    folder: Path
    broker: InMemoryBroker
    engine: StaticEngine
    store: TableStore
    base: InMemoryClient
    definition: SourceDefinition
    keys: Counter[Row] = field(default_factory=Counter)
    rows: list[Row] = field(default_factory=list)
    problem: str = ""
    batches: int = 0
    received: ReceivingChannel = field(default_factory=lambda: ReceivingChannel(version=1))
    sending: SendingChannel = field(
        default_factory=lambda: SendingChannel(version=1, epoch=1, ports=["f3"])
    )
    flow: FlowReport | None = None

    def hear(self, burst: list[Message]) -> None:
        for message in burst:
            match TOPICS.parts(message.topic):
                case ["q", "q1", "x", "base", "static"]:
                    self.batches += 1
                    self.received.accept(decode_packed(message.payload, DeltaBatch))
                case ["gw", "base", "cmd", "resync", "static"]:
                    assert decode_json(message.payload, Command).channel == "static"
                    self.send(*self.sending.snapshot(now=0))
                case ["gw", "static", "flow"]:
                    self.flow = decode_compressed_packed(message.payload, SiteFlows).reports["q1"]
                case ["q", "q1", "error", "static"]:
                    self.problem = (
                        decode_json(message.payload, QueryProblem).message
                        if message.payload
                        else ""
                    )
                case _:
                    pass

    def send(self, *batches: DeltaBatch) -> None:
        for batch in batches:
            self.base.publish(TOPICS.exchange("q1", "static", "base"), encode_packed(batch))

    def change_keys(self, delta: Delta) -> None:
        self.keys.update(delta)
        self.keys = +self.keys
        self.send(*self.sending.push("f3", delta, now=0))

    def write(self) -> None:
        """Write the table anew, as another program does."""
        if self.definition.option("source") == "csv":
            lines = [",".join("" if v is None else f'"{v}"' for v in row) for row in self.rows]
            made = self.folder / "new.csv"
            made.write_text("\n".join(["id,name,size", *lines]) + "\n")
            made.replace(self.folder / "rows.csv")
            return
        with closing(sqlite3.connect(self.folder / "rows.db")) as database, database:
            for name, kind in (("t", "INTEGER"), ("loose", "NUMERIC")):
                database.execute(f"DROP TABLE IF EXISTS {name}")
                database.execute(f"CREATE TABLE {name} (id {kind}, name TEXT, size INTEGER)")
                database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", self.rows)

    @property
    def is_settled(self) -> bool:
        sent = {"base": self.sending.sequence}
        return self.flow is not None and not self.flow.busy and self.flow.received == sent

    def current(self) -> Delta:
        return self.received.contents.get("f2", {})

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def world(folder: Path, plan: Plan, definition: SourceDefinition) -> AsyncIterator[World]:
    broker = InMemoryBroker()
    settings = StaticSettings(
        "mqtt://unused", str(folder / "data"), base_dir=str(folder), poll_seconds=0.05
    )
    service = broker.client(
        "static", will=Will(TOPICS.host_state("static"), encode_json(will_state(7)))
    )
    store = TableStore(
        Locations(folder),
        folder / "data" / "snapshots",
        memory_rows=0 if definition.text == "snapshot" else 200_000,
        snapshots=definition.text == "snapshot",
    )
    engine = StaticEngine(settings, 7, service, store, lambda s, _: LocalExecutor(s))
    made = World(folder, broker, engine, store, broker.client("base"), definition)
    made.base.on_messages(made.hear)
    await made.base.connect()
    await made.base.subscribe("#")
    made.write()
    made.base.publish(TOPICS.tables("static"), encode_json(TableSet((definition,))), retain=True)
    base, static = ("base",), ("static",)
    joined = RemoteSource("f2", plan.schema)
    keys = Distinct(RemoteSource("f1", KEYS.columns))
    fragments = (
        Fragment("f0", Engine.BASE, joined, base),
        Fragment("f2", Engine.STATIC, plan, static, "f0", base),
        Fragment("f3", Engine.BASE, keys, base, "f2", static),
    )
    bundle = FragmentBundle("q1", 1, fragments, plan.schema)
    made.base.publish(TOPICS.fragment("q1", "static"), encode_packed(bundle), retain=True)
    job = asyncio.create_task(engine.run())
    try:
        yield made
    finally:
        job.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await job
        await made.base.close()


def run(
    folder: Path, form: str, source: str, scenario: Callable[[World, Match], Awaitable[None]]
) -> None:
    async def main() -> None:
        plan, match = FORMS[form]
        async with world(folder, plan, table(source)) as made:
            await scenario(made, match)

    asyncio.run(main())


def random_row(rng: random.Random) -> Row:
    return (rng.choice(IDS), rng.choice(NAMES), rng.choice((None, 0, 1, 2)))


@pytest.mark.parametrize(
    ("form", "source"),
    [
        (form, source)
        for form in FORMS
        for source in ("sql", "numeric", "csv", "snapshot")
        if (form, source) != ("distinct", "snapshot")  # that is Spark's
    ],
)
def test_the_answer_is_exact_after_every_change(
    tmp_path: Path, form: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed_fragments, "LOOKUP_KEYS", 3)

    async def scenario(w: World, match: Match) -> None:
        rng = random.Random(f"{form} {source}")
        w.send(*w.sending.snapshot(now=0))
        for step in range(25):
            match_step = rng.random()
            if match_step < 0.5:
                key = (rng.choice(IDS[1:]), rng.choice(NAMES[1:]))
                w.change_keys({key: -1 if w.keys[key] else 1})
            elif match_step < 0.9:
                for _ in range(rng.randint(1, 3)):
                    if w.rows and rng.random() < 0.4:
                        w.rows.pop(rng.randrange(len(w.rows)))
                    else:
                        w.rows.append(random_row(rng))
                w.write()
            else:
                w.broker.cut("static")
                await asyncio.sleep(0)
                w.broker.restore("static")
            expected = dict(Counter(match(list(w.keys), w.rows)))
            try:
                await w.until(lambda e=expected: w.received.synchronised and w.current() == e)  # type: ignore[misc]
            except TimeoutError:
                raise AssertionError(f"step {step}: {w.current()} != {expected}") from None
        assert (w.store.find("t") is None) == (source == "sql" and form != "distinct")
        await w.until(lambda: w.is_settled)

    run(tmp_path, form, source, scenario)


def test_a_new_key_costs_one_batch_of_its_rows(tmp_path: Path) -> None:
    async def scenario(w: World, _match: Match) -> None:
        w.rows = [(n, "a", 1) for n in range(20_000)]
        w.write()
        w.change_keys({(n, "a"): 1 for n in range(100)})
        await w.until(lambda: len(w.current()) == 100)
        before = w.batches
        w.change_keys({(777, "a"): 1})
        await w.until(lambda: (777, "a", 1) in w.current())
        assert w.batches == before + 1
        assert w.store.find("t") is None
        w.change_keys({(777, "a"): -1})
        await w.until(lambda: (777, "a", 1) not in w.current())

    run(tmp_path, "rows", "sql", scenario)


@pytest.mark.parametrize("left", [None, b"", b"\x00garbage" * 900, b"SQLite format 3\x00" * 64])
def test_a_database_that_goes_away_keeps_the_answer_and_is_told(
    left: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone, or something else is in its place."""
    monkeypatch.setattr(keyed_queries, "RETRY_SECONDS", 0.1)

    async def scenario(w: World, _match: Match) -> None:
        w.rows = [(1, "a", 1)]
        w.write()
        w.change_keys({(1, "a"): 1})
        await w.until(lambda: w.current() == {(1, "a", 1): 1})
        (tmp_path / "rows.db").rename(tmp_path / "away.db")
        if left is not None:
            (tmp_path / "rows.db").write_bytes(left)
        await w.until(lambda: w.problem)
        assert "rows.db" in w.problem or "no table or view 't'" in w.problem
        w.change_keys({(2, "a"): 1})
        assert w.current() == {(1, "a", 1): 1}
        (tmp_path / "away.db").rename(tmp_path / "rows.db")
        w.rows.append((2, "a", 3))
        w.write()
        await w.until(lambda: w.current() == {(1, "a", 1): 1, (2, "a", 3): 1})
        await w.until(lambda: not w.problem)

    run(tmp_path, "rows", "sql", scenario)


def test_too_many_keys_are_refused_and_fewer_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed_queries, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(keyed_fragments, "MAX_KEYS", 2)

    async def scenario(w: World, _match: Match) -> None:
        w.rows = [(1, "a", 1)]
        w.write()
        w.change_keys({(n, "a"): 1 for n in range(3)})
        await w.until(lambda: "3 distinct keys" in w.problem)
        w.change_keys({(2, "a"): -1})
        await w.until(lambda: w.current() == {(1, "a", 1): 1} and not w.problem)

    run(tmp_path, "rows", "sql", scenario)
