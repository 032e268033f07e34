"""Groups that are emitted once, when the watermark has passed the end of their window."""

from collections.abc import Callable
from heapq import heappop, heappush

from typing_extensions import override

from stream_engine.operators.aggregates.aggregate import AggregateOperator
from stream_engine.operators.rows.operator import Operator, WindowCloser
from stream_engine.operators.sessions.session_groups import SessionGroupsOperator
from stream_engine.operators.windows.hold import Hold
from stream_engine.operators.windows.reached_progress import reached_by
from streamsql.algebra.operators import Aggregate, OnClose
from streamsql.data.delta import Delta, accumulate, add
from streamsql.data.types import Row, Value
from streamsql.errors import InternalError

GROUPS, PROGRESS = 0, 1


class OnCloseOperator(WindowCloser, Operator):
    """EMIT ON WINDOW CLOSE over groups one of whose columns is the end of a window.

    The left input is what the groups are made of, not the groups: a group is dropped with its
    window, so only open windows are remembered, however long the query runs. What still reaches a
    closed window (a stored table that changed, a site that was away) changes nothing any more and
    is counted. The watermark is the least of all sites' rows; it never goes back, and while there
    is no row it stays where it is. Rows of idle sites do not count, unless there are no others:
    then nobody is waited for, and the windows that have ended by the greatest of them close. So
    windows that ended while this site was away are emitted although nothing comes any more.

    Where the windows are sessions whose groups are kept by session the left input is what the
    sessions are made of; then these are dropped with their windows.

    State: that of the open groups, twice. Work: that of the aggregate, O(log windows) for a new
    window, and O(1) for a group that closes.

        input      {(10, a): 1}    watermark 5 → 10
        output     {}              {(10, a, …): 1}         window end by first column

    While it is held nothing closes, but all is taken in.

    Attributes:
        hold: Keeps windows open whatever the watermark says.
        too_late: Weight of rows that came for a closed window; retractions are not counted.
    """

    def __init__(
        self,
        plan: OnClose,
        forget: Callable[[int], None] | None = None,
        sessions: SessionGroupsOperator | None = None,
    ) -> None:
        """Build the aggregate, unless it is given.

        Args:
            plan: With the aggregate.
            forget: Receives the new watermark after windows have closed.
            sessions: Takes the place of the aggregate; not used by anybody else.

        Raises:
            InternalError: The plan has no aggregate.
        """
        if not isinstance(plan.left, Aggregate):
            raise InternalError("windows close over an aggregate")
        self._aggregate = (
            AggregateOperator(plan.left.group, plan.left.aggregates) if sessions is None else None
        )
        self.sessions: SessionGroupsOperator | None = sessions
        if sessions is not None:
            sessions.keep_ends()
        self._key_width = len(plan.left.group)
        self._input_end = plan.left.group[plan.end]
        self._end = plan.end
        self._forget = forget
        self._marks: dict[Row, int] = {}
        self._closed: int | None = None
        self._open: dict[int, Delta] = {}
        self._ends: list[int] = []
        self.hold = Hold()
        self.too_late = 0

    def apply(self, port: int, delta: Delta) -> Delta:
        """Take what the groups are made of, or the sites' progress; return what has closed.

        In a step the rows have to come before the progress that closes their windows.
        """
        if port == PROGRESS:
            accumulate(self._marks, delta)
            return {} if self.hold.is_on else self.advance()
        for row, weight in self._groups(delta).items():
            end = row[self._end]
            if not isinstance(end, int):
                continue  # it is in no window
            rows = self._open.get(end)
            if rows is None:
                rows = self._open[end] = {}
                heappush(self._ends, end)
            add(rows, row, weight)
        return {}

    @property
    @override
    def closed(self) -> int | None:
        return self._closed

    def begin_after(self, watermark: int) -> None:
        """Count windows that ended by then as closed, without emitting them: they were emitted.

        So says a sender that has forgotten their rows to a site that has lost its own state.
        """
        if self._closed is None or self._closed < watermark:
            self._closed = watermark
            self._close(watermark)

    @override
    def state_rows(self) -> int:
        groups = self._aggregate or self.sessions
        kept = 0 if groups is None else groups.state_rows()
        return kept + sum(map(len, self._open.values()))

    def _groups(self, delta: Delta) -> Delta:
        if self._aggregate is not None:
            return self._aggregate.apply(0, self._in_time(delta))
        if self.sessions is None:
            return {}
        groups, closed = self.sessions.apply(0, delta), self._closed
        if closed is None:
            return groups
        self.too_late += self.sessions.forget(closed)
        end = self._end
        return {row: w for row, w in groups.items() if _is_open(row[end], closed)}

    def _in_time(self, delta: Delta) -> Delta:
        closed, position = self._closed, self._input_end
        if closed is None:
            return delta
        kept: Delta = {}
        for row, weight in delta.items():
            if _is_open(row[position], closed):
                kept[row] = weight
            else:
                self.too_late += max(weight, 0)
        return kept

    def advance(self) -> Delta:
        """Close the windows that have ended by the watermark; return what they held."""
        reached = reached_by([self._marks])
        if reached.least is None:
            return self._close_of_idle(reached.idle)
        if self._closed is not None and reached.least <= self._closed:
            return {}
        self._closed = reached.least
        return self._close(reached.least)

    def _close_of_idle(self, greatest: int | None) -> Delta:
        """Close the windows that have ended by the greatest watermark of idle sites.

        The watermark goes to the end of the last of them, no further: the next reading of any site
        may be older than what another one has seen.
        """
        ended = max(
            (end for end in self._open if greatest is not None and end <= greatest), default=None
        )
        if ended is None:
            return {}
        self._closed = ended
        return self._close(ended)

    def _close(self, watermark: int) -> Delta:
        result: Delta = {}
        ends = self._ends
        while ends and ends[0] <= watermark:
            rows = self._open.pop(heappop(ends))
            if self._aggregate is not None:
                self._aggregate.forget([row[: self._key_width] for row in rows])
            result.update(rows)
        if self.sessions is not None:
            self.sessions.forget(watermark)
        if result and self._forget is not None:
            self._forget(watermark)
        return result


def _is_open(end: Value, closed: int) -> bool:
    """Whether a window has not ended by a watermark; what has no end is in no window."""
    return not isinstance(end, int) or end > closed
