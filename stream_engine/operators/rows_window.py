"""Windows by count: the last n rows, per partition."""

from stream_engine.state.columns import picker
from stream_engine.state.sorted_list import SortedList
from stream_engine.state.source_relation import TimedDelta
from streamsql.data.delta import Delta, add, sort_key
from streamsql.data.types import Row

_Entry = tuple[int, tuple[tuple[int, object], ...], Row]
"""Event time, order of the row, row: what ROWS windows sort by."""


class _Partition:
    """The last rows of a partition, and those before them that could come back."""

    __slots__ = ("before", "inside")

    def __init__(self) -> None:
        self.inside: SortedList[_Entry] = SortedList()
        self.before: SortedList[_Entry] = SortedList()


class RowsWindow:
    """The last `size` rows by (event time, row), per partition; copies count one by one.

    Rows can leave the source (a key is overwritten, a ttl ends), and then the row before the window
    comes back, so all rows of the source are kept. A log never loses rows: there only the window
    itself is kept (`bounded`), and a withdrawal shrinks it until the next arrival.

    State: the source's rows, or `size` per partition if bounded. Work: O(log rows) a changed copy.

        size    2
        input   {(1, a): 1, (2, b): 1}   {(3, c): 1}        {(3, c): -1}
        output  {a: 1, b: 1}             {a: -1, c: 1}      {c: -1, a: 1}
    """

    def __init__(self, size: int, partition: tuple[int, ...], *, bounded: bool) -> None:
        self._size = size
        self._partition_of = picker(partition)
        self._bounded = bounded
        self._partitions: dict[Row, _Partition] = {}

    def advance(self, now: int) -> Delta:  # noqa: ARG002  (the protocol's signature)
        """Return nothing: time does not move a window by count."""
        return {}

    def apply_timed(self, delta: TimedDelta) -> Delta:
        """Take the change of the source."""
        partitions, partition_of = self._partitions, self._partition_of
        result: Delta = {}
        for (ts, row), weight in delta.items():
            key = partition_of(row)
            partition = partitions.get(key)
            if partition is None:
                partition = partitions[key] = _Partition()
            entry: _Entry = (ts, sort_key(row), row)
            for _copy in range(weight):
                self._insert(partition, entry, result)
            for _copy in range(-weight):
                self._remove(partition, entry, result)
            if not len(partition.inside):
                del partitions[key]
        return result

    def next_wakeup(self) -> int | None:
        """Return None."""
        return None

    def state_rows(self) -> int:
        """Return the rows kept."""
        return sum(len(p.inside) + len(p.before) for p in self._partitions.values())

    def _insert(self, partition: _Partition, entry: _Entry, result: Delta) -> None:
        inside = partition.inside
        if len(inside) < self._size:
            inside.add(entry)
            add(result, entry[2], 1)
            return
        first = inside.first()
        pushed_out = entry
        if first < entry:
            inside.discard(first)
            inside.add(entry)
            add(result, first[2], -1)
            add(result, entry[2], 1)
            pushed_out = first
        if not self._bounded:
            partition.before.add(pushed_out)

    def _remove(self, partition: _Partition, entry: _Entry, result: Delta) -> None:
        inside, before = partition.inside, partition.before
        if not inside.discard(entry):
            before.discard(entry)
            return
        add(result, entry[2], -1)
        if len(before):
            back = before.last()
            before.discard(back)
            inside.add(back)
            add(result, back[2], 1)
