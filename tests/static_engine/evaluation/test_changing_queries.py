"""Rows of the queries of changes: read when it is their turn, and ended when they take too long."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from static_engine.evaluation.changing_queries import ChangingQueries
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import (
    EngineLostError,
    EvaluationCancelledError,
    tables_of,
)
from static_engine.history.past_readings import PastReadings
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.tables import table_store
from static_engine.tables.narrowed_tables import NarrowedTables
from static_engine.tables.table_store import TableShrunkenError, TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Plan, SourceKind
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import FederationError
from streamsql.wire.stored_tables.table_changes import TableChange
from tests.static_engine.changing.changes import table
from tests.static_engine.tables.test_table_watch import SCHEMA, definition, write
from tests.streamsql.from_text import bound_query

TARGET = table("desk INTEGER", "source = 'lake'")
BIG = SourceDefinition(
    "big",
    SourceKind.TABLE,
    Schema.of(("id", DataType.INTEGER), ("name", DataType.TEXT), ("x", DataType.DOUBLE)),
    options=(("source", "sql"), ("url", "sqlite:///rows.db"), ("table", "big")),
)
FEW = "SELECT id FROM big WHERE id < 3"


class NoViews:
    names: frozenset[str] = frozenset()


class Stubborn(LocalExecutor):
    """Evaluates until it is cancelled."""

    def __init__(self, store: TableStore) -> None:
        super().__init__(store)
        self.cancelled = threading.Event()

    def evaluate(self, plan: Plan) -> Delta:  # noqa: ARG002
        assert self.cancelled.wait(30)
        raise EvaluationCancelledError("cancelled")

    def cancel(self, plan: Plan) -> None:  # noqa: ARG002
        self.cancelled.set()


class Lost(LocalExecutor):
    """An engine that ends."""

    def evaluate(self, plan: Plan) -> Delta:  # noqa: ARG002
        raise EngineLostError("gone")


async def compute(work: Callable[[], None]) -> bool:
    try:
        await asyncio.to_thread(work)
    except EngineLostError:
        return False
    return True


class Turn:
    """One change over a table `t` of a folder."""

    def __init__(
        self, folder: Path, executor: Callable[[TableStore], LocalExecutor] = LocalExecutor
    ) -> None:
        self.store = TableStore(Locations(folder), folder / "snapshots")
        self.watch = TableWatch(self.store, pause=lambda _: None)
        self.watch.define((definition(),))
        made = executor(self.store)
        self.querying = ChangingQueries(
            self.store, self.watch, PastReadings(None), NoViews(), lambda _: made, compute
        )
        self.change = TableChange("c1", 1, TARGET, query=definition().scan())

    def poll(self, others: Iterable[Plan] = (), groups: frozenset[int] | None = None) -> None:
        """Read what the change and other queries read, as the service does it."""
        compared = {} if groups is None or not self.watch.is_grouped("big") else {"big": groups}
        narrowed = NarrowedTables(self.watch.definition, dict, lambda: compared)
        plans, parts = narrowed.plans(others)
        used = frozenset().union(*map(tables_of, plans.values()))
        self.watch.narrow({**parts, **self.querying.narrow(narrowed, used)})
        self.watch.poll(used | self.querying.tables())
        self.querying.polled()

    def begin(self, text: str) -> None:
        """Begin a change with a query of table `big`, which is in a database."""
        self.watch.define((BIG,))
        self.change = TableChange("c1", 1, TARGET, query=over_big(text))
        assert asyncio.run(self.querying.rows(self.change, 30.0)) is None

    def rows(self, seconds: float = 30.0, others: Iterable[Plan] = ()) -> list[tuple[object, ...]]:
        assert asyncio.run(self.querying.rows(self.change, seconds)) is None
        assert self.querying.waits_for_tables
        self.poll(others)
        found = asyncio.run(self.querying.rows(self.change, seconds))
        assert found is not None
        assert not self.querying.plans
        return sorted(found)


def over_big(text: str) -> Plan:
    catalog = Catalog()
    catalog.define(BIG)
    return bound_query(text, catalog).plan


def fill(folder: Path, count: int, name: str = "n") -> None:
    with closing(sqlite3.connect(folder / "rows.db")) as database, database:
        database.execute("DROP TABLE IF EXISTS big")
        database.execute("CREATE TABLE big (id INTEGER, name TEXT, x REAL)")
        rows = [(n, name, n / 4) for n in range(count)]
        database.executemany("INSERT INTO big VALUES (?, ?, ?)", rows)


def test_tables_are_read_when_a_change_has_its_turn(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    turn = Turn(tmp_path)
    turn.watch.poll(frozenset({"t"}))
    write(tmp_path, 3, 4, 5)
    assert turn.rows() == [(3,), (4,), (5,)]


def test_former_rows_are_not_taken(tmp_path: Path) -> None:
    write(tmp_path, *range(2_000))
    turn = Turn(tmp_path)
    turn.watch.poll(frozenset({"t"}))
    write(tmp_path, 1)
    with pytest.raises(TableError, match="has 1 rows and had 2,000"):
        turn.rows()
    (tmp_path / "t.csv").unlink()
    with pytest.raises(TableError, match=r"missing|disappeared"):
        turn.rows()
    assert turn.store.find("t") is not None
    assert not turn.querying.plans


@pytest.mark.parametrize(
    ("executor", "words"), [(Stubborn, "took too long"), (Lost, "the engine ended")]
)
def test_a_query_that_does_not_end_well_changes_nothing(
    tmp_path: Path, executor: Callable[[TableStore], LocalExecutor], words: str
) -> None:
    write(tmp_path, 1)
    with pytest.raises(FederationError, match=f"{words}; table desks has not changed"):
        Turn(tmp_path, executor).rows(seconds=0.05)


def test_a_change_that_was_given_up_keeps_nothing(tmp_path: Path) -> None:
    write(tmp_path, 1)
    turn = Turn(tmp_path)
    assert asyncio.run(turn.querying.rows(turn.change, 9.0)) is None
    turn.querying.keep("c1")
    assert turn.querying.tables() == {"t"}
    turn.querying.keep("c2")
    assert turn.querying.tables() == frozenset()


def test_rows_of_queries_go_into_the_lake_only(tmp_path: Path) -> None:
    turn = Turn(tmp_path)
    turn.change = TableChange("c1", 1, definition(), query=definition().scan())
    assert turn.change.definition.schema == SCHEMA
    with pytest.raises(TableError, match="is not kept by Pando") as refusal:
        turn.rows()
    assert refusal.value.code == "not_writable"


def test_only_the_rows_and_columns_that_a_change_needs_are_read(tmp_path: Path) -> None:
    fill(tmp_path, 50)
    turn = Turn(tmp_path)
    turn.begin(FEW)
    assert turn.rows() == [(0,), (1,), (2,)]
    (name,) = turn.store.names
    part = turn.store.find(name)
    assert part is not None
    assert (part.row_count, part.definition.schema.names) == (3, ("id",))
    turn.poll()
    assert not turn.store.names  # the change is done


def test_errors_of_parts_name_the_table(tmp_path: Path) -> None:
    fill(tmp_path, 50, name="a")
    turn = Turn(tmp_path)
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database, database:
        database.execute("UPDATE big SET id = 'one' WHERE id = 1")
    turn.begin("SELECT id FROM big WHERE name = 'a'")
    with pytest.raises(TableError, match=r"\bbig\b(?!\.)") as refusal:
        turn.rows()
    assert "big." not in refusal.value.message
    turn.begin(FEW)
    turn.poll()
    turn.watch.define(())
    with pytest.raises(TableError, match=r"there is no table big\b(?!\.)"):
        asyncio.run(turn.querying.rows(turn.change, 30.0))


def test_a_table_that_others_read_whole_is_shared_and_may_not_have_shrunken(
    tmp_path: Path,
) -> None:
    fill(tmp_path, 2_000)
    turn, others = Turn(tmp_path), [over_big("SELECT * FROM big")]
    turn.begin(FEW)
    assert turn.rows(others=others) == [(0,), (1,), (2,)]
    assert turn.store.names == {"big"}
    fill(tmp_path, 10)
    turn.begin(FEW)
    with pytest.raises(TableShrunkenError, match="table big has 10 rows and had 2,000"):
        turn.rows(others=others)


def test_a_part_of_a_query_is_read_again_for_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_store, "fingerprint", lambda *_: None)  # like a server
    text = "SELECT name FROM big WHERE id < 2"
    fill(tmp_path, 50, "old")
    turn, others = Turn(tmp_path), [over_big(text)]
    turn.watch.define((BIG,))
    turn.poll(others)
    fill(tmp_path, 50, "new")
    turn.begin(text)
    with monkeypatch.context() as slow:
        slow.setattr(turn.watch, "_poll", lambda *_, **__: False)  # no server has its turn
        turn.poll(others)
    assert turn.querying.waits_for_tables
    turn.poll(others)
    assert asyncio.run(turn.querying.rows(turn.change, 30.0)) == (("new",), ("new",))
    assert len(turn.store.names) == 1


def test_rows_are_read_where_a_database_does_not_group_them(tmp_path: Path) -> None:
    fill(tmp_path, 50)
    turn = Turn(tmp_path)
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database, database:
        database.execute("UPDATE big SET id = 'many' WHERE id = 7")
    turn.begin("SELECT COUNT(id) AS n FROM big")
    groups = frozenset(range(3))
    turn.poll(groups=groups)
    assert not turn.watch.is_grouped("big")
    assert turn.querying.waits_for_tables
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database, database:
        database.execute("UPDATE big SET id = 7 WHERE id = 'many'")
    turn.poll(groups=groups)
    assert asyncio.run(turn.querying.rows(turn.change, 30.0)) == ((50,),)
