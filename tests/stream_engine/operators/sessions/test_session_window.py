"""Sessions at the end of time: their ends fit 64 bits, whether rows or groups of them are shown."""

from stream_engine.testing.circuit_runs import RemoteRun, evaluated_over
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Plan,
    RemoteSource,
    SessionWindow,
)
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import GREATEST_TIME, LEAST_TIME, DataType

GAP = 10
ROWS = RemoteSource("rows", Schema.of(("at", DataType.TIMESTAMP)))
SESSIONS = SessionWindow(ROWS, 0, GAP)
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
TIMES = (
    *(LEAST_TIME, LEAST_TIME + 3, 0),
    *(GREATEST_TIME - 15, GREATEST_TIME - GAP, GREATEST_TIME - GAP + 1, GREATEST_TIME),
)


def test_ends_of_sessions_fit_64_bits() -> None:
    rows: Delta = {(time,): 1 for time in TIMES}
    groups: Plan = Aggregate(SESSIONS, (1, 2), (COUNT,))
    for plan in (SESSIONS, groups):
        run = RemoteRun(plan)
        run.step(rows=rows)
        assert run.output == evaluated_over(plan, {"rows": rows})
    run = RemoteRun(groups)
    run.step(rows=rows)
    assert run.output == {
        (LEAST_TIME, LEAST_TIME + 3 + GAP, 2): 1,
        (0, GAP, 1): 1,
        (GREATEST_TIME - 15, GREATEST_TIME, 2): 1,
    }
