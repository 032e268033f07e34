"""Evaluation of plans by Spark."""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from static_engine.evaluation.bags import Bag
from static_engine.evaluation.static_executor import (
    EngineLostError,
    EvaluationCancelledError,
    EvaluationError,
    check_size,
    refuse_streams,
)
from static_engine.history.past_readings import PastReadings
from static_engine.lowering.spark_plans import lower_plan
from static_engine.spark.past_frames import past_frame
from static_engine.spark.row_bounds import most_rows, rows_at_most
from static_engine.spark.saved_rows import SavedRows
from static_engine.spark.spark_session import RunningSpark, error_text
from static_engine.spark.spark_work import (
    WORK_SECONDS,
    WORKER_SECONDS,
    Cancelled,
    Pool,
    SparkWork,
    WorkCancelledError,
)
from static_engine.tables.table_store import StoredTable, TableStore
from streamsql.algebra.explain import describe
from streamsql.algebra.operators import (
    Plan,
    Scan,
)
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import FederationError
from streamsql.history.past_plans import with_kept_rows

T = TypeVar("T")

MOST_VIEW_ROWS = 20_000_000
_FIXED_BYTES = 8
_LONG_ROWS = 10_000
"""So many rows share one half of a result's bytes, all that are allowed the other."""
_LONG = "pando: a row is longer than its share"
_PATIENCE_SECONDS = 3.0  # a service that is stopped should not take longer


class SparkExecutor:
    """Evaluates plans as DataFrames.

    Args:
        spark: A running session; stopped by `stop`.
        store: The tables.
        past: What is kept of the past; None: nothing.
        max_result_rows: Most rows a plan may produce that are held in memory.
        max_view_rows: And of `batches`, where they are not.
        worker_seconds: For which a cluster may have no worker before a plan fails.
        max_seconds: For which one evaluation may run.
    """

    def __init__(  # noqa: PLR0913 - what it works with, and bounds
        self,
        spark: RunningSpark,
        store: TableStore,
        past: PastReadings | None = None,
        *,
        max_result_rows: int = 1_000_000,
        max_view_rows: int = MOST_VIEW_ROWS,
        worker_seconds: float = WORKER_SECONDS,
        max_seconds: float = WORK_SECONDS,
    ) -> None:
        self._spark = spark
        self._store = store
        self._past = past or PastReadings(None)
        self._max_result_rows = max_result_rows
        self._max_view_rows = max_view_rows
        self._worker_seconds = worker_seconds
        self._max_seconds = max_seconds
        self._running: tuple[Plan, SparkWork] | None = None
        self._frames: dict[str, tuple[int, DataFrame]] = {}

    @property
    def description(self) -> str:
        """Versions and master."""
        return self._spark.description

    @property
    def is_gone(self) -> bool:
        """See `StaticExecutor.is_gone`."""
        return self._spark.is_gone

    def evaluate(self, plan: Plan) -> Delta:
        """See `StaticExecutor.evaluate`."""
        return self.collect(plan).delta()

    def collect(self, plan: Plan) -> Bag:
        """See `StaticExecutor.collect`."""
        return self._run(plan, partial(self._bag, with_kept_rows(plan)))

    def batches(self, plan: Plan, scratch: Path) -> Iterator[pa.RecordBatch]:
        """See `StaticExecutor.batches`; tasks on this machine write the rows to files."""
        if not self._spark.is_local:  # workers elsewhere do not see our folder
            return self.collect(plan).batches()
        rows = SavedRows(plan.schema, scratch, self._max_view_rows)
        bound = rows_at_most(with_kept_rows(plan), self._read_rows_of)
        fits = bound <= self._max_view_rows
        try:
            self._run(plan, partial(rows.save, fits=fits))
            check_size(rows.count(), self._max_view_rows, "max_view_rows")
        except BaseException:
            rows.discard()
            raise
        return rows.batches()

    def _run(self, plan: Plan, take: Callable[[DataFrame], T]) -> T:
        """Return what is taken of a plan's rows."""
        over_kept = with_kept_rows(plan)
        refuse_streams(over_kept)
        kept: list[DataFrame] = []

        def keep(frame: DataFrame) -> DataFrame:
            kept.append(frame.persist())
            return kept[-1]

        work = self._spark.work(
            Pool.INTERACTIVE,
            f"stored part of a query: {describe(plan):.120}",
            worker_seconds=self._worker_seconds,
            max_seconds=self._max_seconds,
        )
        self._running = plan, work  # as `cancel` is told it
        try:
            with work:
                return take(lower_plan(over_kept, self._frame_of, self._spark.session, keep))
        except (PySparkException, Py4JError, WorkCancelledError, OSError) as error:
            if not self._spark.usable():
                raise EngineLostError(f"Spark has ended: {error_text(error)}") from error
            raise self._failure(work, error) from error
        finally:
            self._running = None
            for frame in kept:
                with suppress(PySparkException, Py4JError, OSError):  # its JVM may have ended
                    frame.unpersist()

    def _bag(self, plan: Plan, frame: DataFrame) -> Bag:
        if not len(plan.schema):
            count = frame.count()
            check_size(count, self._max_result_rows)
            return Bag.of_rows(plan.schema, {(): count} if count else {})
        # One row more than may be: the JVM would hold all of them before anybody counts.
        if most_rows(plan, self._rows_of) > self._max_result_rows:
            counted = frame.limit(self._max_result_rows + 1).count()
            check_size(counted, self._max_result_rows)
        result = self._collected(frame.limit(self._max_result_rows + 1), plan.schema)
        check_size(result.num_rows, self._max_result_rows)
        return Bag.of_table(plan.schema, result)

    def _rows_of(self, scan: Scan) -> float:
        table = self._store.find(scan.source) if scan.history is None else None
        return math.inf if table is None else table.row_count

    def _read_rows_of(self, scan: Scan) -> float:
        """Return how many rows a scan of `with_kept_rows` reads at most."""
        if scan.history is None:
            return self._rows_of(scan)
        try:
            return self._past.scan(scan).rows
        except FederationError:  # said when it is read
            return math.inf

    def _collected(self, frame: DataFrame, schema: Schema) -> pa.Table:
        """Return the rows of a frame that fit into the heap.

        One task makes all of them and holds them twice before Spark compares sizes, and a heap that
        is full ends the JVM. So a row that has more than its share fails; then sizes are added up
        first, which evaluates the frame twice.

        Raises:
            EvaluationError: The rows are too large.
        """
        size = _row_size(schema)
        if size is None:
            return frame.toArrow()
        half = self._spark.result_bytes // 2
        place = fn.monotonically_increasing_id()
        share = fn.when(place < _LONG_ROWS, half // _LONG_ROWS).otherwise(
            half // (self._max_result_rows + 1)
        )
        first, *others = frame.columns
        guarded = fn.when(size <= share, fn.col(first)).otherwise(fn.raise_error(fn.lit(_LONG)))
        try:
            return frame.select(guarded.alias(first), *others).toArrow()
        except PySparkException as error:
            if not self._spark.usable() or _LONG not in error_text(error):
                raise
        total = frame.agg(fn.sum(size)).collect()[0][0]
        if total > self._spark.result_bytes:
            raise EvaluationError(
                f"the stored part of the query has {total / 1e6:.0f} MB of rows; Spark's memory "
                f"allows {self._spark.result_bytes / 1e6:.0f} MB",
                hint="filter or aggregate it, choose fewer columns, or give Spark more memory",
            )
        return frame.toArrow()

    def cancel(self, plan: Plan) -> None:
        """See `StaticExecutor.cancel`."""
        running = self._running
        if running is not None and running[0] == plan:
            running[1].cancel()

    def _failure(self, work: SparkWork, error: Exception) -> EvaluationError:
        match work.cancelled:
            case Cancelled.NO_WORKERS:
                return EvaluationError(
                    f"Spark has had no worker for {self._worker_seconds:g} s",
                    hint="start a worker of its cluster, or find out why the workers stop; the "
                    "query is retried every minute",
                    code="no_workers",
                )
            case Cancelled.TOO_LONG:
                return EvaluationError(
                    f"the stored part of the query takes more than {self._max_seconds:g} s",
                    hint="filter or aggregate it, give Spark more cores, or raise "
                    "max_evaluation_seconds",
                )
            case Cancelled.STOPPED:
                return EvaluationCancelledError("nobody reads the query any more")
            case None:
                pass
        text = error_text(error)
        if "maxResultSize" in text:
            return EvaluationError(
                "the stored part of the query is too large for Spark's memory",
                hint="filter or aggregate it, choose fewer columns, or give Spark more memory",
            )
        return EvaluationError(f"Spark: {text}")

    def stop(self) -> None:
        """End the session and its JVM."""
        self._frames.clear()
        self._spark.stop(patience=_PATIENCE_SECONDS)

    def _frame_of(self, scan: Scan) -> DataFrame:
        if scan.history is not None:
            return past_frame(scan, self._past, self._spark.session)
        table = self._store.table(scan)
        known = self._frames.get(scan.source)
        if known is None or known[0] != table.version:
            known = (table.version, self._load(table))
            self._frames[scan.source] = known
        return known[1]

    def _load(self, table: StoredTable) -> DataFrame:
        if table.data is not None:
            return self._spark.session.createDataFrame(table.data)
        path = str(table.snapshot)
        if self._spark.is_local:
            return self._spark.session.read.parquet(path)
        # Workers elsewhere do not see our folder.
        return self._spark.session.createDataFrame(pq.read_table(path))


def _row_size(schema: Schema) -> Column | None:
    """Return the bytes of a row of `lower_plan`; None if all rows have the same."""
    texts = [n for n, dtype in enumerate(schema.dtypes) if dtype == DataType.TEXT]
    if not texts:
        return None
    sizes = [fn.coalesce(fn.octet_length(f"c{number}"), fn.lit(0)) for number in texts]
    fixed = fn.lit(_FIXED_BYTES * len(schema)).cast("bigint")
    return reduce(lambda left, right: left + right, sizes, fixed)
