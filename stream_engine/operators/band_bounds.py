"""Finding the band in a join's condition: a range between a value of each side.

`a.ts BETWEEN b.ts - 10 AND b.ts + 10` says -10 <= a.ts - b.ts <= 10. Of a side kept in the order of
its value then only a range is searched. What is found may be wider than the condition where
arithmetic rounds or overflows, so such parts are checked again on what was found.
"""

from dataclasses import dataclass
from math import isfinite, ulp
from typing import Any

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
)
from streamsql.data.types import DataType

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a band: the difference left - right is at least, or at most, an offset.

    Attributes:
        offset: 0 also where values are no numbers.
        is_open: Whether the offset itself is outside.
    """

    offset: int | float
    is_open: bool


@dataclass(frozen=True, slots=True)
class Band:
    """A range for the difference of a value of the left row and one of the right row.

    Attributes:
        left: Over the left row.
        right: Over the right row.
        low: Least difference; None for no end.
        high: Greatest difference; None for no end.
        rounds: By how much arithmetic with doubles may have rounded is known from this sum of all
            constants in it; None if there is no such arithmetic.
    """

    left: Expression
    right: Expression
    low: Bound | None
    high: Bound | None
    rounds: float | None

    def for_left(self, value: Any) -> tuple[Any, Any, bool, bool]:
        """Return the range of left values that meet a right value: low, high, low/high is open."""
        low, high = self.low, self.high
        return (
            None if low is None else self._moved(value, low.offset, -1),
            None if high is None else self._moved(value, high.offset, 1),
            low is not None and low.is_open,
            high is not None and high.is_open,
        )

    def for_right(self, value: Any) -> tuple[Any, Any, bool, bool]:
        """Return the range of right values that meet a left value."""
        low, high = self.low, self.high
        return (
            None if high is None else self._moved(value, -high.offset, -1),
            None if low is None else self._moved(value, -low.offset, 1),
            high is not None and high.is_open,
            low is not None and low.is_open,
        )

    def _moved(self, value: Any, offset: float, direction: int) -> Any:
        """Return value + offset, a little further out where sums of doubles may have rounded."""
        if self.rounds is None:
            return value + offset if offset else value
        end = value + offset
        if not isfinite(end):
            return end
        return end + direction * 4 * (ulp(end) + ulp(value) + ulp(self.rounds))


@dataclass(frozen=True, slots=True)
class _Range:
    """What one comparison says of a difference; `exact` if it says nothing else."""

    left: Expression
    right: Expression
    low: Bound | None
    high: Bound | None
    rounds: float | None
    exact: bool


def find_band(
    residual: Expression | None, left_width: int
) -> tuple[Band | None, Expression | None]:
    """Return the best band of a join's condition, and the rest of the condition to be checked.

    A band with two ends is better than one with one, then that which was written first.

    Args:
        residual: Over the concatenated row.
        left_width: Columns of the left side.
    """
    parts = conjuncts(residual)
    ranges = [(n, r) for n, part in enumerate(parts) for r in _ranges(part, left_width)]
    best: tuple[Band, set[int]] | None = None
    for _, wanted in ranges:
        pair = (wanted.left, wanted.right)
        made = _united([(n, r) for n, r in ranges if (r.left, r.right) == pair])
        if best is None or _ends(made[0]) > _ends(best[0]):
            best = made
    if best is None:
        return None, residual
    band, told = best
    return band, conjunction([part for n, part in enumerate(parts) if n not in told])


def _ends(band: Band) -> int:
    return (band.low is not None) + (band.high is not None)


def _united(ranges: list[tuple[int, _Range]]) -> tuple[Band, set[int]]:
    """Return the band of ranges of one difference, and the conditions it makes superfluous."""
    low: Bound | None = None
    high: Bound | None = None
    rounds: float | None = None
    told = {number for number, found in ranges if found.exact}
    for _, found in ranges:
        if found.low is not None and (low is None or _tightness(found.low) > _tightness(low)):
            low = found.low
        if found.high is not None and (
            high is None or (-found.high.offset, found.high.is_open) > (-high.offset, high.is_open)
        ):
            high = found.high
        if found.rounds is not None:
            rounds = max(rounds or 0.0, found.rounds)
    first = ranges[0][1]
    if rounds is not None:  # the ends are moved outwards, so nothing is told by them alone
        told = set()
    return Band(first.left, first.right, low, high, rounds), told


def _tightness(low: Bound) -> tuple[float, bool]:
    return (low.offset, low.is_open)


def _ranges(part: Expression, left_width: int) -> list[_Range]:
    """Return what a condition says of differences between a left and a right value."""
    match part:
        case Call(function=operator, arguments=(a, b)) if operator in _MIRRORED:
            if not columns_of(a):
                a, b, operator = b, a, _MIRRORED[operator]
            if columns_of(b):
                return _compared(a, operator, b, left_width)
            return _against_constant(a, operator, b, left_width)
        case _:
            return []


def _compared(a: Expression, operator: str, b: Expression, left_width: int) -> list[_Range]:
    """Read `a < b` where each side belongs to one side of the join."""
    if _side(a, left_width) == 1 and _side(b, left_width) == 0:
        a, b, operator = b, a, _MIRRORED[operator]
    if _side(a, left_width) != 0 or _side(b, left_width) != 1:
        return []
    return [_range(a, operator, b, left_width)]


def _against_constant(
    a: Expression, operator: str, bound: Expression, left_width: int
) -> list[_Range]:
    """Read `x - y < 3`, `ABS(x - y) < 3` and `DISTANCE(x, …, y, …) < 3`."""
    if not isinstance(bound, Literal) or not isinstance(bound.value, int | float):
        return []
    limit = bound.value
    match a:
        case Call(function="-", arguments=(x, y), dtype=dtype):
            rounds = DataType.DOUBLE in (bound.dtype, dtype)
            if (_side(x, left_width), _side(y, left_width)) == (0, 1):
                return [_range(x, operator, y, left_width, limit, rounds=rounds)]
            if (_side(x, left_width), _side(y, left_width)) == (1, 0):
                mirrored = _MIRRORED[operator]
                return [_range(y, mirrored, x, left_width, -limit, rounds=rounds)]
            return []
        case Call(function="ABS", arguments=(inner,)) if operator in ("<", "<="):
            above = Literal(-limit, bound.dtype)
            return [
                *_against_constant(inner, operator, bound, left_width),
                *_against_constant(inner, _MIRRORED[operator], above, left_width),
            ]
        case Call(function="DISTANCE", arguments=arguments) if operator in ("<", "<="):
            half = len(arguments) // 2
            pairs = zip(arguments[:half], arguments[half:], strict=True)
            ranges: list[_Range] = []
            for x, y in pairs:
                apart = Call("ABS", (Call("-", (x, y), DataType.DOUBLE),), DataType.DOUBLE)
                ranges.extend(_against_constant(apart, "<=", bound, left_width))
            return ranges
        case _:
            return []


def _range(  # noqa: PLR0913  (a comparison with its offset and how it rounds)
    left: Expression,
    operator: str,
    right: Expression,
    left_width: int,
    offset: float | None = None,
    *,
    rounds: bool = False,
) -> _Range:
    """Return `left operator right + offset` with constants moved into the offset.

    Only a bare comparison is exact: a sum that does not fit 64 bits is NULL and compares with
    nothing.
    """
    left, from_left = _peeled(left)
    right, from_right = _peeled(right)
    constants = (*from_left, *from_right)
    total = (offset or 0) + sum(c.value for c in from_right) - sum(c.value for c in from_left)
    exact = offset is None and not constants
    rounds = rounds or any(c.rounds for c in constants)
    bound = Bound(total, exact and operator in ("<", ">"))
    return _Range(
        left,
        map_columns(right, lambda c: Column(c.position - left_width, c.name, c.dtype)),
        bound if operator in (">", ">=", "=") else None,
        bound if operator in ("<", "<=", "=") else None,
        float(abs(offset or 0) + sum(abs(c.value) for c in constants)) if rounds else None,
        exact,
    )


@dataclass(frozen=True, slots=True)
class _Constant:
    """A number that was added, and whether adding it may have rounded."""

    value: int | float
    rounds: bool


def _peeled(expression: Expression) -> tuple[Expression, tuple[_Constant, ...]]:
    """Return what is left of x + 3 - 1 without its constants, and these: 3 and -1."""
    match expression:
        case Call(function="+" | "-" as name, arguments=(inner, Literal(value=value)), dtype=dtype):
            sign = 1 if name == "+" else -1
        case Call(function="+", arguments=(Literal(value=value), inner), dtype=dtype):
            sign = 1
        case _:
            return expression, ()
    if not isinstance(value, int | float) or not columns_of(inner):
        return expression, ()
    core, constants = _peeled(inner)
    return core, (*constants, _Constant(sign * value, dtype == DataType.DOUBLE))


def _side(expression: Expression, left_width: int) -> int | None:
    """Return 0 for an expression over the left row, 1 for one over the right row, else None."""
    columns = columns_of(expression)
    if not columns:
        return None
    if max(columns) < left_width:
        return 0
    return 1 if min(columns) >= left_width else None
