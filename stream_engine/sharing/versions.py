"""Stores with several readers: a newest state, and how far behind it each reader is.

After STREAM (Babu's thesis, section 2.3.1): stubs replace the synopses of operators, one store
holds the rows, and because operators run independently the store knows every stub's progress.

A store is one state (its *head*) and a log of the changes that not all stubs have made yet. The
stub that is ahead changes the head; the others, when their operator comes to the same change, only
move on in the log, which takes the same time whatever the size of a change that is the same object,
and a comparison at the speed of C for one that is equal. What a stub sees is the head without the
changes after its place in the log, and without its *lag*: a Z-set of all other differences, because
changes came to it in other pieces, or because it joined with other contents.

    view of a stub = head - changes logged after its place - its lag

At least one stub has neither: its view is the head. So between changes the store holds no row that
no stub sees.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from streamsql.data.types import Row

LONGEST_LOG = 256
"""Changes that the slowest stub may be behind; then it falls behind the log."""

FIRST_LIMIT = 1_024
"""Rows of lag from which on a stub checks whether to leave its store."""

Change = dict[Any, int]
"""Rows, with times or without, and their weights; never altered once a stub has it."""

Item = tuple[Any, Row, int]
"""A part of a change: key, row, weight."""


@runtime_checkable
class SharesRows(Protocol):
    """A window whose rows a store keeps."""

    def as_private(self) -> object:
        """Return a private window with the rows that this one sees."""


def as_private(operator: object) -> object:
    """Return an operator with private rows: a copy of a window that shares them, else itself."""
    return operator.as_private() if isinstance(operator, SharesRows) else operator


class Changes:
    """A Z-set of rows by key.

    Attributes:
        by_key: Rows with their weights, none zero, by key.
        rows: How many there are.
    """

    __slots__ = ("by_key", "rows")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.by_key: dict[Any, dict[Row, int]] = {}
        self.rows = 0
        self.add(items)

    def add(self, items: Iterable[Item], sign: int = 1) -> None:
        """Add rows, or take them away (sign -1)."""
        by_key = self.by_key
        for key, row, weight in items:
            rows = by_key.get(key)
            if rows is None:
                by_key[key] = {row: sign * weight}
                self.rows += 1
                continue
            old = rows.get(row, 0)
            new = old + sign * weight
            if new:
                rows[row] = new
                self.rows += not old
                continue
            del rows[row]
            self.rows -= 1
            if not rows:
                del by_key[key]

    def items(self) -> Iterator[Item]:
        """Yield every row with its key and weight."""
        for key, rows in self.by_key.items():
            for row, weight in rows.items():
                yield key, row, weight

    def drop(self, key: Any) -> None:
        """Discard the rows of a key."""
        self.rows -= len(self.by_key.pop(key, ()))


class LoggedChange:
    """A change in a log: as the first stub made it, and how many stubs have not made it yet."""

    __slots__ = ("delta", "waiting")

    def __init__(self, delta: Change) -> None:
        self.delta = delta
        self.waiting = 0


class Reader(Protocol):
    """A stub of a store; `position` is its place in the log."""

    position: int

    def fall_behind(self) -> None:
        """Make no more use of the log's oldest change: the log is full."""


L = TypeVar("L", bound=LoggedChange)
R = TypeVar("R", bound=Reader)


class ChangeLog(Generic[L, R]):
    """The changes of a store that not all stubs have made yet.

    Attributes:
        number: Unique at the site.
        stubs: All readers of the store.
        end: Changes made so far.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.stubs: list[R] = []
        self.end = 0
        self._first = 0
        self._log: deque[L] = deque()

    def append(self, entry: L) -> None:
        """Log a change that one stub makes now and the others have not made."""
        self.end += 1
        entry.waiting = len(self.stubs) - 1
        if not entry.waiting:
            self._first = self.end
            return
        self._log.append(entry)
        if len(self._log) > LONGEST_LOG:
            oldest = self._first
            for stub in [stub for stub in self.stubs if stub.position == oldest]:
                stub.fall_behind()

    def entry(self, position: int) -> L:
        """Return the change at a place in the log."""
        return self._log[position - self._first]

    def since(self, position: int) -> list[L]:
        """Return the changes from a place in the log on."""
        return [] if position == self.end else list(self._log)[position - self._first :]

    def passed(self, entry: L) -> None:
        """Note that one more stub has made a change; drop what all have made."""
        entry.waiting -= 1
        log = self._log
        while log and not log[0].waiting:
            log.popleft()
            self._first += 1

    def remove(self, stub: R) -> None:
        """Let a stub go; the others see what they saw."""
        for entry in self.since(stub.position):
            self.passed(entry)
        self.stubs.remove(stub)


class Entry(LoggedChange):
    """A change of a `SharedStore`, taken apart once for all stubs."""

    __slots__ = ("_changes",)

    def __init__(self, delta: Change) -> None:
        super().__init__(delta)
        self._changes: Changes | None = None

    def changes(self, store: "SharedStore") -> Changes:
        """Return the change by key."""
        if self._changes is None:
            self._changes = Changes(store.items(self.delta))
        return self._changes


class SharedStore(ChangeLog[Entry, "Stub"], ABC):
    """A head and a log.

    State: the head's rows, the changes that not all stubs have made, and the stubs' lags. Work:
    that of one private synopsis for the first stub that makes a change, O(1) for each other one as
    long as changes come in the same pieces; O(changed rows) where they do not.
    """

    @abstractmethod
    def items(self, delta: Change) -> Iterator[Item]:
        """Take a change apart; what the store never keeps is left out."""

    @abstractmethod
    def change(self, delta: Change) -> None:
        """Change the head."""

    @abstractmethod
    def subtract(self, lag: Changes) -> None:
        """Take rows away from the head."""

    @abstractmethod
    def head_rows(self) -> int:
        """Return the rows of the head."""

    def rows(self) -> int:
        """Return the rows the stubs see: those of the head, and those that only some still have."""
        beside: set[tuple[Any, Row]] = set()
        for stub in self.stubs:
            parts = stub.behind()
            if len(parts) > 1:  # what was inserted and deleted since cancels out
                whole = Changes()
                for part in parts:
                    whole.add(part.items())
                parts = [whole]
            beside.update(
                (key, row)
                for part in parts
                for key, row, weight in part.items()
                if weight < 0 and stub.reaches(key)
            )
        return self.head_rows() + sum(not self.has(key, row) for key, row in beside)

    @abstractmethod
    def has(self, key: Any, row: Row) -> bool:
        """Whether the head has a row."""

    def lead(self, delta: Change) -> None:
        """Make a change that no other stub has made."""
        self.change(delta)
        self.append(Entry(delta))

    def remove(self, stub: "Stub") -> None:
        """Let a stub go; the head becomes a view of another one if it was this one's alone."""
        super().remove(stub)
        if self.stubs and not any(other.sees_head for other in self.stubs):
            self._move_head()

    def _move_head(self) -> None:
        """Make the view of the stub that is least behind the head."""
        for stub in self.stubs:
            stub.fall_behind()
        nearest = min(self.stubs, key=lambda stub: 0 if stub.lag is None else stub.lag.rows)
        moved = nearest.lag
        if moved is None:
            return
        self.subtract(moved)
        for stub in self.stubs:
            if stub is not nearest:
                stub.shift(moved.items(), -1)
        nearest.lag = None


class Stub:
    """Replaces an operator's private synopsis.

    Attributes:
        position: Changes of the store's head that the view has.
        lag: What else the head has and the view has not; None if nothing.
    """

    def __init__(self, store: SharedStore, lag: Changes | None = None) -> None:
        self.store = store
        self.position = store.end
        self.lag = lag if lag is not None and lag.rows else None
        self._limit = FIRST_LIMIT
        store.stubs.append(self)

    @property
    def sees_head(self) -> bool:
        """Whether its view is the head."""
        return self.lag is None and self.position == self.store.end

    @property
    def wants_out(self) -> bool:
        """Whether so much is different that a private synopsis is better."""
        lag = self.lag
        if lag is None or lag.rows <= self._limit:
            return False
        if 2 * lag.rows > self.store.head_rows():
            return True
        self._limit = 2 * lag.rows
        return False

    def make(self, delta: Change) -> None:
        """Make a change of the view: the head's if this stub is ahead, else a step in the log."""
        store = self.store
        if self.position == store.end:
            if self.lag is None:
                store.lead(delta)
                self.position = store.end
                return
        else:
            entry = store.entry(self.position)
            if entry.delta is delta or entry.delta == delta:
                self.position += 1
                store.passed(entry)
                return
            self.fall_behind()
        self.shift(store.items(delta), -1)

    def fall_behind(self) -> None:
        """Count the changes that it has not made as a part of its lag."""
        for entry in self.store.since(self.position):
            self.shift(entry.changes(self.store).items(), 1)
            self.store.passed(entry)
        self.position = self.store.end

    def shift(self, items: Iterable[Item], sign: int) -> None:
        """Add to its lag."""
        if self.lag is None:
            self.lag = Changes()
        self.lag.add(items, sign)
        if not self.lag.rows:
            self.lag = None

    def reaches(self, key: Any) -> bool:  # noqa: ARG002  (for stubs that see a part of the keys)
        """Whether rows of a key may be in the view."""
        return True

    def behind(self) -> list[Changes]:
        """Return all that the head has and the view has not, in parts."""
        store = self.store
        parts = [entry.changes(store) for entry in store.since(self.position)]
        return parts if self.lag is None else [*parts, self.lag]
