"""Rows with proofs, and indexes over them that generated loops may bind.

A row's *rank* says when it was derived: the rows that its proof uses have lower ranks, so that
proofs are well founded. Who uses a row in a proof is known, so that a death costs what it touches.
"""

from collections.abc import Callable, Hashable, Iterable
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
        row: Its values.
        rank: When it was derived, or DEAD.
        proof: One derivation: the entries of all atoms of a rule; () for leaf rows.
        users: Live entries whose proof contains this one; None for nobody.
    """

    __slots__ = ("proof", "rank", "row", "users")

    def __init__(self, row: Row, rank: int, proof: tuple["Entry", ...]) -> None:
        self.row = row
        self.rank = rank
        self.proof = proof
        self.users: set[Entry] | None = None

    def attach(self, proof: tuple["Entry", ...]) -> None:
        """Rest on a derivation."""
        self.proof = proof
        for part in proof:
            users = part.users
            if users is None:
                part.users = {self}
            else:
                users.add(self)

    def detach(self) -> None:
        """Rest on nothing any more."""
        for part in self.proof:
            users = part.users
            if users is not None:
                users.discard(self)
                if not users:
                    part.users = None
        self.proof = ()


GHOST = Entry((), DEAD, ())
"""Stands for a row that is not found."""

Bucket = dict[Entry, None]
Index = dict[Hashable, Bucket]
KeyOf = Callable[[Row], Any]


class EntryTable:
    """A set of entries with hash indexes over some columns.

    The dictionaries stay the same objects for ever: generated loops bind their methods.

    State: the entries, and one bucket per key and index. Work per change: one bucket per index.

    Args:
        width: Number of columns.

    Attributes:
        width: Number of columns.
        rows: The entries by row.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: dict[Row, Entry] = {}
        self._indexes: dict[tuple[int, ...], tuple[KeyOf, Index]] = {}

    def index(self, columns: tuple[int, ...]) -> Index:
        """Return the index over some columns (keys: bare values for one column, else tuples).

        Only to be asked for while the table is empty.
        """
        found = self._indexes.get(columns)
        if found is None:
            found = self._indexes[columns] = (itemgetter(*columns), {})
        return found[1]

    def add(self, entry: Entry) -> None:
        """Add an entry whose row is not there."""
        row = entry.row
        self.rows[row] = entry
        for key_of, index in self._indexes.values():
            key = key_of(row)
            bucket = index.get(key)
            if bucket is None:
                index[key] = {entry: None}
            else:
                bucket[entry] = None

    def remove(self, entry: Entry) -> None:
        """Remove an entry that is there."""
        row = entry.row
        del self.rows[row]
        for key_of, index in self._indexes.values():
            key = key_of(row)
            bucket = index[key]
            del bucket[entry]
            if not bucket:
                del index[key]

    def clear(self) -> None:
        """Drop everything; proofs and users go too, so that no cycles of objects are left."""
        release(self.rows.values())
        self.rows.clear()
        for _, index in self._indexes.values():
            index.clear()


def release(entries: Iterable[Entry]) -> None:
    """Cut entries off from each other."""
    for entry in entries:
        entry.proof = ()
        entry.users = None
