"""Rows that Spark writes to files for this process: all of them, in the declared types."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import EvaluationError
from static_engine.sources.table_locations import Locations
from static_engine.sources.values.conversion import arrow_schema, rows_in
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Column, Literal
from streamsql.algebra.operators import Filter, Join, JoinKind, Plan, Project, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

T = SourceDefinition(
    "t",
    SourceKind.TABLE,
    Schema.of(
        ("n", DataType.INTEGER), ("x", DataType.DOUBLE), ("name", DataType.TEXT),
        ("ok", DataType.BOOLEAN), ("at", DataType.TIMESTAMP),
    ),
    options=(("source", "csv"), ("path", "t.csv")),
)  # fmt: skip
NULLS = Project(
    T.scan(), (Literal(None, DataType.NULL), Column(4, "at", DataType.TIMESTAMP)), ("a", "b")
)
PLANS: dict[str, Plan] = {
    "only NULL": NULLS,
    "pairs": Join(T.scan(), T.scan(), JoinKind.LEFT, ((0, 0),)),
    "no rows": Filter(T.scan(), Literal(False, DataType.BOOLEAN)),
}


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    lines = [f"{n % 40},{n / 8},é{n % 7},true,2026-01-05T10:00:00.000001Z" for n in range(60)]
    text = "\n".join(["n,x,name,ok,at", *lines, ",,,,", "1,0.5,,,"])
    (tmp_path / "t.csv").write_text(text + "\n", encoding="utf-8")
    store = TableStore(Locations(tmp_path), tmp_path / "tables", memory_rows=50)
    store.load(T)
    return store


def test_they_are_the_rows_of_the_reference(
    spark: RunningSpark, store: TableStore, tmp_path: Path
) -> None:
    in_memory = TableStore(Locations(tmp_path), tmp_path / "others", snapshots=False)
    in_memory.load(T)
    scratch = tmp_path / "scratch"
    executor = SparkExecutor(spark, store, max_result_rows=1, max_view_rows=200)
    for name, plan in PLANS.items():
        batches = list(executor.batches(plan, scratch))
        expected = LocalExecutor(in_memory).evaluate(plan)
        assert all(batch.schema == arrow_schema(plan.schema) for batch in batches)
        assert Counter(rows_in(*batches)) == Counter(expected), name
        assert not scratch.exists()


def test_rows_are_counted_by_one_task_only_if_they_may_be_too_many(
    spark: RunningSpark, store: TableStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    frames = type(spark.session.range(1))
    limit = frames.limit

    def limited(frame: DataFrame, rows: int) -> DataFrame:
        limits.append(rows)
        return limit(frame, rows)

    monkeypatch.setattr(frames, "limit", limited)
    executor = SparkExecutor(spark, store, max_result_rows=1, max_view_rows=200)
    for plan, expected in ((T.scan(), []), (PLANS["pairs"], [201])):
        for _batch in executor.batches(plan, tmp_path / "scratch"):
            pass
        assert limits == expected


def test_more_rows_than_allowed_are_refused(
    spark: RunningSpark, store: TableStore, tmp_path: Path
) -> None:
    executor = SparkExecutor(spark, store, max_result_rows=1, max_view_rows=61)
    with pytest.raises(EvaluationError, match="has more than 61 rows") as refusal:
        executor.batches(T.scan(), tmp_path / "scratch")
    assert "max_view_rows" in refusal.value.hint
    assert not (tmp_path / "scratch").exists()
