"""Rows with proofs, indexes over them that generated loops may bind, and the best rows per group.

A row's *rank* says when it was derived: the rows that its proof uses have lower ranks, so that
proofs are well founded. Who uses a row in a proof is known, so that a death costs what it touches.

A group that has live rows is one flat list, for there may be a million groups: the best value of
every aggregate (None when all values are NULL), then the entries that are best for some aggregate.
Dead ones may be among them until the group is refreshed.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from stream_engine.recursion.program.item_tables import values_at
from stream_engine.recursion.program.rules import Rule
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.types import DataType, Row

DEAD = 1 << 62
"""The rank of a row that is not there: above every other."""

LEAF_RANK = 0
"""The rank of leaf rows: below every derived row."""


class Entry:
    """A row that takes part in joins.

    Attributes:
        rank: When it was derived, or DEAD; minus that for a superseded row, which is in no table
            but still holds up the proofs that use it.
        proof: One derivation: the entries of all atoms of a rule; () for leaf rows.
        users: Live entries whose proof contains this one: a set, or the only one, or None; most
            rows have few users, and a set is large.
    """

    __slots__ = ("proof", "rank", "row", "users")

    def __init__(self, row: Row, rank: int, proof: tuple["Entry", ...]) -> None:
        self.row = row
        self.rank = rank
        self.proof = proof
        self.users: set[Entry] | Entry | None = None

    def attach(self, proof: tuple["Entry", ...]) -> None:
        """Rest on a derivation."""
        self.proof = proof
        for part in proof:
            users = part.users
            if users is None:
                part.users = self
            elif isinstance(users, set):
                users.add(self)
            elif users is not self:
                part.users = {users, self}

    def take_users(self) -> Iterable["Entry"]:
        """Return the entries whose proof contains this one, and discard them."""
        users, self.users = self.users, None
        if users is None:
            return ()
        return users if isinstance(users, set) else (users,)


GHOST = Entry((), DEAD, ())
"""Stands for a row that is not found."""

Part = dict[Row, Entry]
Bucket = dict[Entry, None]
Index = dict[Hashable, Bucket]
KeyOf = Callable[[Row], Any]


class EntryTable:
    """A set of entries, parted by some columns, with hash indexes over others.

    The rows that share the values of the *primary* columns lie in one dictionary: it is an index
    without memory of its own, and looking up many rows of one part stays within the caches.
    Dictionaries that generated loops bind stay the same objects for ever. Keys are bare values for
    one column, else tuples.

    State: the entries, and one bucket per key and index. Work per change: one bucket per index.

    Args:
        indexes: Sets of columns to look up by; the first is the primary one.

    Attributes:
        primary: Columns by which the rows are parted; () when they are in one part.
    """

    def __init__(self, width: int, indexes: Sequence[tuple[int, ...]]) -> None:
        self.width = width
        self.primary: tuple[int, ...] = indexes[0] if indexes else ()
        self.parts: dict[Hashable, Part] = {}
        self.part_of = values_at(self.primary)
        self._indexes: dict[tuple[int, ...], tuple[KeyOf, Index]] = {
            columns: (values_at(columns), {}) for columns in indexes[1:]
        }
        self.clear()

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def __iter__(self) -> Iterator[Entry]:
        for part in self.parts.values():
            yield from part.values()

    def index(self, columns: tuple[int, ...]) -> Index:
        """Return the index over columns that are not the primary ones."""
        return self._indexes[columns][1]

    def get(self, row: Row) -> Entry | None:
        """Return the entry of a row, if it is there."""
        part = self.parts.get(self.part_of(row))
        return None if part is None else part.get(row)

    def rows(self) -> Part:
        """Return a copy: all entries by row."""
        found: Part = {}
        for part in self.parts.values():
            found.update(part)
        return found

    def add(self, entry: Entry) -> None:
        """Add an entry whose row is not there."""
        row = entry.row
        key = self.part_of(row)
        part = self.parts.get(key)
        if part is None:
            self.parts[key] = {row: entry}
        else:
            part[row] = entry
        for value_of, index in self._indexes.values():
            key = value_of(row)
            bucket = index.get(key)
            if bucket is None:
                index[key] = {entry: None}
            else:
                bucket[entry] = None

    def remove(self, entry: Entry) -> None:
        """Remove an entry that is there."""
        row = entry.row
        key = self.part_of(row)
        part = self.parts[key]
        del part[row]
        if not part and self.primary:
            del self.parts[key]
        for value_of, index in self._indexes.values():
            key = value_of(row)
            bucket = index[key]
            del bucket[entry]
            if not bucket:
                del index[key]

    def clear(self) -> None:
        """Drop everything; proofs and users go too, so that no cycles of objects are left."""
        release(self)
        if self.primary:
            self.parts.clear()
        else:
            self.parts.setdefault((), {}).clear()
        for _, index in self._indexes.values():
            index.clear()


def release(entries: Iterable[Entry]) -> None:
    """Cut entries off from each other."""
    for entry in entries:
        entry.proof = ()
        entry.users = None


Group = list[Any]
Groups = dict[object, Group]
Candidate = tuple[Row, tuple[Entry, ...]]
"""A derived row and its proof."""


class Selector:
    """Compares rows of a group by the aggregates of a selection.

    Attributes:
        width: Number of aggregates: the entries of a group begin there.
    """

    def __init__(self, selection: AggregateSelection) -> None:
        self.group_of = values_at(selection.group)
        self.width = len(selection.bests)
        self._bests = tuple((best.value, best.minimum) for best in selection.bests)

    def new_group(self, row: Row) -> Group:
        """Return the group of a first row, still without its entry."""
        return [row[at] for at, _ in self._bests]

    def claim(self, group: Group, row: Row) -> Sequence[Entry] | None:
        """Let a row compete in its group.

        Returns:
            None when it is not best; else the entries that it supersedes, no longer in the group.
        """
        if not self._improve(group, row):
            return () if self._is_best(group, row) else None
        entries = group[self.width :]
        group[self.width :] = [entry for entry in entries if self._is_best(group, entry.row)]
        return [entry for entry in entries if not self._is_best(group, entry.row)]

    def best_of(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the candidates that are best among these."""
        if len(candidates) < 2:
            return candidates
        front = self._front([row for row, _ in candidates])
        return [candidate for candidate in candidates if self._is_best(front, candidate[0])]

    def refresh(self, group: Group) -> bool:
        """Discard a group's dead rows; return whether it has live ones."""
        entries = [entry for entry in group[self.width :] if entry.rank != DEAD]
        if entries:
            group[:] = self._front([entry.row for entry in entries]) + entries
        return bool(entries)

    def _front(self, rows: list[Row]) -> Group:
        front = self.new_group(rows[0])
        for row in rows:
            self._improve(front, row)
        return front

    def _is_best(self, group: Group, row: Row) -> bool:
        for number, (at, _) in enumerate(self._bests):
            if row[at] == group[number] and row[at] is not None:
                return True
        return False

    def _improve(self, group: Group, row: Row) -> bool:
        """Take over the row's values where they are better; return whether one was."""
        improved = False
        for number, (at, minimum) in enumerate(self._bests):
            value: Any = row[at]
            best = group[number]
            if value is not None and (best is None or (value < best if minimum else value > best)):
                group[number] = value
                improved = True
        return improved


def priority_of(rules: Sequence[Rule], selection: AggregateSelection) -> Callable[[Row], Any]:
    """Return the key by which candidates wait: best values of the first aggregate first.

    Values that are not numbers have no order that can be turned round: these wait in their order of
    arrival.
    """
    best = selection.bests[0]
    at, sign = best.value, 1 if best.minimum else -1
    if any(rule.head[at].dtype in (DataType.TEXT, DataType.NULL) for rule in rules):
        return lambda _row: 0

    def priority(row: Row) -> Any:
        value: Any = row[at]
        return math.inf if value is None else sign * value

    return priority
