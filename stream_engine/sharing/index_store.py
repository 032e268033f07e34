"""Join sides that several joins keep together: one index by key."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from stream_engine.sharing.versions import Change, Changes, Item, SharedStore, Stub
from stream_engine.state.indexed_relation import Bucket, IndexedRelation, KeyedRows, rows_in
from streamsql.data.types import Row


class IndexStore(SharedStore):
    """The rows of one subplan by some of its columns.

    State and work: as `SharedStore`; for a stub that is behind, the rows of the keys in which it
    differs are copied.

    Attributes:
        head: The index; the store owns it from now on.
        patches: By place in the log, for a stub there without lag, the rows of the keys that have
            changed since; until the head changes again.
    """

    def __init__(self, number: int, relation: IndexedRelation) -> None:
        super().__init__(number)
        self.head = relation
        self.patches: dict[int, dict[Any, Bucket | None]] = {}

    def items(self, delta: Change) -> Iterator[Item]:
        """Yield the rows whose key has no NULL."""
        key_of, composite = self.head.key_of, self.head.composite
        for row, weight in delta.items():
            key = key_of(row)
            if key is not None and not (composite and None in key):
                yield key, row, weight

    def change(self, delta: Change) -> None:
        """Add a change to the index."""
        self.patches.clear()
        self.head.apply(delta)

    def subtract(self, lag: Changes) -> None:
        """Take rows away."""
        self.patches.clear()
        add = self.head.add
        for key, row, weight in lag.items():
            add(key, row, -weight)

    def head_rows(self) -> int:
        """Return the rows of the index."""
        return len(self.head)

    def has(self, key: Any, row: Row) -> bool:
        """Whether the index has a row."""
        return any(row == other for other, _ in self.head.rows(key))

    def admit(self, relation: KeyedRows) -> "IndexStub | None":
        """Return a stub that sees the rows of a relation, or None if too many are different.

        A lag takes as much memory as private rows, so it may be half of them at most.
        """
        ours, theirs = self.head_rows(), len(relation)
        most = max(ours, theirs) // 3
        if abs(ours - theirs) > most:
            return None
        lag = Changes()
        buckets = relation.buckets
        for key, bucket in self.head.buckets.items():
            other = buckets.get(key)
            if bucket != other:
                lag.add((key, row, weight) for row, weight in rows_in(bucket))
                lag.add(((key, row, weight) for row, weight in rows_in(other)), -1)
                if lag.rows > most:
                    return None
        for key, bucket in buckets.items():
            if key not in self.head.buckets:
                lag.add(((key, row, weight) for row, weight in rows_in(bucket)), -1)
                if lag.rows > most:
                    return None
        return IndexStub(self, lag)


class IndexStub(Stub):
    """A join side whose rows are in a store; see `KeyedRows`."""

    store: IndexStore

    def __init__(self, store: IndexStore, lag: Changes | None = None) -> None:
        super().__init__(store, lag)
        self._patched: dict[Any, Bucket | None] = {}
        self._patched_at: tuple[int, int] | None = None

    @property
    def key_of(self) -> Callable[[Row], Any]:
        """The function from row to key."""
        return self.store.head.key_of

    @property
    def composite(self) -> bool:
        """Whether keys are tuples."""
        return self.store.head.composite

    @property
    def buckets(self) -> dict[Any, Bucket]:
        """Its view: the store's rows if there is no difference, else a copy."""
        return self.store.head.buckets if self.sees_head else self.content().buckets

    def finder(self) -> Callable[[Any], Bucket | None]:
        """Return the function from key to rows; until the next change of any stub."""
        find, patched = self.lookup()
        if not patched:
            return find
        return lambda key: patched[key] if key in patched else find(key)

    def lookup(self) -> tuple[Callable[[Any], Bucket | None], Mapping[Any, Bucket | None]]:
        """Return the store's function from key to rows, and the rows of keys that differ.

        Differences by steps of the log only are computed once for all stubs before them.
        """
        store = self.store
        find = store.head.buckets.get
        if self.position == store.end and self.lag is None:
            return find, {}
        if self.lag is None and (known := store.patches.get(self.position)) is not None:
            return find, known
        if self._patched_at == (self.position, store.end):
            return find, self._patched
        patched: dict[Any, Bucket | None] = {}
        for part in self.behind():
            for key, change in part.by_key.items():
                old = patched[key] if key in patched else find(key)
                patched[key] = _without(old, change)
        if self.lag is None:
            store.patches[self.position] = patched
        else:
            self._patched, self._patched_at = patched, (self.position, store.end)
        return find, patched

    def shift(self, items: Iterable[Item], sign: int) -> None:
        """Add to its lag."""
        self._patched_at = None
        super().shift(items, sign)

    def rows(self, key: Any) -> Iterable[tuple[Row, int]]:
        """Return the rows of a key with their weights."""
        if self.position == self.store.end and self.lag is None:
            return rows_in(self.store.head.buckets.get(key))
        return rows_in(self.finder()(key))

    def apply(self, delta: Change) -> None:
        """Add a change."""
        if delta:
            self.make(delta)

    def content(self) -> IndexedRelation:
        """Return a copy of its view."""
        head = self.store.head
        copy = head.empty()
        for key, bucket in head.buckets.items():
            copy.buckets[key] = dict(bucket) if isinstance(bucket, dict) else bucket
        for part in self.behind():
            for key, row, weight in part.items():
                copy.add(key, row, -weight)
        return copy

    def __len__(self) -> int:
        """Return the number of distinct rows it sees."""
        head = self.store.head
        count = len(head)
        if not self.sees_head:
            find = self.finder()
            for key in {key for part in self.behind() for key in part.by_key}:
                count += len(list(rows_in(find(key)))) - len(list(head.rows(key)))
        return count


def _without(bucket: Bucket | None, change: dict[Row, int]) -> Bucket | None:
    """Return the rows of a key as they are without a change."""
    rows = dict(rows_in(bucket))
    for row, weight in change.items():
        new = rows.get(row, 0) - weight
        if new:
            rows[row] = new
        else:
            rows.pop(row, None)
    if len(rows) > 1:
        return rows
    for row, weight in rows.items():
        return row if weight == 1 else rows
    return None
