"""Semi and anti joins: EXISTS, IN and their negations."""

from typing import Any

from typing_extensions import override

from stream_engine.operators.joins.join_state import Keys, ResidualJoin
from stream_engine.operators.rows.operator import Operator
from stream_engine.state.columns import key_picker
from stream_engine.state.indexed_relation import (
    HoldsIndexes,
    Index,
    IndexedRelation,
    KeyedRows,
    index_of,
)
from streamsql.algebra.expressions import Expression
from streamsql.data.delta import Delta, add


class SemiJoinOperator(Operator, HoldsIndexes):
    """The left rows that have a partner (semi), or that have none (anti), each as often as it is.

    l semijoin r = {row of l: its weight | r has its key}: a changed left row is given if its key is
    there; a change of the right side gives (or takes) all left rows of a key when the key's first
    row comes or its last one leaves, else nothing. A left row with a NULL key has no partner; it is
    not remembered.

    State: the left side by key, the right side's number of rows per key. Work: O(1) a changed row
    plus one step per left row of a key that comes or leaves.

        left    {(1, a): 2}   {}            {}            {}
        right   {}            {(1, x): 1}   {(1, y): 1}   {(1, x): -1, (1, y): -1}
        semi                  {(1, a): 2}                 {(1, a): -2}
        anti    {(1, a): 2}   {(1, a): -2}                {(1, a): 2}
    """

    def __init__(self, keys: Keys, *, anti: bool) -> None:
        self._columns = tuple(left for left, _ in keys)
        self._left: KeyedRows = IndexedRelation(self._columns)
        self._right_key = key_picker(tuple(right for _, right in keys))
        self._right: dict[Any, int] = {}
        self._anti = anti

    @override
    def apply(self, port: int, delta: Delta) -> Delta:
        return self._apply_right(delta) if port else self._apply_left(delta)

    @override
    def state_rows(self) -> int:
        return len(self._left) + len(self._right)

    @override
    def indexes(self) -> list[Index]:
        return [index_of(0, self._columns, self._left)]

    @override
    def put_index(self, _number: int, rows: KeyedRows) -> None:
        self._left = rows

    def _apply_left(self, delta: Delta) -> Delta:
        left, right, anti = self._left, self._right, self._anti
        key_of, composite = left.key_of, left.composite
        remember = left.add if isinstance(left, IndexedRelation) else None
        result: Delta = {}
        for row, weight in delta.items():
            key = key_of(row)
            if key is None or (composite and None in key):
                if anti:
                    result[row] = weight
                continue
            if remember is not None:
                remember(key, row, weight)
            if (right.get(key, 0) > 0) != anti:
                result[row] = weight
        if remember is None:
            left.apply(delta)
        return result

    def _apply_right(self, delta: Delta) -> Delta:
        left, right, key_of = self._left, self._right, self._right_key
        composite, anti = left.composite, self._anti
        result: Delta = {}
        for row, weight in delta.items():
            key = key_of(row)
            if key is None or (composite and None in key):
                continue
            old = right.get(key, 0)
            new = old + weight
            if new:
                right[key] = new
            else:
                del right[key]
            if (old > 0) != (new > 0):
                sign = 1 if (new > 0) != anti else -1
                for partner, count in left.rows(key):
                    add(result, partner, sign * count)
        return result


class CountedSemiJoinOperator(ResidualJoin):
    """A semi or anti join with a residual predicate: every left row counts its partners.

    As `SemiJoinOperator`, but a left row comes and goes as its own number of partners leaves and
    reaches zero.

    State: both sides, by key or in the order of a band, and the count of each left row that has
    partners. Work: that of finding the partners of a changed row, plus one step each.

        left    {(5,): 1}                      semi, l.x < r.x
        right   {(7,): 1}   {(9,): 1}   {(7,): -1}   {(9,): -1}
        output  {(5,): 1}                            {(5,): -1}
    """

    def __init__(
        self, keys: Keys, residual: Expression | None, left_width: int, *, anti: bool
    ) -> None:
        super().__init__(keys, residual, left_width)
        self._partners: Delta = {}
        self._anti = anti

    @override
    def apply(self, port: int, delta: Delta) -> Delta:
        return self._apply_right(delta) if port else self._apply_left(delta)

    def _apply_left(self, delta: Delta) -> Delta:
        partners, anti = self._partners, self._anti
        left, right = self._sides
        remember, matching = left.adder(delta), right.matching
        result: Delta = {}
        for row, weight in left.in_order(delta):
            total = partners.get(row, 0)
            if not total:
                total = sum([count for _, _, count in matching(row)])
            if not remember(row, weight):
                partners.pop(row, None)
            elif total:
                partners[row] = total
            if (total > 0) != anti:
                result[row] = weight
        return result

    def _apply_right(self, delta: Delta) -> Delta:
        partners, anti = self._partners, self._anti
        left, right = self._sides
        remember, matching = right.adder(delta), left.matching
        result: Delta = {}
        for row, weight in right.in_order(delta):
            for partner, _, count in matching(row):
                old = partners.get(partner, 0)
                add(partners, partner, weight)
                new = old + weight
                if (old > 0) != (new > 0):
                    add(result, partner, count if (new > 0) != anti else -count)
            remember(row, weight)
        return result
