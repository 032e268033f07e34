"""Looks at stored tables: those that were read, and those that no query has needed yet."""

import itertools
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.tables import table_looks
from static_engine.tables.table_looks import TableLooks
from static_engine.tables.table_problems import TableProblems
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

SCHEMA = Schema.of(("a", DataType.INTEGER), ("x", DataType.DOUBLE), ("at", DataType.TIMESTAMP))


def definition(**options: str) -> SourceDefinition:
    return SourceDefinition("t", SourceKind.TABLE, SCHEMA, options=tuple(options.items()))


class House:
    """A folder with one table, and looks at it."""

    def __init__(self, folder: Path, **options: str) -> None:
        self.folder = folder
        self.definition = definition(**options)
        self.store = TableStore(Locations(folder), folder / "snapshots", memory_rows=100)
        self.watch = TableWatch(self.store)
        self.watch.define((self.definition,))
        self.looks = TableLooks(self.store, self.watch, lambda: {"t": 12_000})


def csv(folder: Path, count: int) -> House:
    lines = [f"{n},{n / 2},2026-01-01T00:00:{n % 60:02}Z" for n in range(count)]
    (folder / "t.csv").write_text("\n".join(["a,x,at", *lines, "", ""]))
    return House(folder, source="csv", path="t.csv", refresh="5 min")


def test_a_table_that_nobody_reads_is_looked_at_and_not_kept(tmp_path: Path) -> None:
    house = csv(tmp_path, 300)
    known, sample, figures, looked = house.looks.look("t", 2)
    assert (known.source, known.place, known.rows, known.refresh) == ("csv", "t.csv", 12_000, 300)
    assert known.bytes == (tmp_path / "t.csv").stat().st_size
    assert known.read is None
    assert sample.rows == ((0, 0.0, "2026-01-01T00:00:00Z"), (1, 0.5, "2026-01-01T00:00:01Z"))
    assert (looked, sample.cut) == (300, False)
    assert house.looks.look("T", 2) == (known, sample, figures, looked)
    assert [each.greatest for each in figures] == ["299", "149.5", "2026-01-01T00:00:59Z"]
    assert house.store.find("t") is None


@pytest.mark.parametrize("count", [50, 300])
def test_what_was_read_is_shown_though_the_file_is_gone(tmp_path: Path, count: int) -> None:
    house = csv(tmp_path, count)  # 300 rows are more than are held in memory
    assert house.watch.poll(frozenset({"t"}))
    (tmp_path / "t.csv").unlink()
    house.watch.poll(frozenset({"t"}))
    known, sample, _, looked = house.looks.look("t", 1)
    assert (known.rows, looked) == (count, count)
    assert known.read is not None
    assert "t.csv" in known.problem
    assert sample.rows == ((0, 0.0, "2026-01-01T00:00:00Z"),)


def test_no_more_is_read_than_figures_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_looks, "MAX_READ", 10)
    _, sample, figures, looked = csv(tmp_path, 300).looks.look("t", 20)
    assert (looked, len(sample.rows), sample.cut) == (10, 10, True)
    assert figures[0].greatest == "9"


def test_a_look_that_takes_too_long_says_that_it_is_not_the_whole(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"a": range(90_000), "x": [0.5] * 90_000, "at": ["2026-01-01"] * 90_000}),
        tmp_path / "t.parquet",
    )
    house = House(tmp_path, source="parquet", path="t.parquet")
    now = itertools.count(0, 5)
    slow = TableLooks(house.store, house.watch, dict, lambda: float(next(now)))
    _, sample, _, looked = slow.look("t", 5)
    assert 0 < looked < 90_000
    assert sample.cut
    _, sample, _, looked = house.looks.look("t", 5)
    assert (looked, sample.cut) == (90_000, False)


def test_passwords_of_addresses_are_not_shown(tmp_path: Path) -> None:
    house = House(tmp_path, source="csv", path="https://me:s3cr3t@host.example/t.csv?token=abc")
    house.watch.poll(frozenset())
    (known,), _ = house.looks.tables()
    assert known.place == "https://me:***@host.example/t.csv?token=***"
    assert known.problem
    assert "s3cr3t" not in known.problem + known.place
    (row,) = TableProblems(house.watch).as_begun(house.watch.problems())
    assert "s3cr3t" not in row.detail


def test_a_store_is_not_fetched_for_a_look(tmp_path: Path) -> None:
    house = House(tmp_path, source="parquet", path="s3://shop/leases.parquet")
    with pytest.raises(TableError, match="no query has fetched it"):
        house.looks.look("t", 5)


def test_a_server_does_not_tell_of_changes_and_a_file_does(tmp_path: Path) -> None:
    assert csv(tmp_path, 3).looks.look("t", 1)[0].told
    address = {"source": "sql", "url": "postgresql://h.example/d", "table": "t"}
    assert not House(tmp_path, **address).looks.tables()[0][0].told


def test_a_database_is_looked_at_without_its_address(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as database:
        database.execute("CREATE TABLE t (a INTEGER, x REAL, at TEXT)")
        database.execute("INSERT INTO t VALUES (NULL, 0.5, NULL)")
    house = House(tmp_path, source="sql", url="sqlite:///t.db", table="t")
    known, sample, figures, _ = house.looks.look("t", 5)
    assert known.place == "t"  # an address may hold a password
    assert sample.rows == ((None, 0.5, None),)
    assert [each.nulls for each in figures] == [1, 0, 1]


def test_tables_are_listed_with_what_is_wrong(tmp_path: Path) -> None:
    house = House(tmp_path, source="csv", path="no.csv")
    house.watch.poll(frozenset())
    (known,), more = house.looks.tables()
    assert (known.name, known.rows, known.bytes, more) == ("t", 12_000, None, 0)
    assert "no.csv" in known.problem
    assert [column.type for column in known.columns] == ["INTEGER", "DOUBLE", "TIMESTAMP"]
    with pytest.raises(TableError, match=r"no\.csv"):
        house.looks.look("t", 5)
    with pytest.raises(TableError, match="there is no stored table other"):
        house.looks.look("other", 5)
