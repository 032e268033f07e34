"""The sessions of a partition: of few times found anew from its rows, of many times kept.

Most partitions have few times. Putting a few numbers in order takes less than keeping them so, and
they need no room next to their rows.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

from stream_engine.state.indexed_relation import Bucket, IndexedRelation, add_row, rows_in
from stream_engine.state.sorted_list import SortedList
from streamsql.data.delta import Delta, add, difference
from streamsql.data.types import Row


class SessionEnds:
    """Ends, and of which sessions they are: the partition's key and a time of the session.

    Keys are never compared: they may hold NULLs. State: what was noted and is not due yet. Work:
    O(log ends) for an end that is new and for one that is due, O(1) for another session of it.

    Examples:
        >>> ends = SessionEnds()
        >>> for end, key, time in ((9, ("a",), 4), (7, (None,), 2), (7, ("b",), 2)):
        ...     ends.note(end, key, time)
        >>> list(ends.due(8)), list(ends.due(8))
        ([((None,), 2), (('b',), 2)], [])
    """

    __slots__ = ("_order", "_sessions")

    def __init__(self) -> None:
        self._order: list[int] = []
        self._sessions: dict[int, list[tuple[Row, int]]] = {}

    def note(self, end: int, key: Row, time: int) -> None:
        """Keep an end."""
        sessions = self._sessions.get(end)
        if sessions is None:
            self._sessions[end] = [(key, time)]
            heappush(self._order, end)
        else:
            sessions.append((key, time))

    def due(self, before: int) -> Iterator[tuple[Row, int]]:
        """Take out what ends by a watermark, in order of the ends; more may be noted meanwhile."""
        while self._order and self._order[0] <= before:
            yield from self._sessions.pop(heappop(self._order))


Rows = dict[int, Bucket]
"""The rows of a partition by time."""

Bounds = tuple[int, int]
"""Start and end of a session."""


def sessions_of(times: Iterable[int], gap: int) -> dict[int, Bounds]:
    """Return the bounds of the session of each time, in order of the times.

    Examples:
        >>> sessions_of([8, 1, 4], 4)
        {1: (1, 8), 4: (1, 8), 8: (8, 12)}
    """
    found: dict[int, Bounds] = {}
    session: list[int] = []
    for time in sorted(times):
        if session and time - session[-1] >= gap:
            found.update(dict.fromkeys(session, (session[0], session[-1] + gap)))
            session = []
        session.append(time)
    if session:
        found.update(dict.fromkeys(session, (session[0], session[-1] + gap)))
    return found


def change_few(
    rows: Rows, changes: list[tuple[Row, int]], position: int, gap: int, result: Delta
) -> None:
    """Take changed rows into a partition.

    Times that are there before or after are looked at in runs that no gap interrupts: what changes
    in one run shows in no other. Work: O(times log times) to put them in order, the rest in the
    length of the runs with a changed time.
    """
    by_time: dict[Any, Delta] = {}
    for row, weight in changes:
        time: Any = row[position]
        if time in by_time:
            by_time[time][row] = weight
        else:
            by_time[time] = {row: weight}
    came: set[int] = set()
    ordered = list(rows)
    for time, changed in by_time.items():
        if time not in rows:
            came.add(time)
            ordered.append(time)
        for row, weight in changed.items():
            add_row(rows, time, row, weight)
    ordered.sort()
    last = len(ordered) - 1
    while by_time:
        time = next(iter(by_time))
        low = high = bisect_left(ordered, time)
        while low and ordered[low] - ordered[low - 1] < gap:
            low -= 1
        while high < last and ordered[high + 1] - ordered[high] < gap:
            high += 1
        if low == high:
            bounds = (time, time + gap)
            for row, weight in by_time.pop(time).items():
                result[row + bounds] = weight
        else:
            _show_run(ordered[low : high + 1], rows, by_time, came, gap, result)


def _show_run(  # noqa: PLR0913, PLR0917  (a part of `change_few`)
    run: list[int],
    rows: Rows,
    by_time: dict[Any, Delta],
    came: set[int],
    gap: int,
    result: Delta,
) -> None:
    """Show what has changed of the times of a run, and take its changes out of `by_time`."""
    before = sessions_of([time for time in run if time not in came], gap)
    now = sessions_of([time for time in run if time in rows], gap)
    for time in run:
        old, new = before.get(time), now.get(time)
        changed = by_time.pop(time, None)
        if old == new:  # touched, but as before: only its own changes show
            if changed is not None and new is not None:
                for row, weight in changed.items():
                    result[row + new] = weight
            continue
        kept = rows_in(rows.get(time))
        if new is not None:
            for row, weight in kept:
                result[row + new] = weight
        if old is not None:
            if changed is not None:
                kept = difference(dict(kept), changed).items()
            for row, weight in kept:
                result[row + old] = -weight


_Bounds = tuple[int, int]
"""First and last time of a session."""


class ManySessions:
    """The times of a partition, their rows, and the sessions they form.

    Attributes:
        lasts: Last time of a session by its first.
    """

    __slots__ = ("_gap", "lasts", "rows", "starts", "times")

    def __init__(self, rows: Rows, time: int, gap: int) -> None:
        """Take over a partition that was kept by its rows alone."""
        self._gap = gap
        self.times: SortedList[int] = SortedList()
        self.rows = IndexedRelation((time,))
        self.rows.buckets = rows
        self.starts: SortedList[int] = SortedList()
        self.lasts: dict[int, int] = {}
        for known, (start, end) in sessions_of(rows, gap).items():
            self.times.add(known)
            if known == start:
                self.starts.add(start)
                self.lasts[start] = end - gap

    def change(self, changes: Iterable[tuple[Row, int]], position: int, result: Delta) -> None:
        """Ingest changed rows."""
        by_time: dict[int, Delta] = {}
        for row, weight in changes:
            time: Any = row[position]
            by_time.setdefault(time, {})[row] = weight
        change = _Change(self, self._gap)
        put, buckets = self.rows.add, self.rows.buckets
        for time, changed in by_time.items():
            known = time in buckets
            for row, weight in changed.items():
                put(time, row, weight)
            if not known:
                change.appear(time)
            elif time not in buckets:
                change.vanish(time)
        for row, weight in change.shown(by_time):
            add(result, row, weight)

    def oldest(self) -> int:
        """Return where the first session starts."""
        return self.starts.first()

    def end_of(self, time: int) -> int:
        """Return the end of the session that holds a time."""
        return self.session_of(time)[1] + self._gap

    def drop(self, time: int) -> None:
        """Discard the session that holds a time."""
        start, last = self.session_of(time)
        for gone in list(self.times.between(start, last)):
            self.times.discard(gone)
            del self.rows.buckets[gone]
        self.forget(start)

    def session_of(self, time: int) -> _Bounds:
        """Return the bounds of the session that holds one of the times."""
        start = self.starts.below(time + 1)
        if start is None:
            raise AssertionError(f"no session holds {time}")
        return (start, self.lasts[start])

    def rename(self, start: int, new: int) -> None:
        """Let a session begin at another time."""
        self.starts.discard(start)
        self.starts.add(new)
        self.lasts[new] = self.lasts.pop(start)

    def forget(self, start: int) -> None:
        """Drop a session."""
        self.starts.discard(start)
        del self.lasts[start]


class _Change:
    """One change of a partition: first the times that came and went, then what rows show.

    Attributes:
        before: Bounds at the beginning, by time, of all that may have changed.
        touched: First times of the sessions whose times are all in `before` (or are new), so
            that a session that changes often in one batch is recorded once.
    """

    __slots__ = ("before", "gap", "partition", "touched")

    def __init__(self, partition: ManySessions, gap: int) -> None:
        self.partition = partition
        self.gap = gap
        self.before: dict[int, _Bounds] = {}
        self.touched: set[int] = set()

    def touch(self, bounds: _Bounds) -> None:
        start, last = bounds
        if start in self.touched:
            return
        self.touched.add(start)
        record = self.before.setdefault
        for time in self.partition.times.between(start, last):
            record(time, bounds)

    def appear(self, time: int) -> None:
        partition, gap = self.partition, self.gap
        below, above = partition.times.below(time), partition.times.above(time)
        left = below is not None and time - below < gap
        right = above is not None and above - time < gap
        if below is not None and left:
            bounds = partition.session_of(below)
            if time < bounds[1]:
                partition.times.add(time)  # inside: no bounds change
                return
            self.touch(bounds)
            partition.lasts[bounds[0]] = time
            if above is not None and right:
                following = partition.session_of(above)
                self.touch(following)
                partition.lasts[bounds[0]] = following[1]
                partition.forget(following[0])
        elif above is not None and right:
            bounds = partition.session_of(above)
            self.touch(bounds)
            partition.rename(bounds[0], time)
            self.touched.add(time)
        else:
            partition.starts.add(time)
            partition.lasts[time] = time
            self.touched.add(time)
        partition.times.add(time)

    def vanish(self, time: int) -> None:
        partition = self.partition
        start, last = bounds = partition.session_of(time)
        self.before.setdefault(time, bounds)
        below, above = partition.times.below(time), partition.times.above(time)
        if start == last:
            partition.forget(start)
            self.touched.discard(start)
        elif time == start and above is not None:
            self.touch(bounds)
            partition.rename(start, above)
            self.touched.add(above)
        elif time == last and below is not None:
            self.touch(bounds)
            partition.lasts[start] = below
        elif below is not None and above is not None and above - below >= self.gap:
            self.touch(bounds)
            partition.lasts[start] = below
            partition.starts.add(above)
            partition.lasts[above] = last
            self.touched.add(above)
        partition.times.discard(time)

    def shown(self, changes: dict[int, Delta]) -> Iterator[tuple[Row, int]]:
        """Yield what changes in the output, given what changed of the rows by time."""
        rows, gap, nothing = self.partition.rows.buckets, self.gap, Delta()
        for time, (start, last) in self.before.items():
            now = self.partition.session_of(time) if time in rows else None
            if now == (start, last):
                continue  # touched, but as before: only its own changes show, below
            changed = changes.pop(time, nothing)
            old = dict(rows_in(rows.get(time)))
            for row, weight in changed.items():
                add(old, row, -weight)
            for row, weight in old.items():
                yield (*row, start, last + gap), -weight
            if now is not None:
                for row, weight in rows_in(rows[time]):
                    yield (*row, now[0], now[1] + gap), weight
        for time, changed in changes.items():
            if time in rows:
                start, last = self.partition.session_of(time)
                for row, weight in changed.items():
                    yield (*row, start, last + gap), weight
