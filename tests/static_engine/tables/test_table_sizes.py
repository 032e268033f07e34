"""Sizes that are told of stored tables: rows, and counts of their columns."""

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from static_engine.sources.table_locations import Locations
from static_engine.tables import table_sizes, table_store
from static_engine.tables.table_sizes import TableSizes
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.site_messages import ColumnCount, SourceCount

SCHEMA = Schema.of(("Id", DataType.INTEGER), ("Note", DataType.TEXT), ("empty", DataType.TEXT))
ROWS = [(n, "\u0142" * 10 if n % 2 else None, None) for n in range(20_000)]


def check(count: SourceCount, distinct: int) -> None:
    assert (count.source, count.rows, count.compared) == ("t", len(ROWS), 0)
    whole, note, empty = (count.columns[name] for name in SCHEMA.names)
    assert whole.distinct == pytest.approx(distinct, rel=0.01)
    assert (note.distinct, note.often) == (1, count.sampled - note.nulls)
    assert note.nulls == pytest.approx(count.sampled / 2, abs=2)
    assert note.size == 20 * note.often
    assert (whole.size, whole.nulls, len(whole.deciles)) == (None, 0, 11)
    assert (empty.nulls, empty.distinct, empty.size) == (count.sampled, 0, 0)
    assert not note.hashes, "texts can be found by them"


def opened(folder: Path, *options: tuple[str, str]) -> tuple[TableStore, TableWatch, TableSizes]:
    store = TableStore(Locations(folder), folder / "snapshots")
    watch = TableWatch(store)
    watch.define(
        (SourceDefinition("t", SourceKind.TABLE, SCHEMA, key=(0,), options=tuple(options)),)
    )
    return store, watch, TableSizes(store, watch)


def parquet(folder: Path) -> tuple[tuple[str, str], ...]:
    names = [name.lower() for name in SCHEMA.names]
    columns = dict(zip(names, zip(*ROWS, strict=True), strict=True))
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), folder / "t")
    (folder / "t").rename(folder / "t.parquet")
    return ("source", "parquet"), ("path", "t.parquet")


def database(folder: Path) -> tuple[tuple[str, str], ...]:
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute("CREATE TABLE t (id INTEGER, note TEXT, empty TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
    connection.close()
    return ("source", "sql"), ("url", f"sqlite:///{folder}/t.db"), ("table", "t")


@pytest.mark.parametrize("written", [parquet, database])
def test_columns_of_tables_are_counted_without_reading_them(
    tmp_path: Path, written: object
) -> None:
    assert callable(written)
    store, _, sizes = opened(tmp_path, *written(tmp_path))
    sizes.poll()
    assert store.find("t") is None
    assert sizes.rows() == {"t": len(ROWS)}
    check(sizes.counts()["t"], len(ROWS))


@pytest.mark.parametrize("memory", [16 * 2**20, 1_000], ids=["in memory", "a snapshot"])
def test_columns_of_tables_that_were_read_are_counted(
    tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_store, "_MEMORY_BYTES", memory)
    store, watch, sizes = opened(tmp_path, ("source", "csv"), ("path", "t.csv"))
    lines = ["Id,Note,empty", *(f"{n},{note or ''}," for n, note, _ in ROWS)]
    (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    sizes.poll()
    assert sizes.counts() == {}  # a text file does not say how many rows it has
    watch.poll(frozenset({"t"}))
    table = store.find("t")
    assert table is not None
    assert (table.data is None) == (memory == 1_000)
    sizes.poll()
    count = sizes.counts()["t"]
    check(count, len(ROWS))
    spread = memory > 1_000
    assert (count.columns["Id"].deciles[-1] == len(ROWS) - 1) == spread
    watch.define(())
    sizes.poll()
    assert sizes.counts() == {}


def test_of_what_cannot_be_read_nothing_is_told(tmp_path: Path) -> None:
    options = parquet(tmp_path)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "t.parquet")  # columns are missing
    _, _, sizes = opened(tmp_path, *options)
    sizes.poll()
    assert sizes.rows() == {"t": 1}
    assert sizes.counts() == {}


class Unread:
    """A file of numbers that a query has read and that none reads any more."""

    def __init__(self, folder: Path) -> None:
        self.file, self.now = folder / "t.parquet", 0.0
        self.store = TableStore(Locations(folder), folder / "snapshots")
        self.watch = TableWatch(self.store, lambda: self.now)
        self.sizes = TableSizes(self.store, self.watch, lambda: self.now)
        self.write("id", list(range(100)))
        self.define("id", DataType.INTEGER)
        self.watch.poll(frozenset({"t"}))
        self.sizes.poll()

    def write(self, column: str, values: list[int] | list[str]) -> None:
        pq.write_table(pa.table({column: values}), self.file)

    def define(self, column: str, dtype: DataType) -> None:
        options = (("source", "parquet"), ("path", self.file.name))
        schema = Schema.of((column, dtype))
        self.watch.define((SourceDefinition("t", SourceKind.TABLE, schema, options=options),))

    def poll(self, seconds: float) -> SourceCount | None:
        self.now += seconds
        self.watch.poll(frozenset())
        self.sizes.poll()
        return self.sizes.counts().get("t")


def test_counts_of_a_table_that_is_kept_no_more_make_room_for_those_of_its_file(
    tmp_path: Path,
) -> None:
    unread = Unread(tmp_path)
    unread.write("id", list(range(1_000, 51_000)))
    kept = unread.poll(300)
    assert kept is not None
    assert (unread.sizes.rows(), kept.rows) == ({"t": 100}, 100), "one version is told"
    fresh = unread.poll(400)
    assert unread.store.find("t") is None
    assert fresh is not None
    assert (unread.sizes.rows(), fresh.rows) == ({"t": 50_000}, 50_000)
    assert fresh.columns["id"].deciles[0] == 1_000
    unread.write("id", [7])
    assert unread.poll(700) == SourceCount(1, 1, 0, {"id": fresh_count(7)}, "t")
    unread.file.unlink()
    assert unread.poll(700) is None


def fresh_count(number: int) -> ColumnCount:
    return ColumnCount(often=1, deciles=(float(number),) * 11, distinct=1.0)


def test_counts_of_a_definition_are_not_told_of_the_next_one(tmp_path: Path) -> None:
    unread = Unread(tmp_path)
    unread.write("name", ["x" * 500] * 50)
    unread.define("name", DataType.TEXT)
    assert (unread.sizes.counts(), unread.sizes.rows()) == ({}, {})
    unread.sizes.poll()  # the store still has what was read before
    assert unread.store.find("t") is not None
    for count in (unread.sizes.counts()["t"], unread.poll(10)):
        assert count is not None
        assert (count.rows, set(count.columns)) == (50, {"name"})
        assert count.columns["name"].size == 500 * 50
    assert unread.sizes.rows() == {"t": 50}
    unread.watch.poll(frozenset({"t"}))
    unread.sizes.poll()
    assert unread.sizes.counts()["t"].rows == 50


def test_a_count_that_failed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(table_sizes, "stored_counts", lambda _: None)
        unread = Unread(tmp_path)
        unread.sizes.poll()
    assert unread.store.find("t") is not None
    assert unread.sizes.counts() == {}
    unread.sizes.poll()
    assert unread.sizes.counts() == {}, "not at every poll"
    assert unread.poll(int(table_sizes.SOON_SECONDS)) is not None
