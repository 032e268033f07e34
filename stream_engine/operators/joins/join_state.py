"""What joins with a condition beyond equal keys remember: sides that find partners for a row.

Inner joins on keys alone work on `IndexedRelation` directly; see `join.py`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from typing import Any, Protocol

from typing_extensions import override

from stream_engine.operators.joins.band_bounds import ORDINARY, BandedCondition, find_band
from stream_engine.operators.rows.operator import Operator
from stream_engine.state.columns import key_picker
from stream_engine.state.indexed_relation import (
    HoldsIndexes,
    Index,
    IndexedRelation,
    KeyedRows,
    add_row,
    index_of,
    rows_in,
)
from stream_engine.state.ordered_index import OrderedIndex
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.scalar_functions.scalar import compile_expression, compile_predicate
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.errors import InternalError

Keys = tuple[tuple[int, int], ...]
Match = tuple[Row, Row, int]
"""A partner, the pair it makes, and how often the partner is there."""


_WORTH_SORTING = 1_000
"""Changed rows from which on putting them in order saves more than it costs."""


class JoinSide(Protocol):
    """The rows of one side of a join that could match."""

    def matching(self, row: Row) -> list[Match]:
        """Return the rows of this side that match a row of the other side."""

    def in_order(self, delta: Delta) -> Iterable[tuple[Row, int]]:
        """Return a change of this side in the order in which it is best applied."""

    def adder(self, delta: Delta) -> Callable[[Row, int], int]:
        """Return the function to call for every row and weight of a change of this side.

        It adds them and returns how often the row is there now: 0 for one that can never match.
        """

    def __len__(self) -> int:
        """Return the number of distinct rows."""


class KeyedJoin(Operator, HoldsIndexes):
    """A join both of whose sides are kept by key."""

    def __init__(self, keys: Keys) -> None:
        self._columns = (tuple(left for left, _ in keys), tuple(right for _, right in keys))
        self._sides: list[KeyedRows] = [IndexedRelation(columns) for columns in self._columns]

    @override
    def indexes(self) -> list[Index]:
        return [index_of(port, self._columns[port], self._sides[port]) for port in (0, 1)]

    @override
    def put_index(self, number: int, rows: KeyedRows) -> None:
        self._sides[number] = rows

    @override
    def state_rows(self) -> int:
        return sum(map(len, self._sides))


class ResidualJoin(Operator, HoldsIndexes):
    """A join with a residual predicate; its sides are kept by key, or in the order of a band."""

    def __init__(self, keys: Keys, residual: Expression | None, left_width: int) -> None:
        self._sides = join_sides(keys, residual, left_width)

    @override
    def indexes(self) -> list[Index]:
        return [
            index_of(port, side.columns, side.rows)
            for port, side in enumerate(self._sides)
            if isinstance(side, HashSide)
        ]

    @override
    def put_index(self, number: int, rows: KeyedRows) -> None:
        side = self._sides[number]
        if not isinstance(side, HashSide):
            raise InternalError("only sides by key have an index to share")
        side.rows = rows

    @override
    def state_rows(self) -> int:
        return sum(map(len, self._sides))


def join_sides(
    keys: Keys, residual: Expression | None, left_width: int
) -> tuple[JoinSide, JoinSide]:
    """Return the left and the right side of a join, as its condition allows them to be kept."""
    found = find_band(residual, left_width)
    if found is None:
        holds = None if residual is None else compile_predicate(residual)
        return HashSide(keys, holds, 0), HashSide(keys, holds, 1)
    return BandSide(keys, found, 0), BandSide(keys, found, 1)


class HashSide(JoinSide):
    """A side by its keys; a residual predicate is asked for every row that agrees on them.

    State: every row once. Work: O(1) per changed row; O(rows of the key) per look-up.
    """

    def __init__(self, keys: Keys, holds: Callable[[Row], bool] | None, side: int) -> None:
        self.columns = tuple(pair[side] for pair in keys)
        self.rows: KeyedRows = IndexedRelation(self.columns)
        self._other_key = key_picker(tuple(pair[1 - side] for pair in keys))
        self._holds = holds
        self._is_left = side == 0

    @override
    def matching(self, row: Row) -> list[Match]:
        bucket = self.rows.rows(self._other_key(row))
        return _matches(row, bucket, self._holds, is_left=self._is_left)

    @override
    def in_order(self, delta: Delta) -> Iterable[tuple[Row, int]]:
        return delta.items()

    @override
    def adder(self, delta: Delta) -> Callable[[Row, int], int]:
        rows, key_of, composite = self.rows, self.rows.key_of, self.rows.composite
        if isinstance(rows, IndexedRelation):
            add = partial(add_row, rows.buckets)

            def remember(row: Row, weight: int) -> int:
                key = key_of(row)
                if key is None or (composite and None in key):
                    return 0
                return add(key, row, weight)

            return remember
        rows.apply(delta)
        find = rows.finder()

        def present(row: Row, _weight: int) -> int:
            bucket = find(key_of(row))
            return bucket.get(row, 0) if isinstance(bucket, dict) else int(bucket == row)

        return present

    def __len__(self) -> int:
        return len(self.rows)


class BandSide(JoinSide):
    """A side by its keys, then in the order of the value that the band compares.

    State: every row once. Work: O(log rows of the key) per changed row; O(log rows of the key) plus
    the rows inside the band per look-up.
    """

    def __init__(self, keys: Keys, condition: BandedCondition, side: int) -> None:
        band = self._band = condition.band
        values = (_value_of(band.left), _value_of(band.right))
        self._rows = OrderedIndex(tuple(pair[side] for pair in keys), values[side])
        self._other_key = key_picker(tuple(pair[1 - side] for pair in keys))
        self._other_value = values[1 - side]
        self._ends = band.ends(side)
        self._is_left = side == 0
        self._rest = None if condition.rest is None else compile_predicate(condition.rest)
        self._sums = condition.rest != condition.careful
        careful = condition.careful
        self._careful = None if careful is None else compile_predicate(careful)
        self._huge = 0  # rows whose values may not fit 64 bits when something is added to them

    @override
    def matching(self, row: Row) -> list[Match]:
        value = self._other_value(row)
        if value is None:
            return []
        low, high, low_open, high_open = self._ends
        if self._band.rounds is not None:
            low = None if low is None else self._band.moved(value, low, -1)
            high = None if high is None else self._band.moved(value, high, 1)
        else:  # an offset of 0 is not added: the values may be no numbers
            low = value if low == 0 else None if low is None else value + low
            high = value if high == 0 else None if high is None else value + high
        holds = self._rest
        if self._sums and (self._huge or not -ORDINARY <= value <= ORDINARY):
            holds = self._careful
        key = self._other_key(row)
        found = self._rows.between(key, low, high, low_open=low_open, high_open=high_open)
        is_left = self._is_left
        matches: list[Match] = []
        for entry in found:
            if entry.__class__ is tuple:  # a row alone: 7 to 16 % faster than `rows_in`
                pair = entry + row if is_left else row + entry
                if holds is None or holds(pair):
                    matches.append((entry, pair, 1))
                continue
            for partner, count in rows_in(entry):
                pair = partner + row if is_left else row + partner
                if holds is None or holds(pair):
                    matches.append((partner, pair, count))
        return matches

    @override
    def in_order(self, delta: Delta) -> Iterable[tuple[Row, int]]:
        if len(delta) < _WORTH_SORTING:
            return delta.items()
        value = self._rows.value_of
        ordered: list[tuple[Row, int]] = []
        rest: list[tuple[Row, int]] = []
        for item in delta.items():
            (rest if value(item[0]) is None else ordered).append(item)
        ordered.sort(key=lambda item: value(item[0]))
        return ordered + rest

    @override
    def adder(self, _delta: Delta) -> Callable[[Row, int], int]:
        return self.add

    def add(self, row: Row, weight: int) -> int:
        """Add copies of a row; return how often it is there now."""
        place = self._rows.place_of(row)
        if place is None:
            return 0
        key, value = place
        new = self._rows.add(key, value, row, weight)
        if self._sums and not -ORDINARY <= value <= ORDINARY and (not new or new == weight):
            self._huge += 1 if new else -1
        return new

    def __len__(self) -> int:
        return self._rows.length


def _value_of(expression: Expression) -> Callable[[Row], Any]:
    """Return a function from row to value, for a column one that runs without a Python frame."""
    if isinstance(expression, Column):
        return itemgetter(expression.position)
    return compile_expression(expression)


def _matches(
    row: Row, candidates: Any, holds: Callable[[Row], bool] | None, *, is_left: bool
) -> list[Match]:
    if is_left:
        matches = [(partner, partner + row, count) for partner, count in candidates]
    else:
        matches = [(partner, row + partner, count) for partner, count in candidates]
    return matches if holds is None else [match for match in matches if holds(match[1])]
