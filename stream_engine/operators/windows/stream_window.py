"""CQL windows over a stream that a query gives, with its event time in a column."""

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator, TimedOperator
from stream_engine.state.source_relation import TimedDelta
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.errors import InternalError


class StreamWindowOperator(Operator):
    """A window as over a source, told the event time of every row by a column.

    State and work: those of the window.
    """

    def __init__(self, time: int, window: TimedOperator) -> None:
        self._time = time
        self._window = window

    def advance(self, now: int) -> Delta:
        """Move the time; return what enters and leaves."""
        return self._window.advance(now)

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        timed: TimedDelta = {(self._time_of(row), row): weight for row, weight in delta.items()}
        return self._window.apply_timed(timed)

    def next_wakeup(self) -> int | None:
        """Return when the window next moves."""
        return self._window.next_wakeup()

    @override
    def state_rows(self) -> int:
        return self._window.state_rows()

    def _time_of(self, row: Row) -> int:
        time = row[self._time]
        if not isinstance(time, int):
            raise InternalError("a row of a stream has no time")
        return time
