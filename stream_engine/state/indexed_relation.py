"""A relation indexed by the values of some columns: one side of a join."""

from typing import Any

from stream_engine.state.columns import key_picker
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class IndexedRelation:
    """Rows with their weights, by key. Rows with a NULL in the key are not kept: none can match.

    With no key columns every row has the key `()`: one bucket, which makes a theta join of the
    hash join.

    State: every row once. Work: O(1) per changed row.

    Attributes:
        buckets: Rows and weights by key; operators read it directly in their inner loops.
        key_of: The function from row to key.
        composite: Whether keys are tuples, any part of which may be NULL.
    """

    __slots__ = ("buckets", "composite", "key_of")

    def __init__(self, key: tuple[int, ...]) -> None:
        self.buckets: dict[Any, dict[Row, int]] = {}
        self.key_of = key_picker(key)
        self.composite = len(key) > 1

    def apply(self, delta: Delta) -> None:
        """Add a change."""
        key_of, composite = self.key_of, self.composite
        for row, weight in delta.items():
            key = key_of(row)
            if key is not None and not (composite and None in key):
                self.add(key, row, weight)

    def add(self, key: Any, row: Row, weight: int) -> None:
        """Add copies of a row whose key has no NULL."""
        bucket = self.buckets.get(key)
        if bucket is None:
            self.buckets[key] = {row: weight}
            return
        new = bucket.get(row, 0) + weight
        if new:
            bucket[row] = new
        else:
            del bucket[row]
            if not bucket:
                del self.buckets[key]

    def __len__(self) -> int:
        """Return the number of distinct rows."""
        return sum(map(len, self.buckets.values()))
