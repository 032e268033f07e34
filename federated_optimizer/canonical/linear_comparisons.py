"""Comparisons read as bounds of columns, differences of columns and flows along functions.

A comparison that is TRUE tells something exact about the values that it read:

| form                     | example                  | is read as                                 |
|--------------------------|--------------------------|--------------------------------------------|
| one column and constants | `2 * a + 1 < 7`          | bound: a < 3                               |
| two columns, constants   | `a.ts - b.ts <= 5 s`     | difference: a.ts - b.ts <= 5 s             |
| multiples of two columns | `2 * b > 3 * a`          | slopes: b > 1.5 a, and a < b / 1.5         |
| function of one column   | `0.5 * a <= b`           | flow: a lower bound of a gives one of b    |

INTEGER, TIMESTAMP and INTERVAL: sums, differences and multiples by constants are solved exactly. A
result that does not fit 64 bits is NULL, and a comparison with NULL is not TRUE, so where it is
TRUE nothing has overflowed.

DOUBLE: columns and constants are compared as they are, which is exact. Sums, products and
quotients with constants round, so they are never solved for their column. But rounding is
monotone: the function computed at a bound of its column is a bound of the function. A flow does
just this, with the function that engines compute; a bound that it gives is never strict by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from streamsql.data.types import DataType

Number = int | Fraction | str
"""A value that bounds a column: of numbers and times the exact number, or a text."""

WHOLE = frozenset({DataType.INTEGER, DataType.TIMESTAMP, DataType.INTERVAL})
"""Types whose arithmetic is exact."""

_ORDERED = WHOLE | {DataType.DOUBLE, DataType.TEXT}
_TURNED = {">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Bound:
    """column <= value, or column >= value; not equal if it is strict.

    Attributes:
        upper: Whether it bounds from above.
    """

    column: int
    upper: bool
    value: Number
    strict: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """low - high <= distance; not equal if it is strict."""

    low: int
    high: int
    distance: int
    strict: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """A bound of `source` gives one of `target`, along a monotone function of `source`.

    function + shift <= target if the function is below, else target <= function + shift.

    Attributes:
        function: Reads only `source`.
        rising: Whether a greater source gives a greater value.
    """

    source: int
    function: Expression
    rising: bool
    target: int
    shift: int
    below: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class Slope:
    """A bound of `source` gives one of `target`, exactly: target <= ratio * source + shift.

    target >= that if it is not upper; not equal if it is strict.
    """

    source: int
    target: int
    ratio: Fraction
    shift: Fraction
    upper: bool
    strict: bool


Reading = Bound | Difference | Slope | Flow


@lru_cache(maxsize=4_096)
def readings_of(predicate: Expression) -> tuple[Reading, ...]:
    """Return what a comparison says where it is TRUE; nothing for other predicates.

    Examples:
        >>> a, two = Column(0, "a", DataType.INTEGER), Literal(2, DataType.INTEGER)
        >>> readings_of(Call("<", (a, two), DataType.BOOLEAN))
        (Bound(column=0, upper=True, value=2, strict=True),)
    """
    match predicate:
        case Call(function="=", arguments=(low, high)):
            return (*_ordered(low, high, strict=False), *_ordered(high, low, strict=False))
        case Call(function="<" | "<=" as name, arguments=(low, high)):
            return tuple(_ordered(low, high, strict=name == "<"))
        case Call(function=">" | ">=" as name, arguments=(high, low)):
            return tuple(_ordered(low, high, strict=_TURNED[name] == "<"))
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class _Sum:
    """Multiples of columns, and a constant; a text is a constant, or a column without one."""

    factors: Mapping[int, int]
    constant: Number


def _ordered(low: Expression, high: Expression, *, strict: bool) -> list[Reading]:
    """Return what low <= high says, or low < high."""
    if low.dtype not in _ORDERED or high.dtype not in _ORDERED:
        return []
    lower, upper = _sum_of(low), _sum_of(high)
    if lower is not None and upper is not None:
        solved = _solved(lower, upper, strict=strict)
        if solved:
            return solved
    flows = _flow(low, upper, below=True, strict=strict) if upper is not None else []
    if not flows and lower is not None:
        flows = _flow(high, lower, below=False, strict=strict)
    return flows


def _solved(lower: _Sum, upper: _Sum, *, strict: bool) -> list[Reading]:
    factors = dict(lower.factors)
    for column, factor in upper.factors.items():
        factors[column] = factors.get(column, 0) - factor
    if isinstance(lower.constant, str) or isinstance(upper.constant, str):
        return _of_texts(lower, upper, strict=strict)
    distance = upper.constant - lower.constant
    match [pair for pair in factors.items() if pair[1]]:
        case [(column, 1)]:
            return [Bound(column, True, distance, strict)]
        case [(column, -1)]:
            return [Bound(column, False, -distance, strict)]
        case [(column, factor)]:
            value = Fraction(distance) / factor
            whole = value.numerator if value.denominator == 1 else value
            return [Bound(column, factor > 0, whole, strict)]
        case [(first, 1), (second, -1)] | [(second, -1), (first, 1)] if isinstance(distance, int):
            return [Difference(first, second, distance, strict)]
        case [(first, factor), (second, other)]:
            if factor == -other and distance % factor == 0:
                low, high = (first, second) if factor > 0 else (second, first)
                return [Difference(low, high, int(distance / abs(factor)), strict)]
            return [
                Slope(second, first, *_line(other, distance, factor), factor > 0, strict),
                Slope(first, second, *_line(factor, distance, other), other > 0, strict),
            ]
        case _:
            return []


def _line(factor: int, distance: int | Fraction, own: int) -> tuple[Fraction, Fraction]:
    """Return ratio and shift: own * target + factor * source = distance, for the target."""
    return Fraction(-factor, own), Fraction(distance) / own


def _of_texts(lower: _Sum, upper: _Sum, *, strict: bool) -> list[Reading]:
    match (list(lower.factors), list(upper.factors)):
        case ([column], []):
            return [Bound(column, True, upper.constant, strict)]
        case ([], [column]):
            return [Bound(column, False, lower.constant, strict)]
        case _:
            return []


def _flow(function: Expression, other: _Sum, *, below: bool, strict: bool) -> list[Reading]:
    """Return how bounds of a function of one column go to another column."""
    read = columns_of(function)
    match list(other.factors.items()):
        case [(target, 1)] if isinstance(other.constant, int) and len(read) == 1:
            (source,) = read
            rising = is_rising(function)
            if rising is None or source == target:
                return []
            return [Flow(source, function, rising, target, -other.constant, below, strict)]
        case _:
            return []


def exact(value: float | str | None) -> Number | None:
    """Return a number or text as a value to compare with; None for NULL and truth values.

    Examples:
        >>> exact(2.0), exact(0.5)
        (2, Fraction(1, 2))
    """
    match value:
        case None | bool():
            return None
        case float():
            return int(value) if value.is_integer() else Fraction(value)
        case _:
            return value


def _sum_of(expression: Expression) -> _Sum | None:
    """Return an expression whose value is exactly a sum of multiples of columns, or None."""
    match expression:
        case Column(position=position, dtype=dtype) if dtype in _ORDERED:
            return _Sum({position: 1}, 0)
        case Literal(value=value):
            constant = exact(value)
            return None if constant is None else _Sum({}, constant)
        case Call(function="NEGATE", arguments=(inner,), dtype=dtype) if dtype in WHOLE:
            return _scaled(_sum_of(inner), -1)
        case Call(function="+" | "-" as name, arguments=(first, second), dtype=dtype) if (
            dtype in WHOLE
        ):
            return _added(_sum_of(first), _scaled(_sum_of(second), 1 if name == "+" else -1))
        case (
            Call(function="*", arguments=(Literal(value=factor), inner), dtype=dtype)
            | Call(function="*", arguments=(inner, Literal(value=factor)), dtype=dtype)
        ) if dtype in WHOLE and isinstance(factor, int):
            return _scaled(_sum_of(inner), int(factor))
        case _:
            return None


def _scaled(inner: _Sum | None, factor: int) -> _Sum | None:
    if inner is None or isinstance(inner.constant, str):
        return None
    factors = {column: factor * old for column, old in inner.factors.items()}
    return _Sum(factors, factor * inner.constant)


def _added(first: _Sum | None, second: _Sum | None) -> _Sum | None:
    if first is None or second is None:
        return None
    if isinstance(first.constant, str) or isinstance(second.constant, str):
        return None
    factors = dict(first.factors)
    for column, factor in second.factors.items():
        factors[column] = factors.get(column, 0) + factor
    return _Sum(factors, first.constant + second.constant)


def is_rising(function: Expression) -> bool | None:
    """Return whether a function of one column rises with it; None if it may do neither."""
    match function:
        case Column(dtype=dtype):
            return True if dtype.is_numeric else None
        case Call(function="NEGATE", arguments=(inner,)):
            return _turned(is_rising(inner), by=-1)
        case Call(function="+", arguments=(Literal(value=value), inner)):
            return _turned(is_rising(inner), by=1) if _is_number(value) else None
        case Call(function="+" | "-", arguments=(inner, Literal(value=value))):
            return _turned(is_rising(inner), by=1) if _is_number(value) else None
        case Call(function="-", arguments=(Literal(value=value), inner)):
            return _turned(is_rising(inner), by=-1) if _is_number(value) else None
        case (
            Call(function="*", arguments=(Literal(value=value), inner))
            | Call(function="*" | "/", arguments=(inner, Literal(value=value)))
        ) if isinstance(value, int | float):
            return _turned(is_rising(inner), by=value)
        case _:
            return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _turned(rising: bool | None, *, by: float) -> bool | None:
    if rising is None or by == 0:
        return None
    return rising == (by > 0)
