"""Inner joins on equal keys."""

from collections.abc import Callable
from typing import Any

from stream_engine.state.indexed_relation import (
    Bucket,
    Index,
    IndexedRelation,
    KeyedRows,
    index_of,
    rows_in,
    settle,
)
from streamsql.algebra.expressions import Expression
from streamsql.algebra.scalar import compile_predicate
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class JoinOperator:
    """Pairs of rows that agree on the keys and satisfy the residual predicate.

    Bilinear: d(l * r) = dl * r + (l + dl) * dr, so each side's change meets the index of the other.
    Without keys all rows share one bucket, which makes it a nested loop. NULL keys never match.
    A residual with a range between the two sides is better served by `BandJoinOperator`.

    State: both inputs, indexed by key. Work: O(1) a changed row plus one step per pair that agrees
    on the keys.

        left    {(1, a): 1}                       {(1, a): -1}
        right                 {(1, x): 2}
        output                {(1, a, 1, x): 2}   {(1, a, 1, x): -2}
    """

    def __init__(self, keys: tuple[tuple[int, int], ...], residual: Expression | None) -> None:
        self._columns = (tuple(left for left, _ in keys), tuple(right for _, right in keys))
        self._sides: tuple[KeyedRows, KeyedRows] = (
            IndexedRelation(self._columns[0]),
            IndexedRelation(self._columns[1]),
        )
        self._holds = None if residual is None else compile_predicate(residual)
        self._look_at_sides()

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, port: int, delta: Delta) -> Delta:
        """Join the change of one side with the other side and remember it."""
        own = self._sides[port]
        if own.__class__ is IndexedRelation:
            find = self._finds[1 - port] or self._sides[1 - port].finder()
            result = _join_right(delta, own, find) if port else _join_left(delta, own, find)
        else:
            result = _pairs(delta, own.key_of, self._sides[1 - port], is_right=port == 1)
            own.apply(delta)
        return result if self._holds is None else _select(result, self._holds)

    def state_rows(self) -> int:
        """Return the rows of both sides that could match."""
        return len(self._sides[0]) + len(self._sides[1])

    def indexes(self) -> list[Index]:
        """Return both sides."""
        return [index_of(port, self._columns[port], self._sides[port]) for port in (0, 1)]

    def put_index(self, number: int, rows: KeyedRows) -> None:
        """Use a side that holds the same rows."""
        left, right = self._sides
        self._sides = (left, rows) if number else (rows, right)
        self._look_at_sides()

    def _look_at_sides(self) -> None:
        """Note how the sides that are the operator's own are looked up."""
        self._finds: list[_Finder | None] = [
            side.buckets.get if isinstance(side, IndexedRelation) else None for side in self._sides
        ]


_Finder = Callable[[Any], Bucket | None]


def _pairs(
    delta: Delta, key_of: Callable[[Row], Any], other: KeyedRows, *, is_right: bool
) -> Delta:
    """Pair a side's changed rows with the other side's rows, without remembering them."""
    find, patched = other.lookup()
    result: Delta = {}
    for row, weight in delta.items():
        key = key_of(row)
        partners = patched[key] if key in patched else find(key)
        if partners is None:
            continue
        for partner, count in rows_in(partners):
            result[partner + row if is_right else row + partner] = weight * count
    return result


def _join_left(delta: Delta, own: IndexedRelation, find_other: _Finder) -> Delta:
    """Pair the left side's changed rows with the right side's rows; add them to their own side.

    Both are done in one loop because finding the key is most of the work; nothing is called in it
    for the usual cases. Widths are fixed, so different pairs give different rows: the result needs
    no adding up. `_join_right` is the same loop with the sides of the pair exchanged.
    """
    key_of, composite, buckets = own.key_of, own.composite, own.buckets
    find_own = buckets.get
    result: Delta = {}
    for row, weight in delta.items():
        key = key_of(row)
        partners = find_other(key)
        if partners is not None:
            if partners.__class__ is dict:
                for partner, count in partners.items():
                    result[row + partner] = weight * count
            else:
                result[row + partners] = weight  # type: ignore[operator]
        bucket = find_own(key)
        if bucket is None:
            if weight == 1 and key is not None and not (composite and None in key):
                buckets[key] = row
                continue
        elif bucket.__class__ is dict:
            new = bucket.get(row, 0) + weight
            if new:
                bucket[row] = new
                continue
        elif weight == -1 and bucket == row:
            del buckets[key]
            continue
        _add_rare(own, key, row, weight, bucket)
    return result


def _join_right(delta: Delta, own: IndexedRelation, find_other: _Finder) -> Delta:
    """Pair the right side's changed rows with the left side's rows; see `_join_left`."""
    key_of, composite, buckets = own.key_of, own.composite, own.buckets
    find_own = buckets.get
    result: Delta = {}
    for row, weight in delta.items():
        key = key_of(row)
        partners = find_other(key)
        if partners is not None:
            if partners.__class__ is dict:
                for partner, count in partners.items():
                    result[partner + row] = weight * count
            else:
                result[partners + row] = weight  # type: ignore[operator]
        bucket = find_own(key)
        if bucket is None:
            if weight == 1 and key is not None and not (composite and None in key):
                buckets[key] = row
                continue
        elif bucket.__class__ is dict:
            new = bucket.get(row, 0) + weight
            if new:
                bucket[row] = new
                continue
        elif weight == -1 and bucket == row:
            del buckets[key]
            continue
        _add_rare(own, key, row, weight, bucket)
    return result


def _add_rare(own: IndexedRelation, key: Any, row: Row, weight: int, bucket: Bucket | None) -> None:
    """Add a row in the ways that the loops leave out."""
    if bucket.__class__ is dict:
        del bucket[row]
        if len(bucket) <= 1:
            settle(own.buckets, key, bucket)
    elif key is not None and not (own.composite and None in key):
        own.add(key, row, weight)


def _select(delta: Delta, holds: Callable[[Row], bool]) -> Delta:
    return {row: weight for row, weight in delta.items() if holds(row)}
