"""Evaluation by Spark."""

import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from static_engine.executor import EngineLostError, EvaluationError, check_size, refuse_streams
from static_engine.lowering.relations import lower_plan
from static_engine.session import RunningSpark, error_text
from static_engine.tables import StoredTable, TableStore
from streamsql.algebra.operators import Plan, Scan
from streamsql.data.delta import Delta

_PATIENCE_SECONDS = 3.0  # a service that is told to stop should not take longer


class SparkExecutor:
    """Evaluates plans as DataFrames.

    Args:
        spark: A running session; stopped by `stop`.
        store: The tables.
        max_result_rows: Most rows a plan may produce.
    """

    def __init__(
        self, spark: RunningSpark, store: TableStore, *, max_result_rows: int = 1_000_000
    ) -> None:
        self._spark = spark
        self._store = store
        self._max_result_rows = max_result_rows
        self._frames: dict[str, tuple[int, DataFrame]] = {}

    @property
    def description(self) -> str:
        """Versions and master."""
        return self._spark.description

    def evaluate(self, plan: Plan) -> Delta:
        """Return the rows of a plan; see `StaticExecutor.evaluate`."""
        refuse_streams(plan)
        width = len(plan.schema)
        try:
            frame = lower_plan(plan, self._frame_of, self._spark.session)
            if not width:
                count = frame.count()
                check_size(count, self._max_result_rows)
                return {(): count} if count else {}
            result = frame.toArrow()
        except (PySparkException, Py4JError, OSError) as error:
            if not self._spark.usable():
                raise EngineLostError(f"Spark has ended: {error_text(error)}") from error
            raise EvaluationError(f"Spark: {error_text(error)}") from error
        check_size(result.num_rows, self._max_result_rows)
        rows: Delta = {}
        columns = [column.to_pylist() for column in result.columns]
        for row in zip(*columns, strict=True):
            rows[row] = rows.get(row, 0) + 1
        return rows

    def stop(self) -> None:
        """End the session and its JVM."""
        self._frames.clear()
        self._spark.stop(patience=_PATIENCE_SECONDS)

    def _frame_of(self, scan: Scan) -> DataFrame:
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
