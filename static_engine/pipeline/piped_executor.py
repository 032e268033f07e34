"""An executor whose session the pipeline runs in."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from static_engine.evaluation.bags import Bag
from static_engine.evaluation.static_executor import StaticExecutor
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta


class PipedExecutor:
    """An executor in whose session something else runs, which is ended first."""

    def __init__(self, executor: StaticExecutor, end: Callable[[], None]) -> None:
        self._executor = executor
        self._end = end

    @property
    def description(self) -> str:
        """Of the executor."""
        return self._executor.description

    @property
    def is_gone(self) -> bool:
        """See `StaticExecutor.is_gone`."""
        return self._executor.is_gone

    def evaluate(self, plan: Plan) -> Delta:
        """See `StaticExecutor.evaluate`."""
        return self._executor.evaluate(plan)

    def collect(self, plan: Plan) -> Bag:
        """See `StaticExecutor.collect`."""
        return self._executor.collect(plan)

    def batches(self, plan: Plan, scratch: Path) -> Iterator[pa.RecordBatch]:
        """See `StaticExecutor.batches`."""
        return self._executor.batches(plan, scratch)

    def cancel(self, plan: Plan) -> None:
        """See `StaticExecutor.cancel`."""
        self._executor.cancel(plan)

    def stop(self) -> None:
        """End the other, then the executor."""
        try:
            self._end()
        finally:
            self._executor.stop()
