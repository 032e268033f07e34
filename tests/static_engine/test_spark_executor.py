"""Stored tables on Spark: in memory, as snapshots, changed, and against the local executor."""

from pathlib import Path

import pytest

from static_engine.local_executor import LocalExecutor
from static_engine.session import RunningSpark
from static_engine.sources.location import Locations
from static_engine.spark_executor import SparkExecutor
from static_engine.tables import TableStore
from streamsql.algebra.expressions import Call, Column, Expression
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Join,
    JoinKind,
    Plan,
    Project,
    SourceKind,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

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
        for plan in (DESKS.scan(), JOINED, FAR, PER_LEVEL):
            assert on_spark.evaluate(plan) == here.evaluate(plan)
    assert bool(list((tmp_path / "a").glob("desks-*.parquet"))) is (memory_rows < 300)


def test_an_empty_table(spark: RunningSpark, tmp_path: Path) -> None:
    fill(tmp_path, 0)
    store = TableStore(Locations(tmp_path), tmp_path / "a")
    store.load(DESKS)
    store.load(ROOMS)
    assert SparkExecutor(spark, store).evaluate(JOINED) == {}
