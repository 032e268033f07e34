"""A relation indexed by the values of some columns: one side of a join."""

from stream_engine.state.columns import picker
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
    """

    __slots__ = ("buckets", "key_of")

    def __init__(self, key: tuple[int, ...]) -> None:
        self.buckets: dict[Row, dict[Row, int]] = {}
        self.key_of = picker(key)

    def apply(self, delta: Delta) -> None:
        """Add a change."""
        buckets, key_of = self.buckets, self.key_of
        for row, weight in delta.items():
            key = key_of(row)
            if None in key:
                continue
            bucket = buckets.get(key)
            if bucket is None:
                buckets[key] = {row: weight}
                continue
            new = bucket.get(row, 0) + weight
            if new:
                bucket[row] = new
            else:
                del bucket[row]
                if not bucket:
                    del buckets[key]

    def __len__(self) -> int:
        """Return the number of distinct rows."""
        return sum(map(len, self.buckets.values()))
