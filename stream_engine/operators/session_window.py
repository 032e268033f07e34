"""Session windows: rows of a partition that follow each other closely."""

from collections.abc import Iterator
from heapq import heappop, heappush

from stream_engine.state.columns import picker
from stream_engine.state.indexed_relation import IndexedRelation, rows_in
from stream_engine.state.sorted_list import SortedList
from streamsql.algebra.operators import SessionWindow
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row

_Bounds = tuple[int, int]
"""First and last time of a session."""


class _Partition:
    """The times of a partition, their rows, and the sessions they form.

    Attributes:
        times: Distinct times in order.
        rows: The rows by time.
        starts: First times of the sessions, in order.
        lasts: Last time of a session by its first.
    """

    __slots__ = ("lasts", "rows", "starts", "times")

    def __init__(self, time: int) -> None:
        self.times: SortedList[int] = SortedList()
        self.rows = IndexedRelation((time,))
        self.starts: SortedList[int] = SortedList()
        self.lasts: dict[int, int] = {}

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

    def __init__(self, partition: _Partition, gap: int) -> None:
        self.partition = partition
        self.gap = gap
        self.before: dict[int, _Bounds] = {}
        self.touched: set[int] = set()

    def touch(self, bounds: _Bounds) -> None:
        """Record the times of a session whose bounds are about to change."""
        start, last = bounds
        if start in self.touched:
            return
        self.touched.add(start)
        record = self.before.setdefault
        for time in self.partition.times.between(start, last):
            record(time, bounds)

    def appear(self, time: int) -> None:
        """Take in a time that no row had."""
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
        """Drop a time that no row has any more."""
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


class SessionWindowOperator:
    """Each row with the bounds of its session appended.

    A session is a longest run of times of a partition that are less than `gap` apart; it ends `gap`
    after its last time. A time that comes lengthens a session, merges two or begins one; a time
    that goes shortens a session, splits it or ends it. Rows show the bounds, so all rows of a
    session whose bounds change are retracted and given again; other sessions are not looked at.

    State: every row with a time, and the partition's times and sessions in order. Work: O(log
    times) a changed row, plus the rows of the sessions whose bounds change, once a batch. A row
    inside a session, or one more at its ends' times, changes no bounds.

        gap 5    the time is the first column
        input   {(1,): 1, (8,): 1}                  {(4,): 1}
        output  {(1, 1, 6): 1, (8, 8, 13): 1}       {(1, 1, 6): -1, (8, 8, 13): -1,
                                                     (1, 1, 13): 1, (4, 1, 13): 1, (8, 1, 13): 1}
    """

    def __init__(self, plan: SessionWindow) -> None:
        self._ends: list[tuple[int, Row, int]] | None = None
        self._time = plan.time
        self._gap = plan.gap
        self._partition_of = picker(plan.partition)
        self._partitions: dict[Row, _Partition] = {}

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, _port: int, delta: Delta) -> Delta:
        """Return the rows that came and went, and those whose session has other bounds."""
        result: Delta = {}
        for key, changes in self._by_partition(delta).items():
            if self._ends is not None:
                for time in changes:
                    heappush(self._ends, (time + self._gap, key, time))
            partition = self._partitions.get(key)
            if partition is None:
                partition = self._partitions[key] = _Partition(self._time)
            for row, weight in self._change(partition, changes):
                add(result, row, weight)
            if not partition.rows.buckets:
                del self._partitions[key]
        return result

    def state_rows(self) -> int:
        """Return the number of distinct rows."""
        return sum(len(partition.rows) for partition in self._partitions.values())

    def oldest(self) -> int | None:
        """Return where the oldest session that is remembered starts; O(partitions)."""
        return min(
            (partition.starts.first() for partition in self._partitions.values()), default=None
        )

    def keep_ends(self) -> None:
        """Keep the ends of sessions in order from the first row on: `forget` will be called."""
        self._ends = []

    def forget(self, before: int) -> None:
        """Drop the sessions that have ended by a watermark, without a word.

        No row that is still to come is old enough to touch them. O(log times) a time dropped.
        """
        ends = self._ends
        while ends and ends[0][0] <= before:
            _end, key, time = heappop(ends)
            partition = self._partitions.get(key)
            if partition is None or time not in partition.rows.buckets:
                continue
            start, last = partition.session_of(time)
            if last + self._gap > before:
                heappush(ends, (last + self._gap, key, time))
                continue
            for gone in list(partition.times.between(start, last)):
                partition.times.discard(gone)
                del partition.rows.buckets[gone]
            partition.forget(start)
            if not partition.rows.buckets:
                del self._partitions[key]

    def _by_partition(self, delta: Delta) -> dict[Row, dict[int, Delta]]:
        position, partition_of = self._time, self._partition_of
        changes: dict[Row, dict[int, Delta]] = {}
        for row, weight in delta.items():
            time = row[position]
            if isinstance(time, int):
                changes.setdefault(partition_of(row), {}).setdefault(time, {})[row] = weight
        return changes

    def _change(
        self, partition: _Partition, changes: dict[int, Delta]
    ) -> Iterator[tuple[Row, int]]:
        change = _Change(partition, self._gap)
        put, buckets = partition.rows.add, partition.rows.buckets
        for time, changed in changes.items():
            known = time in buckets
            for row, weight in changed.items():
                put(time, row, weight)
            if not known:
                change.appear(time)
            elif time not in buckets:
                change.vanish(time)
        return change.shown(changes)
