"""Stored tables on Spark: in memory, as snapshots, changed, and against the local executor."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import EvaluationError
from static_engine.history.past_readings import PastReadings, past_of
from static_engine.sources.table_locations import Locations
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    SourceKind,
    transform_up,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from tests.static_engine.lake.lake_rows import keep, lake_in
from tests.streamsql.from_text import bound_query, catalog_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

INT, D, T = DataType.INTEGER, DataType.DOUBLE, DataType.TEXT


def table(name: str, *columns: tuple[str, DataType]) -> SourceDefinition:
    options = (("source", "csv"), ("path", f"{name}.csv"))
    return SourceDefinition(name, SourceKind.TABLE, Schema.of(*columns), options=options)


ROOMS = table("rooms", ("room", T), ("level", INT), ("x", D), ("y", D))
DESKS = table("desks", ("desk", INT), ("room", T), ("x", D), ("y", D))


def column(plan: Plan, name: str, offset: int = 0) -> Expression:
    position = plan.schema.names.index(name, offset)
    return Column(position, name, plan.schema.dtypes[position])


JOINED = Join(DESKS.scan(), ROOMS.scan(), JoinKind.LEFT, ((1, 0),))
FAR = Project(
    JOINED,
    (
        column(JOINED, "desk"),
        Call(
            "DISTANCE",
            tuple(column(JOINED, n, o) for o in (0, 5) for n in ("x", "y")),
            D,
        ),
    ),
    ("desk", "far"),
)
PER_LEVEL = Aggregate(
    JOINED,
    (5,),
    (
        AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),
        AggregateCall(AggregateFunction.AVG, (column(JOINED, "x"),), "mean"),
        AggregateCall(
            AggregateFunction.ARG_MAX, (column(JOINED, "desk"), column(JOINED, "y")), "last"
        ),
    ),
)

KEPT = Materialize(PER_LEVEL, "levels")
TWICE = Join(
    Filter(KEPT, Call(">", (column(KEPT, "n"), Literal(60, INT)), DataType.BOOLEAN)),
    Filter(KEPT, Call("<", (column(KEPT, "mean"), Literal(90.0, D)), DataType.BOOLEAN)),
    JoinKind.LEFT,
    ((0, 0),),
)


def fill(folder: Path, desks: int) -> None:
    rooms = "".join(f"r{n},{n % 3},{n / 7},{n / 3}\n" for n in range(20))
    (folder / "rooms.csv").write_text("room,level,x,y\n" + rooms)
    text = "".join(f"{n},r{n % 23},{n / 11},{(n * 7919) % 101 / 13}\n" for n in range(desks))
    (folder / "desks.csv").write_text("desk,room,x,y\n" + text)


@pytest.mark.parametrize("memory_rows", [10_000, 50])
def test_spark_and_the_local_executor_agree(
    spark: RunningSpark, tmp_path: Path, memory_rows: int
) -> None:
    stores = [
        TableStore(Locations(tmp_path), tmp_path / "a", memory_rows=memory_rows),
        TableStore(Locations(tmp_path), tmp_path / "b", snapshots=False),
    ]
    on_spark, here = SparkExecutor(spark, stores[0]), LocalExecutor(stores[1])
    for desks in (300, 310):
        fill(tmp_path, desks)
        for store in stores:
            assert store.load(DESKS)
            store.load(ROOMS)
        for plan in (DESKS.scan(), JOINED, FAR, PER_LEVEL, TWICE):
            assert on_spark.evaluate(plan) == here.evaluate(plan)
    assert bool(list((tmp_path / "a").glob("desks-*.parquet"))) is (memory_rows < 300)


def test_a_materialized_table_is_computed_once_and_forgotten(
    spark: RunningSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 300)
    store = TableStore(Locations(tmp_path), tmp_path / "a")
    store.load(DESKS)
    store.load(ROOMS)
    kept: list[DataFrame] = []
    frames = type(spark.session.range(1))
    persist = frames.persist

    def persisted(frame: DataFrame) -> DataFrame:
        kept.append(frame)
        return persist(frame)

    monkeypatch.setattr(frames, "persist", persisted)
    rows = SparkExecutor(spark, store).evaluate(TWICE)
    assert rows == SparkExecutor(spark, store).evaluate(without_barriers(TWICE))
    (frame,) = kept
    assert not frame.is_cached


def without_barriers(plan: Plan) -> Plan:
    return transform_up(plan, lambda node: node.input if isinstance(node, Materialize) else node)


def test_an_empty_table(spark: RunningSpark, tmp_path: Path) -> None:
    fill(tmp_path, 0)
    store = TableStore(Locations(tmp_path), tmp_path / "a")
    store.load(DESKS)
    store.load(ROOMS)
    assert SparkExecutor(spark, store).evaluate(JOINED) == {}


def test_a_result_that_is_too_large_ends_its_query_only(
    spark: RunningSpark, tmp_path: Path
) -> None:
    """25 million rows do not fit into the heap; those that may be asked for do."""
    fill(tmp_path, 5_000)
    store = TableStore(Locations(tmp_path), tmp_path / "a")
    store.load(DESKS)
    store.load(ROOMS)
    executor = SparkExecutor(spark, store, max_result_rows=100_000)
    product = Join(DESKS.scan(), DESKS.scan(), JoinKind.INNER, ())
    with pytest.raises(EvaluationError, match="has more than 100000 rows"):
        executor.evaluate(product)
    assert spark.usable()
    assert len(executor.evaluate(ROOMS.scan())) == 20


def test_too_many_rows_are_counted_and_not_collected(
    spark: RunningSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 300)
    store = TableStore(Locations(tmp_path), tmp_path / "a")
    store.load(DESKS)
    executor = SparkExecutor(spark, store, max_result_rows=299)
    collected: list[object] = []
    monkeypatch.setattr(executor, "_collected", lambda *parts: collected.append(parts))
    with pytest.raises(EvaluationError, match="has more than 299 rows"):
        executor.evaluate(DESKS.scan())
    assert not collected


def test_rows_of_the_past_bound_a_view_over_it(spark: RunningSpark, tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    climate = catalog_of("CREATE SOURCE climate (room TEXT, celsius DOUBLE)").find("climate")
    assert isinstance(climate, SourceDefinition)
    keep(lake, climate, [SourceEvent((f"r{n}", 20.0), n) for n in range(30)])
    store = TableStore(Locations(tmp_path), tmp_path / "a")
    executor = SparkExecutor(spark, store, past=PastReadings(lake), max_view_rows=30)
    text = "SELECT room FROM climate FOR SYSTEM_TIME ALL"
    plan = bound_query(text, catalog_of("CREATE SOURCE climate (room TEXT, celsius DOUBLE)")).plan
    (scan,) = past_of(plan)
    assert executor._read_rows_of(scan) == 30
    folder = tmp_path / "scratch"
    assert sum(batch.num_rows for batch in executor.batches(plan, folder)) == 30


LONG = table("long", ("id", INT), ("t", T))


@pytest.mark.parametrize("made", [False, True])
def test_a_result_of_too_many_bytes_ends_its_query_only(
    spark: RunningSpark, tmp_path: Path, made: bool
) -> None:
    """1,000 rows of 300 kB, stored or made by the query, end a JVM of 1 GB that collects them."""
    lines = "".join(f"{n},{'x' * 300_000}\n" for n in range(50 if made else 1_000))
    (tmp_path / "long.csv").write_text("id,t\n" + lines)
    fill(tmp_path, 10)
    store = TableStore(Locations(tmp_path), tmp_path / "a")
    store.load(LONG)
    store.load(ROOMS)
    plan: Plan = LONG.scan()
    if made:
        plan = Join(plan, ROOMS.scan(), JoinKind.INNER, ())
    executor = SparkExecutor(spark, store)
    with pytest.raises(EvaluationError, match=r"has 3\d\d MB of rows; .* allows 134 MB"):
        executor.evaluate(plan)
    assert spark.usable()
    assert len(executor.evaluate(ROOMS.scan())) == 20


def test_long_rows_that_fit_are_given(spark: RunningSpark, tmp_path: Path) -> None:
    """300 rows of 200 kB: each has more than its share, all of them fit."""
    lines = "".join(f"{n},{'x' * 200_000}\n" for n in range(300))
    (tmp_path / "long.csv").write_text("id,t\n" + lines)
    store = TableStore(Locations(tmp_path), tmp_path / "a")
    store.load(LONG)
    rows = SparkExecutor(spark, store).evaluate(LONG.scan())
    assert rows == {(n, "x" * 200_000): 1 for n in range(300)}
