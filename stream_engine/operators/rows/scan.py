"""A source read as it is, and the window that holds everything."""

from stream_engine.state.source_relation import TimedDelta, without_times
from streamsql.data.delta import Delta


class ScanOperator:
    """The current rows of a source: a bare scan, or `[UNBOUNDED]`.

    Linear. State: none; the site keeps the source. Work: O(1) a changed row.
    """

    def advance(self, now: int) -> Delta:  # noqa: ARG002  (the protocol's signature)
        """Return nothing: only the source itself knows lifetimes."""
        return {}

    def apply_timed(self, delta: TimedDelta) -> Delta:
        """Return the change without its times."""
        return without_times(delta)

    def next_wakeup(self) -> int | None:
        """Return None."""
        return None

    def state_rows(self) -> int:
        """Return 0."""
        return 0
