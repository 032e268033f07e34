"""Rows with annotations that rules probe: leaf rows, and the rows of the recursive relation.

An index is built when a plan first asks for it and is maintained from then on.
"""

from collections.abc import Callable, Hashable, Iterable
from operator import itemgetter
from typing import Any

from streamsql.data.types import Row


class Item:
    """A row that takes part in joins.

    Attributes:
        row: Its values.
        sent: The annotation joins use; None while the row must not be joined.
    """

    __slots__ = ("row", "sent")

    def __init__(self, row: Row, sent: Any) -> None:
        self.row = row
        self.sent = sent


Bucket = dict[Item, None]
Index = dict[Hashable, Bucket]
Key = Callable[[Row], Any]


def values_at(positions: tuple[int, ...]) -> Key:
    """Return a function from row to key: a bare value for one position, else a tuple."""
    if not positions:
        return lambda _row: ()
    return itemgetter(*positions)


class ItemTable:
    """A set of items with hash indexes over some of their columns.

    State: the items, and per index one bucket per key. Work per change: one bucket per index.
    """

    def __init__(self) -> None:
        self.items: Bucket = {}
        self._indexes: dict[tuple[int, ...], tuple[Key, Index]] = {}

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.items)

    def add(self, item: Item) -> None:
        """Add an item that is not there."""
        self.items[item] = None
        for key_of, index in self._indexes.values():
            key = key_of(item.row)
            bucket = index.get(key)
            if bucket is None:
                index[key] = {item: None}
            else:
                bucket[item] = None

    def remove(self, item: Item) -> None:
        """Remove an item that is there."""
        del self.items[item]
        for key_of, index in self._indexes.values():
            key = key_of(item.row)
            bucket = index[key]
            del bucket[item]
            if not bucket:
                del index[key]

    def index(self, positions: tuple[int, ...]) -> Index:
        """Return the index over columns; without columns one bucket of all items, under ()."""
        if not positions:
            return {(): self.items}
        found = self._indexes.get(positions)
        if found is None:
            found = self._indexes[positions] = (values_at(positions), {})
            _fill(found, self.items)
        return found[1]

    def clear(self) -> None:
        """Drop everything."""
        self.items = {}
        self._indexes = {}


def _fill(pair: tuple[Key, Index], items: Iterable[Item]) -> None:
    key_of, index = pair
    for item in items:
        index.setdefault(key_of(item.row), {})[item] = None
