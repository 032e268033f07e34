"""Evaluations: what nobody reads any more is ended, and is evaluated anew for who reads it then."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from static_engine.evaluation.bags import Bag
from static_engine.evaluation.evaluations import Evaluations
from static_engine.evaluation.static_executor import EvaluationCancelledError
from static_engine.history.past_readings import PastReadings
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta
from tests.static_engine.rooms_table import ROOMS

SCAN = ROOMS.scan()
SECONDS = 30.0


class Blocking:
    """An executor that evaluates until it is cancelled, then answers at once."""

    description = "blocks"
    is_gone = False

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()
        self.asked = 0

    def evaluate(self, plan: Plan) -> Delta:
        return self.collect(plan).delta()

    def collect(self, _plan: Plan, /) -> Bag:
        self.asked += 1
        self.begun.set()
        if self.asked > 1:
            return Bag.of_rows(ROOMS.schema, {("r1", 2): 1})
        assert self.ended.wait(SECONDS)
        raise EvaluationCancelledError("nobody reads the query any more")

    def batches(self, plan: Plan, scratch: Path) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        raise AssertionError("no view is refreshed here")

    def cancel(self, plan: Plan) -> None:
        assert plan == SCAN
        self.ended.set()

    def stop(self) -> None:
        self.ended.set()


def test_a_plan_that_nobody_reads_any_more_is_cancelled_and_is_due_again(tmp_path: Path) -> None:
    (tmp_path / "rooms.csv").write_text("room,seats\nr1,2\n")
    store = TableStore(Locations(tmp_path), tmp_path / "tables")
    store.load(ROOMS)
    evaluations, executor = Evaluations(store, PastReadings(None)), Blocking()
    worker = threading.Thread(target=evaluations.evaluate, args=(SCAN, executor, 0.0))
    worker.start()
    assert executor.begun.wait(SECONDS)
    evaluations.cancel_unneeded({SCAN})
    assert not executor.ended.is_set()
    evaluations.cancel_unneeded(set())
    worker.join(SECONDS)
    assert not worker.is_alive()
    assert evaluations.outcome(SCAN).error is None
    assert evaluations.is_due(SCAN, 0.0)
    evaluations.evaluate(SCAN, executor, 0.0)
    result = evaluations.outcome(SCAN).result
    assert result is not None
    assert result.delta() == {("r1", 2): 1}
    evaluations.cancel_unneeded(set())  # nothing runs: nobody is asked
