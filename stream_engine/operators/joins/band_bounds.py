"""Finding the band in a join's condition: a range between a value of each side.

`a.ts BETWEEN b.ts - 10 AND b.ts + 10` says -10 <= a.ts - b.ts <= 10. Of a side kept in the order of
its value then only a range is searched. What is found may be wider than the condition where
arithmetic rounds or overflows, so such parts are checked again on what was found: sums of doubles
always, sums of integers only where numbers are so large that a sum may not fit 64 bits.
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

ORDINARY = 2**62
"""Integers up to here, moved by constants that add up to half of it, fit 64 bits."""

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
        rounds: By how much arithmetic with doubles may have rounded is known from this sum of all
            constants in it; None if there is no such arithmetic.
    """

    left: Expression
    right: Expression
    low: Bound | None
    high: Bound | None
    rounds: float | None

    def ends(self, side: int) -> tuple[float | None, float | None, bool, bool]:
        """Return what to add to a value of the other side to get this side's range of values.

        Args:
            side: 0 for the left one, 1 for the right one.

        Returns:
            Low, high (None: no end), and whether the low and the high end itself are outside.
        """
        low, high = self.low, self.high
        if side:
            low = None if self.high is None else Bound(-self.high.offset, self.high.is_open)
            high = None if self.low is None else Bound(-self.low.offset, self.low.is_open)
        return (
            None if low is None else low.offset,
            None if high is None else high.offset,
            low is not None and low.is_open,
            high is not None and high.is_open,
        )

    def moved(self, value: Any, offset: float, direction: int) -> Any:
        """Return value + offset, a little further out where sums of doubles may have rounded."""
        if self.rounds is None:
            return value + offset if offset else value
        end = value + offset
        if not isfinite(end):
            return end
        return end + direction * 4 * (ulp(end) + ulp(value) + ulp(self.rounds))


@dataclass(frozen=True, slots=True)
class BandedCondition:
    """A join's condition with a band in it.

    Attributes:
        rest: What else is to be checked where the values compared are ordinary (`ORDINARY`).
        careful: What is to be checked otherwise; the same if there is no arithmetic in the band.
    """

    band: Band
    rest: Expression | None
    careful: Expression | None


@dataclass(frozen=True, slots=True)
class _Range:
    """What one comparison says of a difference.

    Attributes:
        exact: It says nothing else.
        ordinary: It says nothing else if the values are ordinary.
    """

    left: Expression
    right: Expression
    low: Bound | None
    high: Bound | None
    rounds: float | None
    exact: bool
    ordinary: bool


def find_band(residual: Expression | None, left_width: int) -> BandedCondition | None:
    """Return the best band of a join's condition and what is left to check, or None.

    A band with two ends is better than one with one, then that which was written first.

    Args:
        residual: Over the concatenated row.
        left_width: Columns of the left side.
    """
    parts = conjuncts(residual)
    ranges = [(n, r) for n, part in enumerate(parts) for r in _ranges(part, left_width)]
    best: list[tuple[int, _Range]] = []
    for _, wanted in ranges:
        pair = (wanted.left, wanted.right)
        same = [(n, r) for n, r in ranges if (r.left, r.right) == pair]
        if not best or _ends(same) > _ends(best):
            best = same
    if not best:
        return None
    rounds = [found.rounds for _, found in best if found.rounds is not None]
    told: set[int] = set()
    ordinary: set[int] = set()
    if not rounds:  # else the ends are moved outwards, so nothing is told by them alone
        told = {number for number, found in best if found.exact}
        ordinary = told | {number for number, found in best if found.ordinary}
    first = best[0][1]
    return BandedCondition(
        Band(
            first.left,
            first.right,
            max((r.low for _, r in best if r.low), key=_tightness, default=None),
            min((r.high for _, r in best if r.high), key=_looseness, default=None),
            max(rounds, default=None),
        ),
        conjunction([part for n, part in enumerate(parts) if n not in ordinary]),
        conjunction([part for n, part in enumerate(parts) if n not in told]),
    )


def _ends(ranges: list[tuple[int, _Range]]) -> int:
    return any(r.low for _, r in ranges) + any(r.high for _, r in ranges)


def _looseness(high: Bound) -> tuple[float, bool]:
    return (high.offset, not high.is_open)


def _tightness(low: Bound) -> tuple[float, bool]:
    return (low.offset, low.is_open)


def _ranges(part: Expression, left_width: int) -> list[_Range]:
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
        case Call(function="DISTANCE", arguments=arguments) if (
            operator in ("<", "<=") and len(arguments) > 2  # two are points in texts
        ):
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
    nothing, which cannot happen to ordinary integers.
    """
    left, from_left = _peeled(left)
    right, from_right = _peeled(right)
    constants = (*from_left, *from_right)
    total = (offset or 0) + sum(c.value for c in from_right) - sum(c.value for c in from_left)
    size = abs(offset or 0) + sum(abs(c.value) for c in constants)
    exact = offset is None and not constants
    rounds = rounds or any(c.rounds for c in constants)
    bound = Bound(total, not rounds and operator in ("<", ">"))
    return _Range(
        left,
        map_columns(right, lambda c: Column(c.position - left_width, c.name, c.dtype)),
        bound if operator in (">", ">=", "=") else None,
        bound if operator in ("<", "<=", "=") else None,
        float(size) if rounds else None,
        exact,
        not rounds and size <= ORDINARY // 2,
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
