"""Windows by event time: RANGE, RANGE with SLIDE, NOW; also over streams that queries emit."""

from collections.abc import Callable, Iterable, Iterator

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator, TimedOperator
from stream_engine.state.expiry_queue import ExpiryQueue
from stream_engine.state.source_relation import TimedDelta, TimedRow
from streamsql.data.delta import Delta, add
from streamsql.data.types import MICROSECONDS, Row
from streamsql.errors import InternalError

_BEGINNING = -(2**63)


class RangeWindow(TimedOperator):
    """The rows with event time in (now - size, …): a row stays `size` microseconds.

    A row from the future is in. State: the rows in the window, by when they leave. Work: O(1) a
    changed row (O(log) for a new event time), and one step per row that leaves.

        now     10             15      20             size 10
        input   {(5, a): 1}
        output  {a: 1}         {a: -1}
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.now = _BEGINNING
        self._leaving: ExpiryQueue[Row] = ExpiryQueue()

    @override
    def advance(self, now: int) -> Delta:
        self.now = now
        result: Delta = {}
        for _time, rows in self._leaving.due(now):
            for row, weight in rows.items():
                add(result, row, -weight)
        return result

    @override
    def apply_timed(self, delta: TimedDelta) -> Delta:
        now, size, leaving = self.now, self._size, self._leaving
        result: Delta = {}
        for (ts, row), weight in delta.items():
            if ts + size <= now:
                continue  # it never came in, or has left already
            leaving.add(ts + size, row, weight)
            new = result.get(row, 0) + weight
            if new:
                result[row] = new
            else:
                del result[row]
        return result

    def contents(self) -> Iterator[tuple[TimedRow, int]]:
        """Yield its timed rows with their weights."""
        for time, rows in self._leaving.items():
            for row, weight in rows.items():
                yield (time - self._size, row), weight

    def fill(self, now: int, contents: Iterable[tuple[TimedRow, int]]) -> None:
        """Make a new window hold silently what it would hold at a time."""
        self.now = now
        for (ts, row), weight in contents:
            self._leaving.add(ts + self._size, row, weight)

    @override
    def next_wakeup(self) -> int | None:
        return self._leaving.next_time()

    @override
    def state_rows(self) -> int:
        return len(self._leaving)


class SteppedWindow(TimedOperator):
    """A window whose contents change only at the boundaries of a grid.

    `bounds` maps an event time to the times at which its row enters and leaves; both are on the
    grid, so between two boundaries nothing moves.

    State: the rows that wait to enter and those inside. Work: O(1) a changed row, and one step per
    row that enters or leaves.
    """

    def __init__(self, bounds: Callable[[int], tuple[int, int]]) -> None:
        self._bounds = bounds
        self.now = _BEGINNING
        self._entering: ExpiryQueue[TimedRow] = ExpiryQueue()
        self._leaving: ExpiryQueue[TimedRow] = ExpiryQueue()

    @override
    def advance(self, now: int) -> Delta:
        self.now = now
        result: Delta = {}
        for _time, leaving in self._leaving.due(now):
            for (_ts, row), weight in leaving.items():
                add(result, row, -weight)
        for _time, waiting in self._entering.due(now):
            for timed, weight in waiting.items():
                ts, row = timed
                _enter, leave = self._bounds(ts)
                if leave > now:
                    self._leaving.add(leave, timed, weight)
                    add(result, row, weight)
        return result

    def contents(self) -> Iterator[tuple[TimedRow, int]]:
        """Yield its timed rows, inside and waiting, with their weights."""
        for _time, rows in (*self._leaving.items(), *self._entering.items()):
            yield from rows.items()

    def fill(self, now: int, contents: Iterable[tuple[TimedRow, int]]) -> None:
        """Make a new window hold silently what it would hold at a time."""
        self.now = now
        for timed, weight in contents:
            enter, leave = self._bounds(timed[0])
            if enter > now:
                self._entering.add(enter, timed, weight)
            else:
                self._leaving.add(leave, timed, weight)

    @override
    def apply_timed(self, delta: TimedDelta) -> Delta:
        now, bounds = self.now, self._bounds
        result: Delta = {}
        for timed, weight in delta.items():
            ts, row = timed
            enter, leave = bounds(ts)
            if leave <= now:
                continue
            if enter > now:
                self._entering.add(enter, timed, weight)
            else:
                self._leaving.add(leave, timed, weight)
                add(result, row, weight)
        return result

    @override
    def next_wakeup(self) -> int | None:
        times = [self._entering.next_time(), self._leaving.next_time()]
        return min((time for time in times if time is not None), default=None)

    @override
    def state_rows(self) -> int:
        return len(self._entering) + len(self._leaving)


def sliding(size: int, slide: int) -> Callable[[int], tuple[int, int]]:
    """Return the bounds of RANGE size SLIDE slide.

    At time `now` the window is (edge - size, edge] with the edge `now` rounded down to a multiple
    of the slide.

    Examples:
        >>> sliding(10, 5)(7)
        (10, 20)
        >>> sliding(3, 5)(6)  # falls between two windows
        (10, 10)
    """
    return lambda ts: (-(-ts // slide) * slide, -(-(ts + size) // slide) * slide)


def current_second(ts: int) -> tuple[int, int]:
    """Return the bounds of NOW: the second of event time that a row belongs to.

    Examples:
        >>> current_second(2_500_000)
        (2000000, 3000000)
    """
    start = ts // MICROSECONDS * MICROSECONDS
    return (start, start + MICROSECONDS)


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
