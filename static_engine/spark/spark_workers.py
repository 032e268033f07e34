"""Workers of Spark that do tasks on files: one task of Spark's each, some at a time."""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from static_engine.lake.lake_errors import LakeError
from static_engine.spark.spark_session import RunningSpark, error_text
from static_engine.spark.spark_work import Cancelled, Pool, no_workers

TOGETHER = 16
"""Tasks of one job of Spark's: so often it is told how far the work is, and may be cancelled."""


class SparkWorkers:
    """See `static_engine.care.workers.Workers`.

    The workers need Pando installed, and the lake's files where the driver sees them.

    Args:
        spark: A running session.
    """

    def __init__(self, spark: RunningSpark) -> None:
        self._spark = spark

    @property
    def description(self) -> str:
        """Versions and master."""
        return self._spark.description

    @property
    def usable(self) -> bool:
        """Whether the session still works."""
        return self._spark.usable()

    def run(
        self, work: Callable[[bytes], bytes], tasks: Sequence[bytes], name: str
    ) -> Iterator[bytes]:
        """Yield the outcomes of tasks, in their order.

        Raises:
            LakeError: Spark has ended, or a task failed.
            DeploymentError: Its cluster has no worker.
        """
        for start in range(0, len(tasks), TOGETHER):
            yield from self._together(work, list(tasks[start : start + TOGETHER]), name)

    def _together(
        self, work: Callable[[bytes], bytes], tasks: list[bytes], name: str
    ) -> list[bytes]:
        def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                places = batch.column(0).to_pylist()
                outcomes = [work(tasks[place]) for place in places]
                yield pa.RecordBatch.from_pydict(
                    {"place": places, "outcome": pa.array(outcomes, pa.binary())}
                )

        session, count = self._spark.session, len(tasks)
        job = self._spark.work(Pool.MAINTENANCE, name)
        try:
            with job:
                frame = session.range(0, count, 1, count)
                rows = frame.mapInArrow(each, "place long, outcome binary").collect()
        except (PySparkException, Py4JError, OSError) as error:
            if job.cancelled is Cancelled.NO_WORKERS:
                raise no_workers() from error
            raise LakeError(
                f"{name} failed: {error_text(error)}",
                hint="pando logs static says more; it is tried again",
            ) from error
        return [bytes(row["outcome"]) for row in sorted(rows, key=lambda row: int(row["place"]))]
