"""Windows by event time over one source that are kept together: one store of rows by time.

`[RANGE 1 MIN]` is a part of `[RANGE 10 MIN]`, and so are the steps of `SLIDE` and the second of
`[NOW]`: each is a stretch of event time, which moves with the clock. The store keeps rows by their
time, from the beginning of the earliest stretch on; a window is two times.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from stream_engine.operators.windows.stretches import ALWAYS, Stretch
from stream_engine.operators.windows.time_window import RangeWindow, SteppedWindow
from stream_engine.sharing.versions import Change, Changes, Item, SharedStore, Stub
from stream_engine.state.sorted_list import SortedList
from stream_engine.state.source_relation import TimedDelta, TimedRow
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row

_MOST_MEMO = 16
"""Moves of windows that are cached for others that make the same one."""


class TimeStore(SharedStore):
    """The rows of one source by event time.

    State: the rows later than the beginning of the earliest stretch. Work: O(log times) for a new
    event time and for one that is dropped; see `SharedStore`.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.times: dict[int, dict[Row, int]] = {}
        self.order: SortedList[int] = SortedList()
        self._floor = ALWAYS
        self._lows: Counter[int] = Counter()
        self._moves: dict[tuple[int, ...], Delta] = {}
        self._taken: TimedDelta = {}
        self._outputs: dict[tuple[int, int], Delta] = {}

    def items(self, delta: Change) -> Iterator[Item]:
        """Yield the rows that some window may still need, by their time."""
        floor = self._floor
        for (ts, row), weight in delta.items():
            if ts > floor:
                yield ts, row, weight

    def change(self, delta: Change) -> None:
        """Add rows, from the beginning of the earliest stretch on."""
        self._add(self.items(delta), 1)

    def subtract(self, lag: Changes) -> None:
        """Take rows away."""
        self._add(lag.items(), -1)
        self._moves.clear()

    def _add(self, items: Iterator[Item], sign: int) -> None:
        times, order = self.times, self.order
        for ts, row, weight in items:
            rows = times.get(ts)
            if rows is None:
                times[ts] = {row: sign * weight}
                order.add(ts)
                continue
            new = rows.get(row, 0) + sign * weight
            if new:
                rows[row] = new
                continue
            del rows[row]
            if not rows:
                del times[ts]
                order.discard(ts)

    def head_rows(self) -> int:
        """Return the rows, each time counted."""
        return sum(map(len, self.times.values()))

    def has(self, key: Any, row: Row) -> bool:
        """Whether a row is there at a time."""
        return row in self.times.get(key, ())

    # --- stretches --------------------------------------------------------------------------------

    def enter(self, low: int) -> None:
        """Keep from now on what is later than a time."""
        self._lows[low] += 1
        self._floor = min(self._floor, low)

    def leave(self, low: int) -> None:
        """Note that a stretch no longer begins at a time; drop rows that no window needs."""
        if self._lows[low] > 1:
            self._lows[low] -= 1
            return
        del self._lows[low]
        if low > self._floor or not self._lows:
            return
        self._floor = floor = min(self._lows)
        times, order = self.times, self.order
        while len(order) and (first := order.first()) <= floor:
            order.discard(first)
            del times[first]

    def moved(self, stub: "TimeStub", low: int, high: int) -> Delta:
        """Return what the move of a stub's stretch takes out and brings in."""
        name = (stub.position, stub.low, stub.high, low, high)
        known = self._moves.get(name) if stub.lag is None else None
        if known is not None:
            return known
        result: Delta = {}
        behind = [part.by_key for part in stub.behind()]
        self._between(behind, stub.low, min(low, stub.high), -1, result)
        self._between(behind, max(stub.high, low), high, 1, result)
        if stub.lag is None:
            if len(self._moves) >= _MOST_MEMO:
                self._moves.clear()
            self._moves[name] = result
        return result

    def _between(
        self,
        behind: list[dict[Any, dict[Row, int]]],
        low: int,
        high: int,
        sign: int,
        result: Delta,
    ) -> None:
        """Add to a result the rows with low < event time <= high, less what is behind."""
        if low >= high:
            return
        times = self.times
        for ts in self.order.between(low + 1, high):
            for row, weight in times[ts].items():
                add(result, row, sign * weight)
        for part in behind:
            for ts, rows in part.items():
                if low < ts <= high:
                    for row, weight in rows.items():
                        add(result, row, -sign * weight)

    def output(self, delta: TimedDelta, low: int, high: int) -> Delta:
        """Return the part of a source's change inside a stretch; equal stretches get the same."""
        if delta is not self._taken:
            self._taken, self._outputs = delta, {}
        known = self._outputs.get((low, high))
        if known is None:
            known = self._outputs[low, high] = {}
            for (ts, row), weight in delta.items():
                if low < ts <= high:
                    add(known, row, weight)
        return known

    def admit(self, window: RangeWindow | SteppedWindow, stretch: Stretch) -> "TimeStub | None":
        """Return a stub in place of a private window with the same rows, or None.

        A window that reaches further back than all others is admitted if it agrees with them as far
        as they go.
        """
        low, _high = stretch.at(window.now)
        theirs = by_time(window.contents())
        later = max(low, self._floor)
        for ts, rows in theirs.items():
            if ts > later and self.times.get(ts) != rows:
                return None
        for ts in self.order.between(later + 1, ALWAYS):
            if ts not in theirs:
                return None
        if low < self._floor:
            earlier = (
                (ts, row, weight)
                for ts, rows in theirs.items()
                if ts <= self._floor
                for row, weight in rows.items()
            )
            self._add(earlier, 1)
        return TimeStub(self, stretch, window.now)

    def remove(self, stub: Stub) -> None:
        """Let a window go, and the rows that only it needed."""
        super().remove(stub)
        if isinstance(stub, TimeStub):
            self.leave(stub.low)


class TimeStub(Stub):
    """A window whose rows, of low < event time <= high, are in a store; see `TimedOperator`."""

    store: TimeStore

    def __init__(self, store: TimeStore, stretch: Stretch, now: int) -> None:
        super().__init__(store)
        self._stretch = stretch
        self.now = now
        self.low, self.high = stretch.at(now)
        store.enter(self.low)

    def advance(self, now: int) -> Delta:
        """Move the time; return what leaves and enters."""
        self.now = now
        low, high = self._stretch.at(now)
        if low == self.low and high == self.high:
            return {}
        store, old = self.store, self.low
        result = store.moved(self, low, high)
        self.low, self.high = low, high
        if self.lag is not None:
            for ts in [ts for ts in self.lag.by_key if ts <= low]:
                self.lag.drop(ts)
            if not self.lag.rows:
                self.lag = None
        store.enter(low)
        store.leave(old)
        return result

    def apply_timed(self, delta: TimedDelta) -> Delta:
        """Ingest the change of the source; return the part of it that is inside."""
        self.make(delta)
        return self.store.output(delta, self.low, self.high)

    def shift(self, items: Iterable[Item], sign: int) -> None:
        """Add to its lag; rows that have left it do not matter."""
        low = self.low
        super().shift((item for item in items if item[0] > low), sign)

    def reaches(self, key: Any) -> bool:
        """Whether rows of a time have not left."""
        later: bool = key > self.low
        return later

    def next_wakeup(self) -> int | None:
        """Return a time before which nothing leaves or enters, or None."""
        order = self.store.order
        bounds = self._stretch.bounds
        times = []
        first = order.above(self.low)
        if first is not None:
            times.append(bounds(first)[first <= self.high])
        waiting = order.above(max(self.low, self.high))
        if waiting is not None:
            times.append(bounds(waiting)[0])
        for part in self.behind():
            times.extend(bounds(ts)[ts <= self.high] for ts in part.by_key if ts > self.low)
        return min(times, default=None)

    def state_rows(self) -> int:
        """Return the rows it sees, inside and waiting."""
        if not self.sees_head:
            return sum(1 for _ in self.contents())
        store = self.store
        times = store.times
        return sum([len(times[ts]) for ts in store.order.between(self.low + 1, ALWAYS)])

    def contents(self) -> Iterator[tuple[TimedRow, int]]:
        """Yield its timed rows with their weights."""
        view = Changes(
            (ts, row, weight)
            for ts in self.store.order.between(self.low + 1, ALWAYS)
            for row, weight in self.store.times[ts].items()
        )
        for part in self.behind():
            view.add(((ts, row, w) for ts, row, w in part.items() if ts > self.low), -1)
        for ts, row, weight in view.items():
            yield (ts, row), weight

    def as_private(self) -> RangeWindow | SteppedWindow:
        """Return a private window with the rows that this one sees."""
        window = self._stretch.alone()
        window.fill(self.now, self.contents())
        return window


def by_time(contents: Iterator[tuple[TimedRow, int]]) -> dict[int, dict[Row, int]]:
    """Return timed rows by their time."""
    result: dict[int, dict[Row, int]] = {}
    for (ts, row), weight in contents:
        result.setdefault(ts, {})[row] = weight
    return result
