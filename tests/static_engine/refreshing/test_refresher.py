"""Which views are computed in a turn: those whose tables were read since, behind what they read."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from static_engine.evaluation.bags import Bag
from static_engine.evaluation.static_executor import EngineLostError, StaticExecutor
from static_engine.refreshing.refresher import LONGEST_WAIT, Readiness, Refresher
from static_engine.refreshing.rows_file import RowsFolder
from static_engine.refreshing.views import RefreshedViews
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Plan, Scan, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refresh_times import RefreshSchedule
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder

HOUR = 3_600_000_000
NOON = 20_000 * 24 * HOUR + 12 * HOUR
SCHEMA = Schema.of(("room", DataType.TEXT))


def order(name: str, *times: int, reads: str = "rooms") -> RefreshOrder:
    schedule = RefreshSchedule(f"SELECT room FROM {reads}", times or (840,))
    definition = SourceDefinition(name, SourceKind.TABLE, SCHEMA, refresh=schedule)
    return RefreshOrder(definition, Scan(reads, SourceKind.TABLE, SCHEMA), "UTC")


@dataclass
class Watch:
    """What is said of tables, and those that were to be read again."""

    unsettled: set[str] = field(default_factory=set)
    problems: dict[str, TableError] = field(default_factory=dict)
    again: list[str] = field(default_factory=list)

    def is_unsettled(self, name: str) -> bool:
        return name in self.unsettled

    def problem(self, name: str) -> TableError | None:
        return self.problems.get(name)

    def read_again(self, name: str) -> bool:
        self.again.append(name)
        return True


class World:
    """A refresher of a table of a server, which does not tell its changes; the clock is ours.

    Attributes:
        tried: What was evaluated, by the name of the table that was read.
        lost: Whether the engine dies of it.
    """

    description = "a test"
    is_gone = False

    def __init__(self, folder: Path, *views: RefreshOrder) -> None:
        self.folder, self.now = folder, NOON
        self.tried: list[str] = []
        self.lost = False
        self.watch = Watch()
        self.store = TableStore(Locations(folder), folder / "snapshots", snapshots=False)
        self.rooms = SourceDefinition("rooms", SourceKind.TABLE, SCHEMA)
        self.give_rooms()
        self.views = RefreshedViews(self.store, RowsFolder(folder / "views"), lambda: self.now)
        self.refresher = Refresher(self.store, cast(TableWatch, self.watch), self.views)
        self.views.define(views)
        self.views.adopt()

    def give_rooms(self) -> None:
        pq.write_table(pa.table({"c0": ["r1"]}), self.folder / "rooms.parquet")
        self.store.put(self.rooms, self.folder / "rooms.parquet")

    def evaluate(self, plan: Plan) -> Delta:
        return self.collect(plan).delta()

    def collect(self, plan: Plan) -> Bag:
        assert isinstance(plan, Scan)
        self.tried.append(plan.source)
        if self.lost:
            raise EngineLostError("it died")
        return Bag.of_rows(plan.schema, {("r1",): 1})

    def batches(self, plan: Plan, scratch: Path) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        return self.collect(plan).batches()

    def cancel(self, _plan: Plan, /) -> None:
        raise AssertionError("nothing is cancelled here")

    def stop(self) -> None:
        pass

    def compute(self, *, engine: bool = True) -> list[str]:
        """Compute what may be; return what was evaluated."""

        async def run(job: Callable[[], None]) -> bool:
            try:
                job()
            except EngineLostError:
                return False
            return True

        self.tried = []
        found: StaticExecutor | None = self if engine else None
        asyncio.run(self.refresher.refresh(lambda _plan: found, run))
        return self.tried

    def read(self) -> frozenset[str]:
        """Read the tables that are needed now."""
        tables = self.refresher.tables()
        self.refresher.reading()
        return tables

    def problems(self) -> list[str]:
        return [state.problem for state in self.views.states() if state.problem]


def test_a_table_of_a_server_is_read_once_for_every_view_that_is_due(tmp_path: Path) -> None:
    world = World(tmp_path, order("v"))
    assert world.compute() == []
    assert world.read() == {"rooms"}
    assert world.read() == {"rooms"}
    assert world.watch.again == ["rooms"]
    assert world.compute() == ["rooms"]
    assert world.read() == frozenset()
    assert world.watch.again == ["rooms"]


def test_who_asks_has_the_tables_read_again_and_the_view_computed_once(tmp_path: Path) -> None:
    world = World(tmp_path, order("v"))
    world.read()
    assert world.refresher.ask("v")
    assert world.compute() == []
    world.read()
    assert world.watch.again == ["rooms", "rooms"]
    assert world.compute() == ["rooms"]
    world.read()
    assert world.compute() == []


def test_what_was_read_for_one_time_is_no_good_for_the_next(tmp_path: Path) -> None:
    world = World(tmp_path, order("v", 840), order("w", 900))
    world.read()
    assert len(world.compute()) == 2
    world.now += 24 * HOUR
    assert world.compute() == [], "nothing was read since"


def test_a_view_that_becomes_due_while_tables_are_read_waits_for_the_next_time(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, order("v", 840), order("w", 900))
    world.read()
    assert len(world.compute()) == 2
    world.now = NOON + 2 * HOUR
    assert world.refresher.tables() == {"rooms"}
    world.now = NOON + 3 * HOUR
    world.refresher.reading()
    assert len(world.compute()) == 1
    assert world.refresher.waits_for_tables
    world.read()
    assert len(world.compute()) == 1


@pytest.mark.parametrize("missing", ["settled file", "engine", "table"])
def test_a_view_waits_for_a_view_that_waits(tmp_path: Path, missing: str) -> None:
    world = World(tmp_path, order("a", reads="b"), order("b"))
    if missing == "settled file":
        world.watch.unsettled = {"rooms"}
    if missing == "table":
        world.store.discard("rooms")
    world.read()
    assert world.compute(engine=missing != "engine") == []
    assert world.problems() == [], "that the other one has no rows is no failure"
    world.watch.unsettled = set()
    world.give_rooms()
    world.read()
    assert world.compute() == ["rooms", "b"]


def test_a_table_that_cannot_be_read_is_said_and_the_others_go_on(tmp_path: Path) -> None:
    world = World(tmp_path, order("v"), order("w", reads="v"))
    world.watch.problems = {"rooms": TableError("rooms is missing")}
    world.read()
    assert world.compute() == []
    assert world.problems() == ["rooms is missing", "view w reads view v, which has no rows yet"]


def test_an_engine_that_is_lost_is_not_asked_for_the_next_view(tmp_path: Path) -> None:
    world = World(tmp_path, order("v"), order("w"))
    world.lost = True
    world.read()
    assert world.compute() == ["rooms"]
    world.lost = False
    assert world.compute() == ["rooms"], "the other one; the first is tried after a pause"


class Due:
    """Views that are due, by a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.readiness = Readiness(lambda: self.now)


def test_a_view_is_ready_once_its_tables_were_read_since_it_became_due() -> None:
    views = Due().readiness
    assert views.due(["v"]) == {"v"}
    assert not views.is_ready("v")
    views.reading(["v"])
    assert views.due(["v", "w"]) == {"w"}
    assert (views.is_ready("v"), views.is_ready("w")) == (True, False)


def test_what_was_computed_or_is_no_longer_due_starts_anew() -> None:
    views = Due().readiness
    views.due(["v", "w"])
    views.reading(["v"])
    views.done("v")
    assert not views.is_ready("v")
    assert views.due(["v"]) == {"v"}
    assert views.due(["v", "w"]) == {"v", "w"}


def test_a_view_that_was_not_due_for_a_while_has_its_tables_read_again() -> None:
    views = Due().readiness
    views.due(["v"])
    views.reading(["v"])
    assert views.due([]) == frozenset()
    assert views.due(["v"]) == {"v"}
    assert not views.is_ready("v")


def test_who_asks_has_the_tables_read_again() -> None:
    views = Due().readiness
    views.due(["v"])
    views.reading(["v"])
    views.asked("v")
    assert not views.is_ready("v")
    assert views.due(["v"]) == {"v"}


def test_files_that_keep_changing_are_not_waited_for_forever() -> None:
    world = Due()
    views = world.readiness
    views.due(["v"])
    views.reading(["v"])
    views.unsettled("v")
    assert not views.is_ready("v")
    world.now = LONGEST_WAIT
    views.due(["v"])
    views.reading(["v"])
    views.unsettled("v")
    assert views.is_ready("v")
    views.done("v")
    views.due(["v"])
    views.reading(["v"])
    views.unsettled("v")
    assert not views.is_ready("v"), "the next wait begins anew"
