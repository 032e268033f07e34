"""A source read as it is, and the window that holds everything."""

from typing_extensions import override

from stream_engine.operators.rows.operator import TimedOperator
from stream_engine.state.source_relation import TimedDelta, without_times
from streamsql.data.delta import Delta


class ScanOperator(TimedOperator):
    """The current rows of a source: a bare scan, or `[UNBOUNDED]`.

    Linear. State: none; the site keeps the source. Work: O(1) a changed row.
    """

    @override
    def advance(self, now: int) -> Delta:
        return {}  # only the source itself knows lifetimes

    @override
    def apply_timed(self, delta: TimedDelta) -> Delta:
        return without_times(delta)
