"""Stored tables on Spark: in memory, as snapshots, changed, and against the local executor."""

import itertools
import math
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import EvaluationError
from static_engine.sources.table_locations import Locations
from static_engine.spark.spark_executor import SparkExecutor, most_rows, rows_at_most
from static_engine.spark.spark_session import RunningSpark
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    AsOfJoin,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    SetKind,
    SetOperation,
    SourceKind,
    TopN,
    UnionAll,
    Values,
    transform_up,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.reference import Database, evaluate

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


def test_only_what_is_cheap_to_count_is_counted_first() -> None:
    counts = {"desks": 50.0, "rooms": 7.0}

    def rows(plan: Plan) -> float:
        return most_rows(plan, lambda scan: counts[scan.source])

    product = Join(DESKS.scan(), ROOMS.scan(), JoinKind.INNER)
    assert rows(Filter(DESKS.scan(), Literal(True, DataType.BOOLEAN))) == 50
    assert rows(JOINED) == 50
    assert rows(product) == 350
    assert rows(Join(ROOMS.scan(), DESKS.scan(), JoinKind.SEMI, ((0, 1),))) == 7
    assert rows(UnionAll((ROOMS.scan(), ROOMS.scan()))) == 14
    assert rows(Distinct(product)) == 0


def test_a_plan_has_no_more_rows_than_its_bound() -> None:
    """Whatever the tables hold: all rows have equal keys here, or none has a partner."""
    kinds = Schema.of(("k", INT), ("t", INT))
    sides = [Values(((key, 1),) * count, kinds) for count in (0, 1, 3, 4) for key in (1, 2)]
    total = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
    for left, right in itertools.product(sides, repeat=2):
        joins = [Join(left, right, kind, ((0, 0),)) for kind in JoinKind]
        plans: list[Plan] = [
            *joins,
            *[SetOperation(left, right, kind, all=True) for kind in SetKind],
            AsOfJoin(left, right, JoinKind.LEFT, 1, 1, keys=((0, 0),)),
            UnionAll((left, Distinct(right), Aggregate(left, (0,), (total,)))),
            Aggregate(UnionAll((left, right)), (), (total,)),
            Join(TopN(left, (), None), Materialize(right, "m"), JoinKind.FULL),
        ]
        for plan in plans:
            rows = sum(evaluate(plan, Database(), 0).values())
            assert rows <= rows_at_most(plan, lambda _: math.inf) < 30, plan


def test_the_bound_of_an_unknown_table_is_infinite() -> None:
    counts = {"desks": math.inf, "rooms": 0.0}

    def bound(plan: Plan) -> float:
        return rows_at_most(plan, lambda scan: counts[scan.source])

    assert bound(PER_LEVEL) == bound(TWICE) == math.inf
    assert bound(Join(ROOMS.scan(), DESKS.scan(), JoinKind.INNER)) == math.inf
    assert bound(Join(ROOMS.scan(), DESKS.scan(), JoinKind.ANTI, ((0, 1),))) == 0


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
