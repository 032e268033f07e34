"""Windows at the ends of time: those whose bounds do not fit 64 bits are none."""

from stream_engine.operators.windows.tumble_hop_window import HopWindowOperator
from streamsql.algebra.operators import HopWindow, RemoteSource
from streamsql.data.delta import from_rows
from streamsql.data.schema import Schema
from streamsql.data.types import GREATEST_TIME, LEAST_TIME, DataType, Row
from streamsql.reference.plain_operators import hops
from streamsql.wire.codec import encode_packed

ROWS = RemoteSource("rows", Schema.of(("at", DataType.TIMESTAMP)))


def test_bounds_of_windows_fit_64_bits() -> None:
    times = (LEAST_TIME, LEAST_TIME + 7, -1, 0, GREATEST_TIME - 9, GREATEST_TIME)
    rows: list[Row] = [(time,) for time in times]
    for size, hop in ((5, 5), (10, 3), (10, 10)):
        plan = HopWindow(ROWS, 0, size, hop)
        found = HopWindowOperator(plan).apply(0, from_rows(rows))
        assert found == from_rows(hops(plan, rows))
        values = [value for row in found for value in row if isinstance(value, int)]
        assert len(values) == 3 * len(found)
        assert min(values) >= LEAST_TIME
        assert max(values) <= GREATEST_TIME
        assert {row[0] for row in found} >= {-1, 0}
        assert encode_packed([list(row) for row in found])
    tumbling = HopWindowOperator(HopWindow(ROWS, 0, 5, 5)).apply(0, from_rows(rows))
    assert (LEAST_TIME,) not in {row[:1] for row in tumbling}
