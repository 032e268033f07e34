"""Bytes and times of a stream's join with a large table of a database, by key and whole.

    python -m benchmarks.joins_by_key [--postgres URL] [--spark] [--rows N …] [--quick] [--json]

A static engine's service on a broker in this process, a table of several sizes in SQLite, or in the
PostgreSQL database that is named (its table `devices` is replaced), with an index on its key, and
1,000 distinct keys. Measured at the site that joins:

    MB shipped      from the static engine, for the first answer
    s first row     from the keys to the first row
    s all rows      from the keys to the last row
    ms a key        one more key, median
    ms the table    one row of the table changes, and all keys are asked again; with the poll of
                    0.05 s that notices it (SQLite), or the `refresh` of 1 s (PostgreSQL); median

`keys` sends keys; `whole` has the whole table sent, as joins with small tables do. `spark` (with
--spark) joins the same keys with a Parquet copy that a session of Spark in this process has cached:
what a job that is run again would take, warm, from keys to rows.

How to read it: bytes are exact; only ratios of times within one run mean anything.
"""

import argparse
import asyncio
import contextlib
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from benchmarks._figures import print_tables
from host.mqtt import Message
from host.mqtt.in_memory import InMemoryBroker
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.service.static_engine import StaticEngine
from static_engine.sources.table_locations import Locations
from static_engine.static_settings import StaticSettings
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Join, JoinKind, Plan, RemoteSource, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.channel_protocol import ReceivingChannel, SendingChannel
from streamsql.wire.codec import decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch, TableSet
from streamsql.wire.topics import Topics

KEYS = 1_000
SIZES = (10_000, 1_000_000, 10_000_000)
LARGEST_WHOLE = 200_000
SECONDS = 120.0
TOPICS = Topics("demo")
SQLITE = "sqlite:///devices.db"
COLUMNS = Schema.of(("id", DataType.INTEGER), ("owner", DataType.TEXT), ("level", DataType.INTEGER))


def devices(url: str) -> SourceDefinition:
    """Return the table, in SQLite or at an address of PostgreSQL."""
    options = (("source", "sql"), ("url", url), ("table", "devices"))
    again = () if url == SQLITE else (("refresh", "1 s"),)
    return SourceDefinition("devices", SourceKind.TABLE, COLUMNS, options=(*options, *again))


DEVICES = devices(SQLITE)
ASKED = RemoteSource("f2", Schema.of(("k0", DataType.INTEGER)))
BY_KEY = Join(DEVICES.scan(), ASKED, JoinKind.SEMI, ((0, 0),))


def fill(folder: Path, url: str, rows: int) -> None:
    """Write the table."""
    if url != SQLITE:
        create = "CREATE TABLE devices (id BIGINT PRIMARY KEY, owner TEXT, level BIGINT)"
        series = f"SELECT n, 'owner ' || n % 997, n % 7 FROM generate_series(0, {rows - 1}) AS t(n)"
        change(folder, url, "DROP TABLE IF EXISTS devices", create, f"INSERT INTO devices {series}")
        change(folder, url, "ANALYZE devices")
        return
    made: Iterator[tuple[int, str, int]] = ((n, f"owner {n % 997}", n % 7) for n in range(rows))
    with closing(sqlite3.connect(folder / "devices.db")) as database, database:
        database.execute("DROP TABLE IF EXISTS devices")
        database.execute("CREATE TABLE devices (id INTEGER PRIMARY KEY, owner TEXT, level INTEGER)")
        database.executemany("INSERT INTO devices VALUES (?, ?, ?)", made)


def change(folder: Path, url: str, *statements: str) -> None:
    """Carry statements out, all or none."""
    engine = create_engine(
        f"sqlite:///{folder / 'devices.db'}"
        if url == SQLITE
        else make_url(url).set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
    )
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


class Receiver:
    """The site that joins: it sends keys and receives rows."""

    def __init__(self, broker: InMemoryBroker) -> None:
        self.client = broker.client("base")
        self.client.on_messages(self._hear)
        self.received = ReceivingChannel(version=1)
        self.sending = SendingChannel(version=1, epoch=1, ports=["f2"])
        self.bytes = 0
        self.first = float("nan")

    async def connect(self, plan: Plan, table: SourceDefinition) -> None:
        """Connect and deploy."""
        await self.client.connect()
        await self.client.subscribe(
            TOPICS.exchange("q", "base", "static"), TOPICS.request("base", "resync", "static")
        )
        self.client.publish(TOPICS.tables("static"), encode_json(TableSet((table,))), retain=True)
        base, static = ("base",), ("static",)
        rows = Fragment("f1", Engine.STATIC, plan, static, "f0", base)
        keys = Fragment("f2", Engine.BASE, ASKED, base, "f1", static)
        fragments = (rows, keys) if plan is BY_KEY else (rows,)
        bundle = FragmentBundle("q", 1, fragments, plan.schema)
        self.client.publish(TOPICS.fragment("q", "static"), encode_packed(bundle), retain=True)

    def ask(self, keys: range) -> None:
        """Send keys."""
        self._send(self.sending.push("f2", {(key,): 1 for key in keys}, now=0))

    def _send(self, batches: Iterable[DeltaBatch]) -> None:
        for batch in batches:
            self.client.publish(TOPICS.exchange("q", "static", "base"), encode_packed(batch))

    def has(self, key: int, rows: int) -> bool:
        """Whether so many rows are here, and a key's among them."""
        found = self.received.contents.get("f1", {})
        return len(found) == rows and any(row[0] == key for row in found)

    def _hear(self, burst: list[Message]) -> None:
        for message in burst:
            if TOPICS.parts(message.topic)[0] == "gw":
                self._send(self.sending.snapshot(now=0))
                continue
            batch = decode_packed(message.payload, DeltaBatch)
            self.bytes += len(message.payload)
            self.received.accept(batch)
            if batch.deltas and self.first != self.first:
                self.first = time.perf_counter()


async def until(condition: Callable[[], bool]) -> float:
    """Wait for a condition; return the seconds that it took."""
    began = time.perf_counter()
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing else tells of it
            await asyncio.sleep(0.001)
    return time.perf_counter() - began


async def measured(folder: Path, url: str, rows: int, plan: Plan, changes: int) -> dict[str, float]:
    """Return the figures of one size and way."""
    broker = InMemoryBroker()
    settings = StaticSettings(
        "mqtt://unused", str(folder / "data"), base_dir=str(folder), poll_seconds=0.05
    )
    store = TableStore(Locations(folder), folder / "snapshots", snapshots=False)
    client = broker.client("static")
    engine = StaticEngine(settings, 1, client, store, lambda s, _: LocalExecutor(s))
    receiver = Receiver(broker)
    job = asyncio.create_task(engine.run())
    try:
        await receiver.connect(plan, devices(url))
        step = rows // KEYS
        if plan is BY_KEY:
            receiver.ask(range(0, step * KEYS, step))
        began = time.perf_counter()
        expected = KEYS if plan is BY_KEY else rows
        whole = await until(lambda: receiver.has(0, expected))
        figures = {
            "MB shipped": receiver.bytes / 1e6,
            "s first row": receiver.first - began,
            "s all rows": whole,
        }
        keyed = []
        for number in range(1, changes + 1) if plan is BY_KEY else ():
            key = number * step + 1
            receiver.ask(range(key, key + 1))
            keyed.append(await until(lambda k=key, n=number: receiver.has(k, KEYS + n)))  # type: ignore[misc]
        if keyed:
            figures["ms a key"] = median(keyed) * 1_000
        turns = []
        for number in range(changes):
            change(folder, url, f"UPDATE devices SET level = {100 + number} WHERE id = 0")
            turns.append(await until(lambda n=number: _level(receiver) == 100 + n))  # type: ignore[misc]
        return figures | {"ms the table": median(turns) * 1_000}
    finally:
        job.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await job
        await receiver.client.close()


def _level(receiver: Receiver) -> object:
    return next(row[2] for row in receiver.received.contents["f1"] if row[0] == 0)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Joins of streams with large tables, by key.")
    parser.add_argument("--quick", action="store_true", help="10,000 rows, three changes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES, help="of the table")
    parser.add_argument("--spark", action="store_true", help="beside Spark on a cached copy")
    parser.add_argument("--postgres", default=SQLITE, metavar="URL", help="a database to write to")
    options = parser.parse_args(argv)
    sizes = (10_000,) if options.quick else options.rows
    changes = 3 if options.quick else 20
    result: dict[str, dict[str, dict[str, float]]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
            fill(Path(name), options.postgres, size)
            ways: dict[str, Plan] = {"keys": BY_KEY}
            if size <= LARGEST_WHOLE:
                ways["whole"] = DEVICES.scan()
            result[f"{size:,} rows"] = {
                way: asyncio.run(measured(Path(name), options.postgres, size, plan, changes))
                for way, plan in ways.items()
            }
            if options.spark:
                from benchmarks._spark_joins import joined  # noqa: PLC0415  (loads Spark)

                keys = range(0, size // KEYS * KEYS, size // KEYS)
                result[f"{size:,} rows"]["spark"] = joined(Path(name), size, keys, changes)
    if options.json:
        print(json.dumps({"benchmark": "joins_by_key", **result}, indent=2))
        return 0
    print_tables(result, digits=3)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
