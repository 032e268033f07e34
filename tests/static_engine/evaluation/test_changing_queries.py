"""Rows of the queries of changes: read when it is their turn, and ended when they take too long."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from static_engine.evaluation.changing_queries import ChangingQueries
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import EngineLostError, EvaluationCancelledError
from static_engine.history.past_readings import PastReadings
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta
from streamsql.errors import FederationError
from streamsql.wire.table_changes import TableChange
from tests.static_engine.changing.changes import table
from tests.static_engine.tables.test_table_watch import SCHEMA, definition, write

TARGET = table("desk INTEGER", "source = 'lake'")


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

    def rows(self, seconds: float = 30.0) -> list[tuple[object, ...]]:
        assert asyncio.run(self.querying.rows(self.change, seconds)) is None
        assert self.querying.waits_for_tables
        self.watch.poll(self.querying.tables())
        self.querying.polled()
        found = asyncio.run(self.querying.rows(self.change, seconds))
        assert found is not None
        assert not self.querying.plans
        return sorted(found)


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
