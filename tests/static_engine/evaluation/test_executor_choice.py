"""A plan is evaluated here while that is quicker, and by the engine that was asked for else."""

from pathlib import Path
from typing import cast

import msgspec
import pytest
from typing_extensions import override

from static_engine.evaluation.executor_choice import MOST_ROWS, ExecutorChoice, rows_per_second
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import StaticExecutor
from static_engine.history.past_readings import PastReadings, past_of
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import (
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    RecursiveReference,
    SourceKind,
)
from streamsql.algebra.past_times import History, HistoryKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import FederationError, InternalError

ROWS = 300
T = SourceDefinition(
    "t",
    SourceKind.TABLE,
    Schema.of(("id", DataType.INTEGER)),
    options=(("source", "csv"), ("path", "t.csv")),
)
SCAN = T.scan()
BY_KEY = Join(SCAN, SCAN, JoinKind.INNER, ((0, 0),))
PRODUCT = Join(SCAN, SCAN, JoinKind.INNER)


NOTHING_KEPT = PastReadings(None)


class Spark:
    executor: StaticExecutor | None = None
    problem: FederationError | None = None


class Chosen:
    def __init__(
        self,
        folder: Path,
        local_rows: int,
        bridge_rows: int = 1_000,
        past: PastReadings = NOTHING_KEPT,
    ) -> None:
        (folder / "t.csv").write_text("id\n" + "\n".join(map(str, range(ROWS))) + "\n")
        self.store = TableStore(Locations(folder), folder / "snapshots")
        self.store.load(T)
        self.spark, self.local = Spark(), LocalExecutor(self.store)
        self.choice = ExecutorChoice(
            self.spark, self.local, self.store, past, bridge_rows, local_rows
        )

    def name(self, plan: Plan) -> str:
        match self.choice.executor(plan):
            case None:
                return "waits"
            case found:
                return "local" if found is self.local else "spark"


def started(chosen: Chosen) -> Chosen:
    chosen.spark.executor = cast(StaticExecutor, object())
    return chosen


@pytest.mark.parametrize(
    ("plan", "rows", "expected"),
    [
        (SCAN, 300, "local"),
        (SCAN, 299, "spark"),
        (BY_KEY, 1_200, "local"),
        (PRODUCT, 9_999, "spark"),
    ],
)
def test_small_plans_stay_here(tmp_path: Path, plan: Plan, rows: int, expected: str) -> None:
    assert started(Chosen(tmp_path, rows)).name(plan) == expected


def test_while_the_engine_starts_larger_plans_wait(tmp_path: Path) -> None:
    chosen = Chosen(tmp_path, 10**9, bridge_rows=1_200)
    assert chosen.choice.is_bridged
    assert [chosen.name(p) for p in (SCAN, BY_KEY, PRODUCT)] == ["local", "local", "waits"]


def test_an_engine_that_did_not_start_is_not_covered_up(tmp_path: Path) -> None:
    chosen = Chosen(tmp_path, 10**9)
    chosen.spark.problem = InternalError("no Java")
    assert not chosen.choice.is_bridged
    assert chosen.name(SCAN) == "waits"


def test_a_table_that_is_not_in_memory_is_the_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = started(Chosen(tmp_path, 10**9))
    monkeypatch.setattr(chosen.store, "_memory_rows", 10)
    chosen.store.load(T)
    assert chosen.name(SCAN) == "spark"


class Readings(PastReadings):
    """A past of so many rows, whoever asks."""

    def __init__(self, count: int, likely: int = 10**9) -> None:
        super().__init__(None)
        self._count, self._likely = count, likely

    @override
    def rows(self, plan: Plan) -> int:
        return self._count if past_of(plan) else 0

    @override
    def likely_rows(self, plan: Plan) -> int:
        return min(self.rows(plan), self._likely)


@pytest.mark.parametrize(
    ("past", "expected"), [(100, "local"), (201, "spark"), (1_000_000, "spark")]
)
def test_little_of_the_past_is_read_here(tmp_path: Path, past: int, expected: str) -> None:
    chosen = started(Chosen(tmp_path, 1_000, past=Readings(past)))
    scan = msgspec.structs.replace(SCAN, history=History(HistoryKind.BETWEEN))
    assert chosen.name(scan) == expected
    looped = Fixpoint("r", SCAN.columns, (scan,), (RecursiveReference("r", SCAN.columns),))
    assert chosen.name(looped) == "spark"


@pytest.mark.parametrize(("past", "expected"), [(1_900_000, "local"), (2_000_001, "spark")])
def test_a_short_time_of_large_files_is_read_here_as_far_as_it_may_be(
    tmp_path: Path, past: int, expected: str
) -> None:
    chosen = started(Chosen(tmp_path, 1_000, past=Readings(past, likely=50)))
    scan = msgspec.structs.replace(SCAN, history=History(HistoryKind.BETWEEN))
    assert chosen.name(scan) == expected


def test_the_rate_is_measured(tmp_path: Path) -> None:
    assert rows_per_second() > 1_000
    chosen = Chosen(tmp_path, -1)
    assert 300 < chosen.choice.local_rows <= MOST_ROWS
    assert chosen.choice.figures == {"local_rows": chosen.choice.local_rows}
