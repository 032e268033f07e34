"""Plans over parts of a database's table give the same rows, and less is read."""

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import tables_of
from static_engine.sources.table_locations import Locations
from static_engine.tables import narrowed_tables
from static_engine.tables.narrowed_tables import NarrowedTables
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Plan, SourceKind
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from tests.streamsql.from_text import bound_query

SCHEMA = Schema.of(
    ("id", DataType.INTEGER),
    ("name", DataType.TEXT),
    ("x", DataType.DOUBLE),
    ("size", DataType.INTEGER),
)
T = SourceDefinition(
    "t",
    SourceKind.TABLE,
    SCHEMA,
    key=(0,),
    options=(("source", "sql"), ("url", "sqlite:///rows.db"), ("table", "t")),
)
C = SourceDefinition(
    "c",
    SourceKind.TABLE,
    Schema.of(("id", DataType.INTEGER), ("label", DataType.TEXT)),
    options=(("source", "csv"), ("path", "c.csv")),
)
NAMES = (None, "", "a", "A", "ä", "b")
ROWS = [
    (n, name, None if n % 5 == 0 else n / 4, n % 7 if n % 3 else None)
    for n, name in zip(range(60), itertools.cycle(NAMES), strict=False)
]

QUERIES = {
    # text: rows that are read of t, columns that are read of it
    "SELECT name FROM t WHERE id < 10": (10, 2),
    "SELECT * FROM t WHERE id < 10 AND x > 1": (10, 4),
    "SELECT id FROM t WHERE name = 'a'": (20, 2),
    "SELECT id FROM t WHERE name < 'b'": (60, 2),
    "SELECT id + size AS s FROM t WHERE size IS NULL OR id IN (1, 2)": (22, 2),
    "SELECT COUNT(*) AS n FROM t": (60, 1),
    "SELECT size, COUNT(*) AS n, MAX(x) AS m FROM t WHERE size > 2 GROUP BY size": (None, 2),
    "SELECT a.id, b.name FROM t AS a JOIN t AS b ON a.size = b.id WHERE a.id < 20": (None, 2),
    "SELECT c.label, t.x FROM c LEFT JOIN t ON t.id = c.id AND t.size = 1": (None, 3),
    "SELECT label FROM c WHERE EXISTS (SELECT 1 FROM t WHERE t.id = c.id AND t.id > 3)": (None, 1),
    "SELECT DISTINCT name FROM (SELECT name, id AS n FROM t) AS q WHERE n >= 58": (2, 2),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database, database:
        # Compares text without regard to case: what comes back is judged again.
        database.execute(
            "CREATE TABLE t (id INTEGER, name TEXT COLLATE NOCASE, x REAL, size INTEGER, more BLOB)"
        )
        database.executemany("INSERT INTO t (id, name, x, size) VALUES (?, ?, ?, ?)", ROWS)
    (tmp_path / "c.csv").write_text("id,label\n1,one\n2,two\n99,none\n,null\n")
    monkeypatch.setattr(narrowed_tables, "SMALL_ROWS", 10)
    return tmp_path


def plan_of(text: str) -> Plan:
    catalog = Catalog()
    for definition in (T, C):
        catalog.define(definition)
    return run_rules(run_rules(bound_query(text, catalog).plan, LOGICAL_RULES), WIDTH_RULES)


@pytest.mark.parametrize("text", QUERIES)
def test_the_rows_are_the_same_and_less_is_read(folder: Path, text: str) -> None:
    store = TableStore(Locations(folder), folder / "snapshots", snapshots=False)
    watch = TableWatch(store)
    watch.define((T, C))
    plan = plan_of(text)
    narrowed = NarrowedTables(watch.definition, lambda: {"t": 60})
    plans, parts = narrowed.plans([plan])
    assert parts
    watch.narrow(parts)
    watch.poll(tables_of(plans[plan]))
    executor = LocalExecutor(store)
    found = executor.evaluate(plans[plan])
    assert store.find("t") is None
    rows, columns = QUERIES[text]
    read = [table for name in parts if (table := store.find(name)) is not None]
    assert len(read) == len(parts)
    assert max(len(table.definition.schema) for table in read) == columns
    assert rows is None or [table.row_count for table in read] == [rows]
    watch.poll(frozenset({"t", "c"}))
    assert executor.evaluate(plan) == found


def test_a_part_is_read_again_with_its_table_and_goes_with_its_query(folder: Path) -> None:
    store = TableStore(Locations(folder), folder / "snapshots", snapshots=False)
    watch = TableWatch(store)
    watch.define((T, C))
    plan = plan_of("SELECT name FROM t WHERE id < 10")
    _plans, parts = NarrowedTables(watch.definition, dict).plans([plan])
    watch.narrow(parts)
    (name,) = parts
    watch.poll(frozenset({name}))
    before = store.find(name)
    with closing(sqlite3.connect(folder / "rows.db")) as database, database:
        database.execute("UPDATE t SET name = 'new' WHERE id = 1")
    assert watch.read_again("t")
    watch.poll(frozenset({name}))
    after = store.find(name)
    assert before is not None
    assert after is not None
    assert after.version > before.version
    (folder / "rows.db").unlink()
    watch.read_again("t")
    watch.poll(frozenset({name}))
    problem = watch.problem(name)
    assert problem is not None
    assert name not in problem.message
    watch.narrow({})
    watch.poll(frozenset())
    assert store.find(name) is None


@pytest.mark.parametrize("text", ["SELECT * FROM t", "SELECT * FROM c", "SELECT id, label FROM c"])
def test_what_needs_all_of_a_table_reads_all_of_it(folder: Path, text: str) -> None:
    watch = TableWatch(TableStore(Locations(folder), folder / "snapshots"))
    watch.define((T, C))
    plan = plan_of(text)
    assert NarrowedTables(watch.definition, dict).plans([plan]) == ({plan: plan}, {})


def test_a_small_table_is_read_whole_and_shared(folder: Path) -> None:
    watch = TableWatch(TableStore(Locations(folder), folder / "snapshots"))
    watch.define((T,))
    plan = plan_of("SELECT name FROM t WHERE id < 10")
    narrowed = NarrowedTables(watch.definition, lambda: {"t": 9})
    assert narrowed.plans([plan]) == ({plan: plan}, {})


@pytest.mark.parametrize("text", ["SELECT id FROM t WHERE id < 3", "SELECT COUNT(id) AS n FROM t"])
def test_a_table_that_is_read_whole_in_any_case_is_shared(folder: Path, text: str) -> None:
    store = TableStore(Locations(folder), folder / "snapshots")
    watch = TableWatch(store)
    watch.define((T,))
    plan = plan_of(text)
    narrowed = NarrowedTables(watch.definition, dict, lambda: {"t": frozenset({0, 3})})
    assert narrowed.plans([plan])[1]
    assert narrowed.plans([plan], frozenset({"t"})) == ({plan: plan}, {})
