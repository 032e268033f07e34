"""An evaluation on Spark is cancelled by the plan that was given, also by one over the past."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from static_engine.evaluation.static_executor import EvaluationCancelledError
from static_engine.sources.table_locations import Locations
from static_engine.spark import spark_executor
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark
from static_engine.spark.spark_work import Pool, SparkWork, WorkCancelledError
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.history.past_plans import fixed
from streamsql.syntax import CreateSource, Query, parse_statement

START = 1_700_000_000_000_000
SOURCES = (
    "CREATE SOURCE Temp (rid TEXT, celsius DOUBLE, KEY (rid))",
    "CREATE TABLE rooms (rid TEXT) WITH (source = 'csv', path = 'rooms.csv')",
)
QUERIES = {
    "readings of an interval": "SELECT rid, AVG(celsius) AS m FROM Temp FOR SYSTEM_TIME BETWEEN "
    "NOW - INTERVAL '7 days' AND NOW GROUP BY rid",
    "rows of a moment": "SELECT * FROM Temp FOR SYSTEM_TIME AS OF NOW - INTERVAL '1 day'",
    "a table": "SELECT rid FROM rooms",
}


class Spark:
    """A session of a server; it notes which work it is to interrupt."""

    is_remote, is_local, has_workers = True, True, False

    def __init__(self) -> None:
        self.session = self
        self.interrupted: list[str] = []

    def work(
        self, pool: Pool, name: str, *, worker_seconds: float, max_seconds: float
    ) -> SparkWork:
        session = cast("RunningSpark", self)
        return SparkWork(
            session, pool, name, worker_seconds=worker_seconds, max_seconds=max_seconds
        )

    def usable(self) -> bool:
        return True

    def end_cancelled(self) -> None:
        pass

    def addTag(self, tag: str) -> None:  # noqa: N802
        pass

    def removeTag(self, tag: str) -> None:  # noqa: N802
        pass

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        self.interrupted.append(tag)


def planned(text: str) -> Plan:
    catalog = Catalog()
    for source in SOURCES:
        statement = parse_statement(source)
        assert isinstance(statement, CreateSource)
        catalog.define(define(statement, catalog))
    query = parse_statement(text)
    assert isinstance(query, Query)
    return fixed(bind_query(query, catalog).plan, START)


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize(
    "evaluate",
    [
        lambda executor, plan, _: executor.evaluate(plan),
        lambda executor, plan, folder: executor.batches(plan, folder),
    ],
    ids=["evaluate", "batches"],
)
def test_a_plan_is_cancelled_as_it_was_given(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    evaluate: Callable[[SparkExecutor, Plan, Path], object],
    text: str,
) -> None:
    spark, plan = Spark(), planned(text)
    store = TableStore(Locations(tmp_path), tmp_path / "snapshots")
    executor = SparkExecutor(cast("RunningSpark", spark), store)

    def running(*_: object) -> None:
        executor.cancel(planned("SELECT rid, 1 AS one FROM rooms"))
        assert not spark.interrupted
        executor.cancel(plan)
        assert len(spark.interrupted) == 1
        raise WorkCancelledError("cancelled")

    monkeypatch.setattr(spark_executor, "lower_plan", running)
    with pytest.raises(EvaluationCancelledError):
        evaluate(executor, plan, tmp_path / "scratch")
    executor.cancel(plan)  # it runs no more
    assert len(spark.interrupted) == 1
