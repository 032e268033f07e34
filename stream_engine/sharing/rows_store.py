"""Windows by count over one source that are kept together: `[ROWS 200]` is a part of `[ROWS 1000]`.

Nobody looks a row of such a window up: all it gives are changes. So the first window that takes a
change of the source lets the store find out what it means for every size at once, and the others
take theirs from the log.
"""

from collections import Counter, deque
from collections.abc import Mapping
from typing import TypeVar

from stream_engine.operators.windows.rows_window import RowsWindow, WindowEntry
from stream_engine.state.columns import picker
from stream_engine.state.row_order import comparable
from stream_engine.state.sorted_list import SortedList
from stream_engine.state.source_relation import TimedDelta, TimedRow
from streamsql.data.delta import Delta, accumulate, add
from streamsql.data.types import Row

LONGEST_LOG = 256
"""Changes that the slowest window may be behind; further, it keeps its rows alone."""

_ALL = -1
"""Stands, among the sizes, for all rows of the source."""

_Change = dict[WindowEntry, int]
_Contents = Mapping[Row, tuple[list[WindowEntry], list[WindowEntry]]]


class _Entry:
    """A change in the log.

    Attributes:
        delta: Of the source.
        waiting: Windows that have not taken it.
        changes: What it means for each size.
    """

    __slots__ = ("_outputs", "changes", "delta", "waiting")

    def __init__(self, delta: TimedDelta, changes: dict[int, _Change]) -> None:
        self.delta = delta
        self.waiting = 0
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


class RowsStore:
    """The last rows of a source, per partition, as many as the largest window has.

    As `RowsWindow`: of a log only the rows inside some window are kept (`bounded`), of other
    sources all, because rows may come back. A log from which rows are withdrawn is more than the
    store can follow: how far a window shrinks then depends on its size. Its windows go on alone.

    State: the rows of the largest window (all rows, if not bounded), and changes that not all
    windows have taken. Work: O(log rows) a changed copy plus O(rows of the largest window / 1,000)
    for each size; O(1) for each other window of the same size.

    Attributes:
        number: Unique at the site.
        stubs: All windows.
        end: Changes so far.
    """

    def __init__(self, number: int, partition: tuple[int, ...], *, bounded: bool) -> None:
        self.number = number
        self.stubs: list[RowsStub] = []
        self.end = 0
        self.bounded = bounded
        self.partition = partition
        self._partition_of = picker(partition)
        self._sizes: Counter[int] = Counter()
        self._partitions: dict[Row, SortedList[WindowEntry]] = {}
        self._first = 0
        self._log: deque[_Entry] = deque()

    def rows(self) -> int:
        """Return the rows it holds, and those that left but are still inside for some window."""
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
        """Make a change that no window has taken yet; the caller's does so now."""
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
        self.end += 1
        logged = _Entry(delta, changes)
        logged.waiting = len(self.stubs) - 1
        if logged.waiting:
            self._log.append(logged)
            if len(self._log) > LONGEST_LOG:
                oldest = self._first
                for stub in [stub for stub in self.stubs if stub.position == oldest]:
                    stub.go_alone()
        else:
            self._first = self.end
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

    def since(self, position: int) -> list[_Entry]:
        """Return the changes from a place in the log on."""
        if position == self.end:
            return []
        return list(self._log)[position - self._first :]

    def passed(self, logged: _Entry) -> None:
        """Note that one more window has taken a change; drop what all have taken."""
        logged.waiting -= 1
        log = self._log
        while log and not log[0].waiting:
            log.popleft()
            self._first += 1

    # --- who is in --------------------------------------------------------------------------------

    def admit(self, window: RowsWindow) -> "RowsStub | None":
        """Return a stub in place of a window of one's own that holds the same, or None."""
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
        """Return what a window of a size holds after the changes up to a place in the log."""
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
        """Return how many rows `contents` has."""
        if position != self.end:
            found = self.contents(position, size).values()
            return sum(len(inside) + len(before) for inside, before in found)
        lengths = [len(rows) for rows in self._partitions.values()]
        return sum(min(length, size) for length in lengths) if self.bounded else sum(lengths)

    def join(self, stub: "RowsStub") -> None:
        """Keep what a window needs from now on."""
        self.stubs.append(stub)
        self._sizes[stub.size] += 1

    def remove(self, stub: "RowsStub") -> None:
        """Let a window go, and the rows that only it had."""
        for logged in self.since(stub.position):
            self.passed(logged)
        self.stubs.remove(stub)
        self._sizes[stub.size] -= 1
        if not self._sizes[stub.size]:
            del self._sizes[stub.size]
        widest = max(self._sizes, default=0)
        if self.bounded and widest < stub.size:
            for rows in self._partitions.values():
                while len(rows) > widest:
                    rows.discard(rows.first())


class RowsStub:
    """A window by count whose rows are in a store; see `TimedOperator`.

    Attributes:
        store: Where the rows are.
        size: Rows of the window.
        position: Changes of the store that it has taken.
    """

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
        """Take the change of the source; return the change of the window."""
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

    def go_alone(self) -> RowsWindow:
        """Keep its rows itself from now on."""
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
        """Return the rows it keeps, as if it kept them alone."""
        if self._alone is not None:
            return self._alone.state_rows()
        return self.store.rows_of(self.position, self.size)

    def as_private(self) -> RowsWindow:
        """Return a window of its own that holds what this one sees."""
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
