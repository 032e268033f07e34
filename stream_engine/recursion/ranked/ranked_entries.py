"""Rows with proofs, and indexes over them that generated loops may bind.

A row's *rank* says when it was derived: the rows that its proof uses have lower ranks, so that
proofs are well founded. Who uses a row in a proof is known, so that a death costs what it touches.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from streamsql.data.types import Row

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
        """Return the entries whose proof contains this one, and forget them."""
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
        self.part_of = key_of(self.primary)
        self._indexes: dict[tuple[int, ...], tuple[KeyOf, Index]] = {
            columns: (key_of(columns), {}) for columns in indexes[1:]
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


def key_of(columns: tuple[int, ...]) -> KeyOf:
    """Return a function from row to key: a bare value for one column, else a tuple."""
    return itemgetter(*columns) if columns else lambda _row: ()


def release(entries: Iterable[Entry]) -> None:
    """Cut entries off from each other."""
    for entry in entries:
        entry.proof = ()
        entry.users = None
