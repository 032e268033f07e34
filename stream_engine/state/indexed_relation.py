"""A relation indexed by the values of some columns: one side of a join."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from stream_engine.state.columns import key_picker
from streamsql.data.delta import Delta
from streamsql.data.types import Row

Bucket = Row | dict[Row, int]
"""The rows of one key: a row that is alone and there once, or rows with their weights."""


class KeyedRows(Protocol):
    """The rows of one side of a join by key, whoever keeps them.

    Operators read and write an `IndexedRelation` that is their own directly, in one loop. Where a
    side is shared with others (`stream_engine.sharing`), they look rows up by `finder` and give the
    whole change to `apply`.
    """

    @property
    def buckets(self) -> Mapping[Any, Bucket]:
        """Rows by key; not to be changed unless the rows are the operator's own."""

    @property
    def key_of(self) -> Callable[[Row], Any]:
        """The function from row to key."""

    @property
    def composite(self) -> bool:
        """Whether keys are tuples, any part of which may be NULL."""

    def finder(self) -> Callable[[Any], Bucket | None]:
        """Return the function from key to rows; it holds until the next change."""

    def lookup(self) -> tuple[Callable[[Any], Bucket | None], Mapping[Any, Bucket | None]]:
        """Return a function from key to rows that runs in C, and the keys for which it is wrong.

        Both hold until the next change. The rows of those keys are in the mapping.
        """

    def rows(self, key: Any) -> Iterable[tuple[Row, int]]:
        """Return the rows of a key with their weights; nothing for a key with NULL."""

    def apply(self, delta: Delta) -> None:
        """Add a change."""

    def __len__(self) -> int:
        """Return the number of distinct rows."""


@runtime_checkable
class HoldsIndexes(Protocol):
    """An operator that keeps inputs by key, in indexes which others may keep for it."""

    def indexes(self) -> "list[Index]":
        """Return the indexes it uses now, always in the same order."""

    def put_index(self, number: int, rows: KeyedRows) -> None:
        """Use, as the index with a number in `indexes`, one of the same content."""


class Index(NamedTuple):
    """One index of an operator.

    Attributes:
        port: The input that it keeps.
        columns: The columns of the key.
        needed: The columns, in groups of equal ones, without which a row is not kept; usually
            each column of the key by itself.
        rows: What is kept.
    """

    port: int
    columns: tuple[int, ...]
    needed: frozenset[tuple[int, ...]]
    rows: KeyedRows


def index_of(port: int, columns: tuple[int, ...], rows: KeyedRows) -> Index:
    """Return an index that keeps every row without NULL in its key."""
    return Index(port, columns, frozenset((column,) for column in columns), rows)


class IndexedRelation:
    """Rows with their weights, by key. Rows with a NULL in the key are not kept: none can match.

    A row that is alone with its key and there once stands for itself: a dict of one entry would
    take 184 bytes more, and most joins find keys of one side unique. With no key columns every row
    has the key `()`: one bucket, which makes a theta join of the hash join.

    State: every row once. Work: O(1) per changed row.

    Attributes:
        buckets: Rows by key; operators read it directly in their inner loops.
        key_of: The function from row to key.
        composite: Whether keys are tuples, any part of which may be NULL.
    """

    __slots__ = ("buckets", "composite", "key_of")

    def __init__(self, key: tuple[int, ...]) -> None:
        self.buckets: dict[Any, Bucket] = {}
        self.key_of = key_picker(key)
        self.composite = len(key) > 1

    def apply(self, delta: Delta) -> None:
        """Add a change; nothing is called for the usual cases."""
        key_of, composite, buckets = self.key_of, self.composite, self.buckets
        find = buckets.get
        for row, weight in delta.items():
            key = key_of(row)
            if key is None or (composite and None in key):
                continue
            bucket = find(key)
            if bucket is None:
                buckets[key] = row if weight == 1 else {row: weight}
            elif bucket.__class__ is dict and (new := bucket.get(row, 0) + weight):
                bucket[row] = new
            else:
                self.add(key, row, weight)

    def add(self, key: Any, row: Row, weight: int) -> int:
        """Add copies of a row whose key has no NULL; return its new weight."""
        return add_row(self.buckets, key, row, weight)

    def empty(self) -> "IndexedRelation":
        """Return one of the same key without rows."""
        other = IndexedRelation(())
        other.key_of, other.composite = self.key_of, self.composite
        return other

    def finder(self) -> Callable[[Any], Bucket | None]:
        """Return the function from key to rows."""
        return self.buckets.get

    def lookup(self) -> tuple[Callable[[Any], Bucket | None], Mapping[Any, Bucket | None]]:
        """Return the function from key to rows; it is right for all keys."""
        return self.buckets.get, {}

    def rows(self, key: Any) -> Iterable[tuple[Row, int]]:
        """Return the rows of a key with their weights; nothing for a key with NULL."""
        return rows_in(self.buckets.get(key))

    def __len__(self) -> int:
        """Return the number of distinct rows."""
        return sum([len(b) if isinstance(b, dict) else 1 for b in self.buckets.values()])


def add_row(buckets: dict[Any, Bucket], key: Any, row: Row, weight: int) -> int:
    """Add copies of a row to the rows of its key; return its new weight."""
    bucket = buckets.get(key)
    if bucket is None:
        buckets[key] = row if weight == 1 else {row: weight}
        return weight
    if not isinstance(bucket, dict):
        if bucket != row:
            buckets[key] = {bucket: 1, row: weight}
            return weight
        new = weight + 1
        if new:
            buckets[key] = {row: new}
        else:
            del buckets[key]
        return new
    new = bucket.get(row, 0) + weight
    if new:
        bucket[row] = new
        return new
    del bucket[row]
    if len(bucket) <= 1:
        settle(buckets, key, bucket)
    return 0


def rows_in(bucket: Bucket | None) -> Iterable[tuple[Row, int]]:
    """Return the rows of a bucket with their weights."""
    if bucket is None:
        return ()
    return bucket.items() if isinstance(bucket, dict) else ((bucket, 1),)


def settle(buckets: dict[Any, Bucket], key: Any, bucket: dict[Row, int]) -> None:
    """Put a bucket that has lost a row, and has one left at most, into its smallest form."""
    if not bucket:
        del buckets[key]
        return
    ((row, weight),) = bucket.items()
    if weight == 1:
        buckets[key] = row
