"""Windows by count: the last n rows, per partition, and those of them that are recent enough."""

from collections.abc import Mapping

from typing_extensions import override

from stream_engine.operators.rows.operator import TimedOperator
from stream_engine.state.columns import picker
from stream_engine.state.expiry_queue import ExpiryQueue
from stream_engine.state.row_order import Entry, comparable
from stream_engine.state.sorted_list import SortedList
from stream_engine.state.source_relation import TimedDelta
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row

WindowEntry = tuple[int, Entry, Row]
"""Event time, order of the row, row: what ROWS windows sort by."""

_BEGINNING, _NEVER = -(2**63), 2**63


class _Partition:
    """The last rows of a partition, and those before them that could come back.

    Attributes:
        due: When to look whether its oldest row inside is too old; that row may be younger by now,
            but never older.
    """

    __slots__ = ("before", "due", "inside")

    def __init__(self) -> None:
        self.inside: SortedList[WindowEntry] = SortedList()
        self.before: SortedList[WindowEntry] = SortedList()
        self.due = _NEVER


class RowsWindow(TimedOperator):
    """The last `size` rows by (event time, row), per partition; copies count one by one.

    Rows can leave the source (a key is overwritten, a ttl ends), and then the row before the window
    comes back, so all rows of the source are kept. A log never loses rows: there only the window
    itself is kept (`bounded`), and a withdrawal shrinks it until the next arrival.

    With `within` a row leaves that many microseconds after its event time as well. The oldest rows
    leave first, so none comes back for them, and what is too old is not kept at all.

    State: the source's rows (those young enough), or `size` per partition if bounded. Work: O(log
    rows) a changed copy and for each that leaves. By their age rows leave partition by partition:
    one that has no row that is too old is looked at once for a row that was pushed out.

        size    2
        input   {(1, a): 1, (2, b): 1}   {(3, c): 1}        {(3, c): -1}
        output  {a: 1, b: 1}             {a: -1, c: 1}      {c: -1, a: 1}
    """

    def __init__(
        self, size: int, partition: tuple[int, ...], *, bounded: bool, within: int | None = None
    ) -> None:
        self.size = size
        self._partition_of = picker(partition)
        self.bounded = bounded
        self._within = within
        self._oldest = _BEGINNING  # event times up to here are too old
        self._partitions: dict[Row, _Partition] = {}
        self._leaving: ExpiryQueue[Row] = ExpiryQueue()  # partitions, by when they are due

    @override
    def advance(self, now: int) -> Delta:
        result: Delta = {}
        if self._within is None:
            return result
        oldest = self._oldest = now - self._within
        for _time, keys in self._leaving.due(now):
            for key in keys:
                partition = self._partitions[key]
                inside = partition.inside
                while len(inside) and inside.first()[0] <= oldest:
                    add(result, inside.pop_first()[2], -1)
                if len(inside):
                    self._drop_old(partition)
                    partition.due = inside.first()[0] + self._within
                    self._leaving.add(partition.due, key, 1)
                else:
                    del self._partitions[key]  # what stood before was older still
        return result

    @override
    def apply_timed(self, delta: TimedDelta) -> Delta:
        partitions, partition_of, within = self._partitions, self._partition_of, self._within
        oldest = self._oldest
        result: Delta = {}
        for (ts, row), weight in delta.items():
            if ts <= oldest:
                continue  # it never came in, or has left already
            key = partition_of(row)
            partition = partitions.get(key)
            if partition is None:
                partition = partitions[key] = _Partition()
            entry: WindowEntry = (ts, comparable(row), row)
            for _copy in range(weight):
                self._insert(partition, entry, result)
            for _copy in range(-weight):
                self._remove(partition, entry, result)
            if not len(partition.inside):
                if partition.due != _NEVER:
                    self._leaving.add(partition.due, key, -1)
                del partitions[key]
            elif within is not None and partition.inside.first()[0] + within < partition.due:
                self._plan(key, partition, within)
        return result

    def _plan(self, key: Row, partition: _Partition, within: int) -> None:
        """Look at a partition when its oldest row inside is too old."""
        if partition.due != _NEVER:
            self._leaving.add(partition.due, key, -1)
        partition.due = partition.inside.first()[0] + within
        self._leaving.add(partition.due, key, 1)

    @property
    def is_timed(self) -> bool:
        """Whether rows leave by their age as well."""
        return self._within is not None

    def contents(self) -> dict[Row, tuple[list[WindowEntry], list[WindowEntry]]]:
        """Return the rows inside and those before them, oldest first, by partition."""
        return {
            key: (list(partition.inside), list(partition.before))
            for key, partition in self._partitions.items()
        }

    def fill(self, contents: Mapping[Row, tuple[list[WindowEntry], list[WindowEntry]]]) -> None:
        """Make it hold silently what another of its kind held; it must be new.

        Only for windows whose rows do not leave by their age.
        """
        for key, (inside, before) in contents.items():
            partition = self._partitions[key] = _Partition()
            for entry in inside:
                partition.inside.add(entry)
            for entry in before:
                partition.before.add(entry)

    @override
    def next_wakeup(self) -> int | None:
        partitions, within, leaving = self._partitions, self._within, self._leaving
        if within is None:
            return None
        while (time := leaving.next_time()) is not None:
            keys = list(leaving.next_items())
            for key in keys:
                if partitions[key].inside.first()[0] + within == time:
                    return time
            for key in keys:
                self._plan(key, partitions[key], within)
        return None

    @override
    def state_rows(self) -> int:
        return sum(len(p.inside) + len(p.before) for p in self._partitions.values())

    def _insert(self, partition: _Partition, entry: WindowEntry, result: Delta) -> None:
        inside = partition.inside
        if len(inside) < self.size:
            inside.add(entry)
            add(result, entry[2], 1)
            return
        pushed_out = entry
        if inside.first() < entry:
            pushed_out = inside.pop_first()
            inside.add(entry)
            add(result, pushed_out[2], -1)
            add(result, entry[2], 1)
        if not self.bounded:
            self._drop_old(partition)
            partition.before.add(pushed_out)

    def _remove(self, partition: _Partition, entry: WindowEntry, result: Delta) -> None:
        inside, before = partition.inside, partition.before
        if not inside.discard(entry):
            before.discard(entry)
            return
        add(result, entry[2], -1)
        self._drop_old(partition)
        if len(before):
            back = before.last()
            before.discard(back)
            inside.add(back)
            add(result, back[2], 1)

    def _drop_old(self, partition: _Partition) -> None:
        before, oldest = partition.before, self._oldest
        while len(before) and before.first()[0] <= oldest:
            before.pop_first()
