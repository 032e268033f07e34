"""Views of REFRESH AT: when they are computed, in which order, and what failures leave."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from static_engine.evaluation.bags import Bag
from static_engine.evaluation.static_executor import EngineLostError, EvaluationError
from static_engine.refreshing.rows_file import RowsFolder
from static_engine.refreshing.views import LONGEST_PAUSE, RefreshedViews
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan, Scan, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refresh_times import RefreshSchedule, next_refresh, zone_of
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOON = 20_000 * DAY + DAY // 2
SCHEMA = Schema.of(("room", DataType.TEXT))
ROOMS = Scan("rooms", SourceKind.TABLE, SCHEMA)


def order(name: str, *times: int, reads: str = "rooms", zone: str = "UTC") -> RefreshOrder:
    schedule = RefreshSchedule(f"SELECT room FROM {reads}", times or (840, 1440))
    definition = SourceDefinition(name, SourceKind.TABLE, SCHEMA, refresh=schedule)
    return RefreshOrder(definition, Scan(reads, SourceKind.TABLE, SCHEMA), zone)


@dataclass
class Engine:
    """Answers any plan with the rows, or fails."""

    rows: Delta = field(default_factory=lambda: {("r1",): 1})
    error: Exception | None = None
    description: str = "a test"
    is_gone = False
    evaluated: list[Plan] = field(default_factory=list)

    def evaluate(self, plan: Plan) -> Delta:
        return self.collect(plan).delta()

    def collect(self, plan: Plan) -> Bag:
        if self.error is not None:
            raise self.error
        self.evaluated.append(plan)
        return Bag.of_rows(plan.schema, self.rows)

    def batches(self, plan: Plan, scratch: Path) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        return self.collect(plan).batches()

    def cancel(self, _plan: Plan, /) -> None:
        raise AssertionError("nothing is cancelled here")

    def stop(self) -> None:
        pass


class World:
    """Views, an engine and a clock that is set by hand."""

    def __init__(self, folder: Path, now: int = NOON) -> None:
        self.folder = folder
        self.now = now
        self.engine = Engine()
        self.begin()

    def begin(self) -> None:
        """Start the process again."""
        self.store = TableStore(Locations(self.folder), self.folder / "snapshots", snapshots=False)
        self.views = RefreshedViews(self.store, RowsFolder(self.folder / "views"), lambda: self.now)

    def define(self, *orders: RefreshOrder) -> None:
        self.views.define(orders)
        self.views.adopt()

    def work(self) -> tuple[str, ...]:
        due = self.views.due()
        for name in due:
            self.views.begin(name)
            self.views.refresh(name, self.views.plan(name), self.engine)
        return due

    def rows(self, name: str) -> list[str] | None:
        table = self.store.find(name)
        return None if table is None or table.data is None else table.data.column(0).to_pylist()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_it_is_filled_when_it_is_made_and_then_at_its_times(world: World) -> None:
    world.define(order("v"))
    assert world.rows("v") is None
    assert world.views.seconds_to_next() == float("inf")
    assert world.work() == ("v",)
    assert world.rows("v") == ["r1"]
    assert world.views.seconds_to_next() == 2 * 3600
    world.engine.rows = {("r2",): 2}
    world.now += 2 * 3600 * SECOND - 1
    assert world.work() == ()
    assert world.rows("v") == ["r1"]
    world.now += 1
    assert world.work() == ("v",)
    assert world.rows("v") == ["r2", "r2"]
    (state,) = world.views.states()
    assert (state.last, state.next, state.rows) == (world.now, NOON + DAY // 2, 2)
    assert (state.problem, state.failed) == ("", None)


def test_the_same_rows_are_the_same_version(world: World) -> None:
    world.define(order("v"))
    world.work()
    before = world.store.find("v")
    assert world.views.ask("v")
    assert world.work() == ("v",)
    after = world.store.find("v")
    assert before is not None
    assert after is not None
    assert before.version == after.version


def test_rows_survive_the_process_and_a_missed_time_is_made_up_for(world: World) -> None:
    world.define(order("v"))
    world.work()
    world.begin()
    world.define(order("v"))
    assert world.rows("v") == ["r1"]
    assert world.work() == ()
    world.begin()
    world.now += 3 * DAY  # away for six times: once is enough
    world.engine.rows = {("r2",): 1}
    world.define(order("v"))
    assert world.rows("v") == ["r1"]
    assert world.work() == ("v",)
    assert world.work() == ()
    assert world.rows("v") == ["r2"]


def test_a_failure_keeps_the_rows_and_is_tried_again_ever_more_seldom(world: World) -> None:
    world.define(order("v", 720))
    world.work()
    world.now += DAY
    world.engine.error = EvaluationError("the result is too large")
    pauses = []
    for _ in range(10):
        assert world.work() == ("v",)
        assert world.work() == ()
        assert world.rows("v") == ["r1"]
        (state,) = world.views.states()
        assert state.problem == "the result is too large"
        assert state.failed == world.now
        assert state.next is not None
        pauses.append((state.next - world.now) // SECOND)
        world.now = state.next
    assert pauses[:3] == [30, 60, 120]
    assert max(pauses) == LONGEST_PAUSE
    world.engine.error = None
    world.engine.rows = {("r2",): 1}
    assert world.work() == ("v",)
    assert world.rows("v") == ["r2"]
    assert world.views.problem("v") is None


def test_who_asks_while_a_refresh_fails_has_it_tried_once_more(world: World) -> None:
    world.define(order("v", 720))

    def collect(_plan: Plan) -> Bag:
        assert world.views.ask("v")
        raise EvaluationError("not yet")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.engine, "collect", collect)
        assert world.work() == ("v",)
    assert world.work() == ("v",)
    assert world.rows("v") == ["r1"]
    assert world.work() == ()


def test_who_asks_before_a_view_is_taken_up_or_meanwhile_is_not_forgotten(world: World) -> None:
    world.define(order("v"))
    world.work()
    world.begin()  # with the rows on disk nothing is due
    world.views.define((order("v"),))
    assert world.views.ask("v")
    world.views.adopt()
    assert world.work() == ("v",)
    restored = world.views._restored

    def slowly(made: RefreshOrder) -> object:
        assert world.views.ask("v")
        assert world.views.ask("w")
        return restored(made)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.views, "_restored", slowly)
        world.define(order("w"), order("v"))
    assert set(world.work()) == {"v", "w"}
    assert world.work() == ()


def test_a_lost_engine_counts_as_a_failure(world: World) -> None:
    world.define(order("v"))
    world.engine.error = EngineLostError("it is gone")
    with pytest.raises(EngineLostError):
        world.work()
    assert world.work() == ()
    problem = world.views.problem("v")
    assert problem is not None
    assert problem.message == "it is gone"


def test_a_defect_is_said_and_stops_nobody(world: World) -> None:
    world.define(order("v"), order("w"))
    world.engine.error = ZeroDivisionError("oops")
    assert set(world.work()) == {"v", "w"}
    assert "ZeroDivisionError" in str(world.views.problem("w"))


def test_views_of_views_are_computed_after_them(world: World) -> None:
    world.define(order("a", reads="b"), order("b", reads="c"), order("c"))
    assert world.views.tables(("a", "b", "c")) == {"rooms"}
    assert world.work() == ("c", "b", "a")


def test_a_view_of_a_view_without_rows_fails_in_words(world: World) -> None:
    world.define(order("a", reads="b"), order("b"))
    with pytest.raises(TableError, match="reads view b, which has no rows yet"):
        world.views.plan("a")


def test_what_no_longer_binds_keeps_its_rows(world: World) -> None:
    world.define(order("v"))
    world.work()
    broken = msgspec.structs.replace(order("v"), plan=None, problem="rooms has other columns")
    world.define(broken)
    assert world.rows("v") == ["r1"]
    with pytest.raises(TableError, match="rooms has other columns"):
        world.views.plan("v")
    world.views.fail("v", TableError("rooms has other columns"))
    assert world.views.due() == ()
    world.define(order("v"))  # repaired
    assert world.views.due() == ("v",)


def test_another_definition_of_the_name_begins_without_rows(world: World) -> None:
    world.define(order("v"))
    world.work()
    world.define(order("v", 60))
    assert world.rows("v") is None
    assert world.views.due() == ("v",)


def test_a_dropped_view_leaves_nothing(world: World) -> None:
    world.define(order("v"))
    world.work()
    world.define()
    assert world.store.find("v") is None
    assert list((world.folder / "views").iterdir()) == []
    assert not world.views.ask("v")


def test_another_zone_moves_the_next_time(world: World) -> None:
    world.define(order("v", 840))
    world.work()
    world.define(order("v", 840, zone="America/New_York"))
    assert world.rows("v") == ["r1"]
    assert world.views.seconds_to_next() == 6 * 3600  # 14:00 in New York is 18:00 UTC in October


def test_a_zone_that_the_host_lacks_keeps_the_rows(world: World) -> None:
    world.define(order("v"))
    world.work()
    world.define(order("v", zone="Nowhere/Land"))
    with pytest.raises(TableError, match="no time zone 'Nowhere/Land' on this host"):
        world.views.plan("v")
    assert world.rows("v") == ["r1"]


def test_a_clock_that_was_ahead_does_not_put_it_off(world: World) -> None:
    world.now += 365 * DAY
    world.define(order("v"))
    world.work()
    world.begin()
    world.now = NOON
    world.define(order("v"))
    assert world.rows("v") == ["r1"]
    assert world.views.seconds_to_next() == 2 * 3600


@settings(max_examples=50, deadline=None)
@given(
    times=st.lists(st.integers(0, 1439), min_size=1, max_size=3, unique=True),
    steps=st.lists(st.integers(1, 40 * 3600), min_size=1, max_size=12),
    restarts=st.sets(st.integers(0, 11)),
)
def test_it_has_always_the_rows_of_its_last_time(
    tmp_path_factory: pytest.TempPathFactory,
    times: list[int],
    steps: list[int],
    restarts: set[int],
) -> None:
    """Looked at whenever, restarted or not: one refresh per look that has a time behind it."""
    world = World(tmp_path_factory.mktemp("views"))
    made = order("v", *times)
    world.define(made)
    world.engine.rows = {(str(world.now),): 1}
    world.work()
    last = world.now
    for number, step in enumerate(steps):
        world.now += step * SECOND
        if number in restarts:
            world.begin()
            world.define(made)
        world.engine.rows = {(str(world.now),): 1}
        is_due = next_refresh(last, times, zone_of("UTC")) <= world.now
        assert bool(world.work()) == is_due
        last = world.now if is_due else last
        assert world.rows("v") == [str(last)]
