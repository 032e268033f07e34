"""Left outer joins."""

from collections.abc import Callable
from typing import Any

from stream_engine.state.columns import key_picker
from stream_engine.state.indexed_relation import IndexedRelation
from streamsql.algebra.expressions import Expression
from streamsql.algebra.scalar import compile_predicate
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row


class _LeftRow:
    """A left row's weight and the total weight of its partners."""

    __slots__ = ("partners", "weight")

    def __init__(self) -> None:
        self.weight = 0
        self.partners = 0


class LeftJoinOperator:
    """An inner join that also keeps every left row without partner, padded with NULLs.

    l leftjoin r = (l * r) + pad(rows of l whose partners weigh 0): beside the bilinear part each
    left row counts its partners, and its padded row comes and goes as the count leaves and reaches
    zero. A left row with a NULL key is padded for good and not remembered.

    State: the right side indexed by key, the left side likewise with a partner count each.
    Work: O(1) a changed row plus one step per pair that agrees on the keys.

        left    {(1, a): 1}               {}                  {}
        right   {}                        {(1, x): 1}         {(1, x): -1}
        output  {(1, a, -, -): 1}         {(1, a, -, -): -1,  {(1, a, 1, x): -1,
                                           (1, a, 1, x): 1}    (1, a, -, -): 1}
    """

    def __init__(
        self, keys: tuple[tuple[int, int], ...], residual: Expression | None, right_width: int
    ) -> None:
        self._left_key = key_picker(tuple(left for left, _ in keys))
        self._composite = len(keys) > 1
        self._left: dict[Any, dict[Row, _LeftRow]] = {}
        self._right = IndexedRelation(tuple(right for _, right in keys))
        self._holds = None if residual is None else compile_predicate(residual)
        self._padding: Row = (None,) * right_width

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, port: int, delta: Delta) -> Delta:
        """Join the change of one side with the other side, then remember it."""
        if port == 0:
            return self._apply_left(delta)
        result = self._apply_right(delta)
        self._right.apply(delta)
        return result

    def state_rows(self) -> int:
        """Return the rows of both sides that could match."""
        return sum(map(len, self._left.values())) + len(self._right)

    def _apply_left(self, delta: Delta) -> Delta:
        key_of, left, find = self._left_key, self._left, self._right.buckets.get
        holds, padding, composite = self._holds, self._padding, self._composite
        result: Delta = {}
        for row, weight in delta.items():
            key = key_of(row)
            if key is None or (composite and None in key):
                add(result, row + padding, weight)
                continue
            own = left.get(key)
            if own is None:
                own = left[key] = {}
            state = own.get(row)
            if state is None:
                state = own[row] = _LeftRow()
                state.partners = _count(row, find(key), holds)
            state.weight += weight
            if not state.weight:
                del own[row]
                if not own:
                    del left[key]
            if not state.partners:
                add(result, row + padding, weight)
                continue
            for partner, count in find(key, {}).items():
                joined = row + partner
                if holds is None or holds(joined):
                    add(result, joined, weight * count)
        return result

    def _apply_right(self, delta: Delta) -> Delta:
        key_of, find = self._right.key_of, self._left.get
        holds, padding = self._holds, self._padding
        result: Delta = {}
        for row, weight in delta.items():
            partners = find(key_of(row))  # a key with NULL is never there
            if partners is None:
                continue
            for partner, state in partners.items():
                joined = partner + row
                if holds is not None and not holds(joined):
                    continue
                add(result, joined, weight * state.weight)
                before = state.partners
                state.partners = before + weight
                if not before:
                    add(result, partner + padding, -state.weight)
                elif not state.partners:
                    add(result, partner + padding, state.weight)
        return result


def _count(row: Row, bucket: Delta | None, holds: Callable[[Row], bool] | None) -> int:
    """Return the total weight of a left row's partners."""
    if bucket is None:
        return 0
    if holds is None:
        return sum(bucket.values())
    return sum(count for partner, count in bucket.items() if holds(row + partner))
