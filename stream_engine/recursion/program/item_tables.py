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


NO_ITEMS: Bucket = {}

_MATCHES = 500_000
_MATCH_KEYS = 10_000
"""Bounds of what a table remembers of one condition."""

_GUESSED_SHARE = 10
"""One item of so many is taken to match a condition that was never tried."""


class Matching:
    """Which items of a table satisfy a condition that no hash index can answer, such as distance.

    Answers are remembered by the values that the condition reads besides the item's own. A new item
    is asked against every key known, unless that costs more than answers have saved: then
    everything is forgotten.

    State: buckets by key, bounded. Work per lookup: the items that match; per change: the keys.
    """

    def __init__(self, items: Bucket, holds: Callable[[Row], bool], read_of: Key) -> None:
        self._items = items
        self._holds = holds
        self._read_of = read_of
        self._buckets: dict[Any, tuple[Row, Bucket]] = {}
        self.size = 0
        self._saved = 0

    @property
    def mean(self) -> float:
        """About how many items match a key; a guess as long as none was asked for."""
        if self._buckets:
            return self.size / len(self._buckets)
        return len(self._items) / _GUESSED_SHARE

    def of(self, wide: Row, _otherwise: Bucket) -> Bucket:
        """Return the items that match a partial result, to which an item's row is appended."""
        key = self._read_of(wide)
        known = self._buckets.get(key)
        if known is not None:
            self._saved += len(self._items)
            return known[1]
        holds = self._holds
        bucket: Bucket = {item: None for item in self._items if holds(wide + item.row)}
        if len(self._buckets) < _MATCH_KEYS and self.size + len(bucket) <= _MATCHES:
            self._buckets[key] = (wide, bucket)
            self.size += len(bucket)
        return bucket

    def add(self, item: Item) -> None:
        """Take a new item into account."""
        if self._saved < len(self._buckets) or self.size > _MATCHES:
            self.clear()
            return
        self._saved -= len(self._buckets)
        holds, row = self._holds, item.row
        for wide, bucket in self._buckets.values():
            if holds(wide + row):
                bucket[item] = None
                self.size += 1

    def remove(self, item: Item) -> None:
        """Leave an item out from now on."""
        for _, bucket in self._buckets.values():
            if item in bucket:
                del bucket[item]
                self.size -= 1

    def clear(self) -> None:
        """Discard all answers."""
        self._buckets = {}
        self.size = self._saved = 0


class ItemTable:
    """A set of items with hash indexes over some of their columns.

    State: the items, per index one bucket per key, and answers to conditions. Work per change: one
    bucket per index.
    """

    def __init__(self) -> None:
        self.items: Bucket = {}
        self._indexes: dict[tuple[int, ...], tuple[Key, Index]] = {}
        self._matchings: dict[Hashable, Matching] = {}

    def __len__(self) -> int:
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
        for matching in self._matchings.values():
            matching.add(item)

    def remove(self, item: Item) -> None:
        """Remove an item that is there."""
        del self.items[item]
        for key_of, index in self._indexes.values():
            key = key_of(item.row)
            bucket = index[key]
            del bucket[item]
            if not bucket:
                del index[key]
        for matching in self._matchings.values():
            matching.remove(item)

    def matching(self, name: Hashable, holds: Callable[[Row], bool], read_of: Key) -> Matching:
        """Return what is remembered of a condition.

        Args:
            name: Of the condition.
            holds: The condition, over a partial result with an item's row behind it.
            read_of: What it reads of the partial result.
        """
        found = self._matchings.get(name)
        if found is None:
            found = self._matchings[name] = Matching(self.items, holds, read_of)
        return found

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
        self._matchings = {}


def _fill(pair: tuple[Key, Index], items: Iterable[Item]) -> None:
    key_of, index = pair
    for item in items:
        index.setdefault(key_of(item.row), {})[item] = None
