"""Windows by count over one source that are kept together: `[ROWS 200]` is a part of `[ROWS 1000]`.

No row of such a window is looked up: it only emits changes. So the first window that ingests a
change of the source lets the store compute the changes of every size at once, and the others take
theirs from the log.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from stream_engine.operators.windows.rows_window import RowsWindow, WindowEntry
from stream_engine.sharing.versions import ChangeLog, LoggedChange
from stream_engine.state.columns import picker
from stream_engine.state.row_order import comparable
from stream_engine.state.sorted_list import SortedList
from stream_engine.state.source_relation import TimedDelta, TimedRow
from streamsql.data.delta import Delta, accumulate, add
from streamsql.data.types import Row

_ALL = -1
"""Stands, among the sizes, for all rows of the source."""

_Change = dict[WindowEntry, int]
_Contents = Mapping[Row, tuple[list[WindowEntry], list[WindowEntry]]]


class _Entry(LoggedChange):
    """A change of the source, and the changes of the windows by size."""

    __slots__ = ("_outputs", "changes")

    def __init__(self, delta: TimedDelta, changes: dict[int, _Change]) -> None:
        super().__init__(delta)
        self.changes = changes
        self._outputs: dict[int, Delta] = {}

    def output(self, size: int) -> Delta:
        """Return the change of the windows of a size; all of them get the same object."""
        known = self._outputs.get(size)
        if known is None:
            known = self._outputs[size] = {}
            for (_ts, _order, row), weight in self.changes[size].items():
                add(known, row, weight)
        return known


class RowsStore(ChangeLog[_Entry, "RowsStub"]):
    """The last rows of a source, per partition, as many as the largest window has.

    As `RowsWindow`: of a log only the rows inside some window are kept (`bounded`), of other
    sources all, because rows may come back. A log from which rows are withdrawn cannot be followed:
    how far a window shrinks then depends on its size. Its windows go on alone.

    State: the rows of the largest window (all rows, if not bounded), and changes that not all
    windows have taken. Work: O(log rows) a changed copy plus O(rows of the largest window / 1,000)
    for each size; O(1) for each other window of the same size.
    """

    def __init__(self, number: int, partition: tuple[int, ...], *, bounded: bool) -> None:
        super().__init__(number)
        self.bounded = bounded
        self.partition = partition
        self._partition_of = picker(partition)
        self._sizes: Counter[int] = Counter()
        self._partitions: dict[Row, SortedList[WindowEntry]] = {}

    def rows(self) -> int:
        """Return the number of rows, with those that left but are still inside some window."""
        gone = {
            entry
            for logged in self._log
            for change in logged.changes.values()
            for entry, weight in change.items()
            if weight < 0
        }
        kept = sum(map(len, self._partitions.values()))
        return kept + sum(not self._has(entry) for entry in gone)

    def _has(self, entry: WindowEntry) -> bool:
        rows = self._partitions.get(self._partition_of(entry[2]))
        return rows is not None and any(True for _ in rows.between(entry, entry))

    # --- changes ----------------------------------------------------------------------------------

    def follows(self, delta: TimedDelta) -> bool:
        """Whether the store can make a change of the source."""
        return not self.bounded or min(delta.values(), default=1) > 0

    def lead(self, delta: TimedDelta) -> _Entry:
        """Make a change that no window has taken yet, for the caller."""
        sizes = list(self._sizes)
        changes: dict[int, _Change] = {size: {} for size in sizes}
        if not self.bounded:
            changes[_ALL] = {}
        partitions, partition_of = self._partitions, self._partition_of
        for (ts, row), weight in delta.items():
            key = partition_of(row)
            rows = partitions.get(key)
            if rows is None:
                rows = partitions[key] = SortedList()
            entry: WindowEntry = (ts, comparable(row), row)
            for _copy in range(weight):
                self._insert(rows, entry, changes)
            for _copy in range(-weight):
                _remove(rows, entry, changes)
            if not len(rows):
                del partitions[key]
        logged = _Entry(delta, changes)
        self.append(logged)
        return logged

    def _insert(
        self, rows: SortedList[WindowEntry], entry: WindowEntry, changes: dict[int, _Change]
    ) -> None:
        count, widest = len(rows), 0
        for size, change in changes.items():
            if size == _ALL or count < size:
                _count(change, entry, 1)
            else:
                first = rows.from_end(size - 1)
                if first < entry:
                    _count(change, first, -1)
                    _count(change, entry, 1)
            widest = max(widest, size)
        rows.add(entry)
        if self.bounded and count >= widest:
            rows.discard(rows.first())

    def admit(self, window: RowsWindow) -> "RowsStub | None":
        """Return a stub in place of a private window with the same rows, or None."""
        theirs = window.contents()
        if self.stubs and not self._agrees(window.size, theirs):
            return None
        if not self.stubs or (self.bounded and window.size > max(self._sizes)):
            self._partitions = {}
            for key, (inside, before) in theirs.items():
                rows = self._partitions[key] = SortedList()
                for entry in (*before, *inside):
                    rows.add(entry)
        return RowsStub(self, window.size)

    def _agrees(self, size: int, theirs: _Contents) -> bool:
        ours = self._partitions
        if ours.keys() != theirs.keys():
            return False
        widest = max(self._sizes)
        for key, (inside, before) in theirs.items():
            rows = ours[key]
            if not self.bounded:
                if len(rows) != len(inside) + len(before) or list(rows) != [*before, *inside]:
                    return False
            elif size <= widest:
                if rows.newest(size) != inside:
                    return False
            elif inside[-widest:] != list(rows):
                return False
        return True

    def contents(self, position: int, size: int) -> _Contents:
        """Return the rows of a window of a size after the changes up to a place in the log."""
        kept = size if self.bounded else _ALL
        found: dict[Row, list[WindowEntry]] = {}
        for key, rows in self._partitions.items():
            found[key] = rows.newest(size) if self.bounded else list(rows)
        for logged in reversed(self.since(position)):
            for entry, weight in logged.changes[kept].items():
                rows_of = found.setdefault(self._partition_of(entry[2]), [])
                for _copy in range(weight):
                    rows_of.remove(entry)
                rows_of.extend(entry for _copy in range(-weight))
        result: dict[Row, tuple[list[WindowEntry], list[WindowEntry]]] = {}
        for key, entries in found.items():
            if entries:
                entries.sort()
                cut = max(0, len(entries) - size)
                result[key] = (entries[cut:], entries[:cut])
        return result

    def rows_of(self, position: int, size: int) -> int:
        """Return the number of rows of `contents`."""
        if position != self.end:
            found = self.contents(position, size).values()
            return sum(len(inside) + len(before) for inside, before in found)
        lengths = [len(rows) for rows in self._partitions.values()]
        return sum(min(length, size) for length in lengths) if self.bounded else sum(lengths)

    def join(self, stub: "RowsStub") -> None:
        """Keep the rows of a window from now on."""
        self.stubs.append(stub)
        self._sizes[stub.size] += 1

    def remove(self, stub: "RowsStub") -> None:
        """Let a window go, and the rows that only it had."""
        super().remove(stub)
        self._sizes[stub.size] -= 1
        if not self._sizes[stub.size]:
            del self._sizes[stub.size]
        widest = max(self._sizes, default=0)
        if self.bounded and widest < stub.size:
            for rows in self._partitions.values():
                while len(rows) > widest:
                    rows.discard(rows.first())


class RowsStub:
    """A window by count whose rows are in a store; see `TimedOperator`."""

    def __init__(self, store: RowsStore, size: int) -> None:
        self.store = store
        self.size = size
        self.position = store.end
        self._alone: RowsWindow | None = None
        store.join(self)

    @property
    def wants_out(self) -> bool:
        """Whether it has gone on alone."""
        return self._alone is not None

    def advance(self, now: int) -> Delta:  # noqa: ARG002  (the protocol's signature)
        """Return nothing: rows leave only for newer ones."""
        return {}

    def apply_timed(self, delta: TimedDelta) -> Delta:
        """Ingest the change of the source; return the change of the window."""
        if self._alone is not None:
            return self._alone.apply_timed(delta)
        store = self.store
        if self.position == store.end:
            if store.follows(delta):
                result = store.lead(delta).output(self.size)
                self.position = store.end
                return result
        else:
            taken = self._taken(delta)
            if taken is not None:
                return taken
        return self.go_alone().apply_timed(delta)

    def fall_behind(self) -> None:
        """Keep private rows from now on."""
        self.go_alone()

    def go_alone(self) -> RowsWindow:
        """Keep private rows from now on; return the private window."""
        self._alone = window = self.as_private()
        self.store.remove(self)
        return window

    def _taken(self, delta: TimedDelta) -> Delta | None:
        """Return its part of the next changes of the log that together are the given one."""
        first, *others = self.store.since(self.position)
        if first.delta is delta or first.delta == delta:
            self.position += 1
            self.store.passed(first)
            return first.output(self.size)
        total, taken, result = dict(first.delta), [first], dict(first.output(self.size))
        for logged in others:
            for timed, weight in logged.delta.items():
                _count(total, timed, weight)
            accumulate(result, logged.output(self.size))
            taken.append(logged)
            if total == delta:
                self.position += len(taken)
                for each in taken:
                    self.store.passed(each)
                return result
        return None

    def next_wakeup(self) -> int | None:
        """Return None: the clock changes nothing."""
        return None

    def state_rows(self) -> int:
        """Return the number of rows that a private window would keep."""
        if self._alone is not None:
            return self._alone.state_rows()
        return self.store.rows_of(self.position, self.size)

    def as_private(self) -> RowsWindow:
        """Return a private window with the rows that this one sees."""
        if self._alone is not None:
            return self._alone
        store = self.store
        window = RowsWindow(self.size, store.partition, bounded=store.bounded)
        window.fill(store.contents(self.position, self.size))
        return window


T = TypeVar("T", WindowEntry, TimedRow)


def _count(change: dict[T, int], item: T, weight: int) -> None:
    new = change.get(item, 0) + weight
    if new:
        change[item] = new
    else:
        del change[item]


def _remove(rows: SortedList[WindowEntry], entry: WindowEntry, changes: dict[int, _Change]) -> None:
    count = len(rows)
    if not rows.discard(entry):
        return
    for size, change in changes.items():
        if size == _ALL or count <= size:
            _count(change, entry, -1)
            continue
        back = rows.from_end(size - 1)
        if not entry < back:
            _count(change, entry, -1)
            _count(change, back, 1)
