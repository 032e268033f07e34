"""What joins with a condition beyond equal keys remember: sides that find partners for a row.

Inner joins on keys alone work on `IndexedRelation` directly; see `join.py`.
"""

from collections.abc import Callable
from typing import Any, Protocol

from stream_engine.operators.band_bounds import Band, find_band
from stream_engine.state.columns import key_picker
from stream_engine.state.indexed_relation import IndexedRelation
from stream_engine.state.ordered_rows import OrderedRows
from streamsql.algebra.expressions import Expression
from streamsql.algebra.scalar import compile_expression, compile_predicate
from streamsql.data.types import Row

Keys = tuple[tuple[int, int], ...]
Match = tuple[Row, Row, int]
"""A partner, the pair it makes, and how often the partner is there."""


class JoinSide(Protocol):
    """The rows of one side of a join that could match."""

    def matching(self, row: Row) -> list[Match]:
        """Return the rows of this side that match a row of the other side."""

    def add(self, row: Row, weight: int) -> int:
        """Add copies of a row of this side; return how often it is there now.

        A row that can never match is not kept: 0.
        """

    def __len__(self) -> int:
        """Return the number of distinct rows."""


def join_sides(
    keys: Keys, residual: Expression | None, left_width: int
) -> tuple[JoinSide, JoinSide]:
    """Return the left and the right side of a join, as its condition allows them to be kept."""
    band, rest = find_band(residual, left_width)
    if band is None:
        holds = None if residual is None else compile_predicate(residual)
        return HashSide(keys, holds, 0), HashSide(keys, holds, 1)
    holds = None if rest is None else compile_predicate(rest)
    return BandSide(keys, band, holds, 0), BandSide(keys, band, holds, 1)


class HashSide:
    """A side by its keys; a residual predicate is asked for every row that agrees on them.

    State: every row once. Work: O(1) per changed row; O(rows of the key) per look-up.
    """

    __slots__ = ("_holds", "_is_left", "_other_key", "_rows")

    def __init__(self, keys: Keys, holds: Callable[[Row], bool] | None, side: int) -> None:
        self._rows = IndexedRelation(tuple(pair[side] for pair in keys))
        self._other_key = key_picker(tuple(pair[1 - side] for pair in keys))
        self._holds = holds
        self._is_left = side == 0

    def matching(self, row: Row) -> list[Match]:
        """Return the rows of this side that match a row of the other side."""
        bucket = self._rows.rows(self._other_key(row))
        return _matches(row, bucket, self._holds, is_left=self._is_left)

    def add(self, row: Row, weight: int) -> int:
        """Add copies of a row; return how often it is there now."""
        rows = self._rows
        key = rows.key_of(row)
        if key is None or (rows.composite and None in key):
            return 0
        return rows.add(key, row, weight)

    def __len__(self) -> int:
        """Return the number of distinct rows."""
        return len(self._rows)


class BandSide:
    """A side by its keys, then in the order of the value that the band compares.

    State: every row once. Work: O(log rows of the key) per changed row; O(log rows of the key) plus
    the rows inside the band per look-up.
    """

    __slots__ = (
        "_composite",
        "_holds",
        "_is_left",
        "_key_of",
        "_length",
        "_other_key",
        "_other_value",
        "_range",
        "_rows",
        "_value",
    )

    def __init__(
        self, keys: Keys, band: Band, holds: Callable[[Row], bool] | None, side: int
    ) -> None:
        self._rows: dict[Any, OrderedRows] = {}
        self._length = 0
        self._key_of = key_picker(tuple(pair[side] for pair in keys))
        self._other_key = key_picker(tuple(pair[1 - side] for pair in keys))
        self._composite = len(keys) > 1
        values = (compile_expression(band.left), compile_expression(band.right))
        self._value, self._other_value = values[side], values[1 - side]
        self._range = band.for_right if side else band.for_left
        self._holds = holds
        self._is_left = side == 0

    def matching(self, row: Row) -> list[Match]:
        """Return the rows of this side that match a row of the other side."""
        rows = self._rows.get(self._other_key(row))
        if rows is None:
            return []
        value = self._other_value(row)
        if value is None:
            return []
        low, high, low_open, high_open = self._range(value)
        found = rows.between(low, high, low_open=low_open, high_open=high_open)
        return _matches(row, found, self._holds, is_left=self._is_left)

    def add(self, row: Row, weight: int) -> int:
        """Add copies of a row; return how often it is there now."""
        key = self._key_of(row)
        value = self._value(row)
        if value is None or key is None or (self._composite and None in key):
            return 0
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = OrderedRows()
        new = rows.add(value, row, weight)
        if new == 0:
            self._length -= 1
            if not rows:
                del self._rows[key]
        elif new == weight:
            self._length += 1
        return new

    def __len__(self) -> int:
        """Return the number of distinct rows."""
        return self._length


def _matches(
    row: Row, candidates: Any, holds: Callable[[Row], bool] | None, *, is_left: bool
) -> list[Match]:
    """Return candidates with the pairs they make, without those the predicate refuses."""
    if is_left:
        matches = [(partner, partner + row, count) for partner, count in candidates]
    else:
        matches = [(partner, row + partner, count) for partner, count in candidates]
    return matches if holds is None else [match for match in matches if holds(match[1])]
