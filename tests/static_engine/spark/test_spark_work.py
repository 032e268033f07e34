"""Work on Spark: its jobs have a pool, end together, and leave the thread as it was."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from static_engine.evaluation.static_executor import EvaluationCancelledError, EvaluationError
from static_engine.sources.table_locations import Locations
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark
from static_engine.spark.spark_work import Cancelled, Pool, SparkWork, WorkCancelledError
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Call, Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Join,
    JoinKind,
    Plan,
)
from streamsql.data.types import DataType
from tests.static_engine.rooms_table import ROOMS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SECONDS = 60.0
POOL = "spark.scheduler.pool"


def endless(spark: RunningSpark) -> None:
    one_task = spark.session.range(0, 10**15, 1, 1)  # a task is not interrupted for others
    one_task.selectExpr("sum(id % 7)").collect()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_busy(spark: RunningSpark) -> bool:
    return bool(spark.session.sparkContext.statusTracker().getActiveJobsIds())


def started(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Run something on a thread; return it and, once it has failed, its error."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except (PySparkException, Py4JError, EvaluationError, WorkCancelledError) as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, failed


def test_work_has_its_pool_and_leaves_the_thread_as_it_was(spark: RunningSpark) -> None:
    context = spark.session.sparkContext
    assert context.getLocalProperty(POOL) is None
    with spark.work(Pool.PIPELINE, "outer"):
        assert context.getLocalProperty(POOL) == "pipeline"
        with spark.work(Pool.MAINTENANCE, "inner"):
            assert context.getLocalProperty(POOL) == "maintenance"
        assert context.getLocalProperty(POOL) == "pipeline"
        assert context.getLocalProperty("spark.job.description") == "outer"
    assert context.getLocalProperty(POOL) is None
    assert context.getLocalProperty("spark.jobGroup.id") is None


def test_spark_knows_the_pools_and_their_weights(spark: RunningSpark) -> None:
    context = spark.session.sparkContext._jsc.sc()
    weights = {pool: context.getPoolForName(pool.value).get().weight() for pool in Pool}
    assert weights == {Pool.INTERACTIVE: 4, Pool.PIPELINE: 2, Pool.MAINTENANCE: 1}


def test_cancelled_work_ends_and_other_work_goes_on(spark: RunningSpark) -> None:
    work = spark.work(Pool.INTERACTIVE, "endless")

    def run() -> None:
        with work:
            endless(spark)

    thread, failed = started(run)
    until(lambda: is_busy(spark))
    with spark.work(Pool.PIPELINE, "beside it"):
        assert spark.session.range(1000).count() == 1000
    assert thread.is_alive()
    work.cancel()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert len(failed) == 1
    assert work.cancelled is Cancelled.STOPPED
    until(lambda: not is_busy(spark))
    with spark.work(Pool.INTERACTIVE, "the next"):
        assert spark.session.range(10).count() == 10


def test_work_that_was_cancelled_before_it_began_does_not_begin(spark: RunningSpark) -> None:
    work = spark.work(Pool.MAINTENANCE, "compaction")
    work.cancel()
    with pytest.raises(WorkCancelledError, match="compaction was cancelled"), work:
        pytest.fail("it began")
    assert not spark.maintenance.locked()


def test_maintenance_runs_one_work_at_a_time(spark: RunningSpark) -> None:
    first, second = (spark.work(Pool.MAINTENANCE, name) for name in ("first", "second"))
    begun = threading.Event()

    def run(work: SparkWork) -> None:
        with work:
            begun.set()

    with first:
        thread, failed = started(lambda: run(second))
        third = spark.work(Pool.MAINTENANCE, "third")
        other, refused = started(lambda: run(third))
        third.cancel()
        other.join(SECONDS)
        assert [type(error) for error in refused] == [WorkCancelledError]
        assert not begun.is_set()
    thread.join(SECONDS)
    assert begun.is_set()
    assert failed == []


@pytest.fixture
def long_plan() -> Plan:
    """Return a product of ten thousand million rows; a cancelled task of it ends at its next row.

    The product of three would keep the cores from all tests to come: see `stuck_tasks`.
    """
    product = Join(ROOMS.scan(), ROOMS.scan(), JoinKind.INNER)
    seats = tuple(Column(place, "seats", DataType.INTEGER) for place in (1, 3))
    total = Call("+", seats, DataType.INTEGER)
    return Aggregate(product, (), (AggregateCall(AggregateFunction.MAX, (total,), "largest"),))


@pytest.fixture
def executor_of(spark: RunningSpark, tmp_path: Path) -> Callable[[float], SparkExecutor]:
    (tmp_path / "rooms.csv").write_text("room,seats\n" + "r,1\n" * 100_000)
    store = TableStore(Locations(tmp_path), tmp_path / "tables")
    store.load(ROOMS)
    return lambda seconds: SparkExecutor(spark, store, max_seconds=seconds)


def test_an_evaluation_is_cancelled_by_its_plan(
    spark: RunningSpark, executor_of: Callable[[float], SparkExecutor], long_plan: Plan
) -> None:
    executor = executor_of(SECONDS)
    thread, failed = started(lambda: executor.evaluate(long_plan))
    until(lambda: is_busy(spark))
    executor.cancel(ROOMS.scan())  # of another plan: nothing ends
    assert thread.is_alive()
    executor.cancel(long_plan)
    thread.join(SECONDS)
    assert [type(error) for error in failed] == [EvaluationCancelledError]
    assert len(executor.evaluate(ROOMS.scan())) == 1


def test_an_evaluation_ends_after_its_time(
    executor_of: Callable[[float], SparkExecutor], long_plan: Plan
) -> None:
    with pytest.raises(EvaluationError, match="takes more than 2 s") as caught:
        executor_of(2.0).evaluate(long_plan)
    assert "max_evaluation_seconds" in str(caught.value)
    assert len(executor_of(SECONDS).evaluate(ROOMS.scan())) == 1
