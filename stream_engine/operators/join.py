"""Inner joins."""

from collections.abc import Callable

from stream_engine.state.indexed_relation import IndexedRelation
from streamsql.algebra.expressions import Expression
from streamsql.algebra.scalar import compile_predicate
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class JoinOperator:
    """Pairs of rows that agree on the keys and satisfy the residual predicate.

    Bilinear: d(l * r) = dl * r + (l + dl) * dr, so each side's change meets the index of the other.
    Without keys all rows share one bucket, which makes it a nested loop. NULL keys never match.

    State: both inputs, indexed by key. Work: O(1) a changed row plus one step per pair that agrees
    on the keys.

        left    {(1, a): 1}                       {(1, a): -1}
        right                 {(1, x): 2}
        output                {(1, a, 1, x): 2}   {(1, a, 1, x): -2}
    """

    def __init__(self, keys: tuple[tuple[int, int], ...], residual: Expression | None) -> None:
        self._sides = (
            IndexedRelation(tuple(left for left, _ in keys)),
            IndexedRelation(tuple(right for _, right in keys)),
        )
        self._holds = None if residual is None else compile_predicate(residual)

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, port: int, delta: Delta) -> Delta:
        """Join the change of one side with the other side and remember it."""
        own, other = self._sides[port], self._sides[1 - port]
        result = _join(delta, own, other, from_left=port == 0)
        return result if self._holds is None else _select(result, self._holds)

    def state_rows(self) -> int:
        """Return the rows of both sides that could match."""
        return len(self._sides[0]) + len(self._sides[1])


def _join(delta: Delta, own: IndexedRelation, other: IndexedRelation, *, from_left: bool) -> Delta:
    """Pair a side's changed rows with the other side's rows; add them to their own side.

    Both are done in one loop because finding the key is most of the work. Widths are fixed, so
    different pairs give different rows: the result needs no adding up.
    """
    key_of, composite, buckets = own.key_of, own.composite, own.buckets
    find_own, find_other = buckets.get, other.buckets.get
    result: Delta = {}
    for row, weight in delta.items():
        key = key_of(row)
        partners = find_other(key)
        if partners is not None:
            for partner, count in partners.items():
                result[row + partner if from_left else partner + row] = weight * count
        if key is None or (composite and None in key):
            continue
        bucket = find_own(key)
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
    return result


def _select(delta: Delta, holds: Callable[[Row], bool]) -> Delta:
    return {row: weight for row, weight in delta.items() if holds(row)}
