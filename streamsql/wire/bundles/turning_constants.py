"""Comparisons of two expressions with a constant in one of them, such as `a > b + 3`.

As the constant grows, what it stands in grows, or shrinks, or stays the same: a sum, a difference,
or its product with something else, in exact and in rounded numbers. So the comparison turns once,
and of many that differ in their constants those that are TRUE of a row lie side by side.
"""

from dataclasses import dataclass
from math import isfinite

from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from streamsql.data.types import DataType
from streamsql.wire.bundles.reader_conditions import Turning, term_of

COMPARISONS = frozenset({"=", "<", "<=", ">", ">="})
_SUMS = frozenset({"+", "-"})


@dataclass(frozen=True, slots=True)
class _Opened:
    """An expression with a column in the place of a constant."""

    expression: Expression
    constant: int | float


def turning(comparison: Expression) -> Turning | None:
    """Return a comparison as one that turns with a constant inside; None: it has no such constant.

    The constant may stand below sums, differences and signs; a factor only beside these, and not 0.
    Of several constants the last one is taken.

    Examples:
        Of `a > b + 3` the term is `a > b + #2` and the constant 3; of `a > b + 4` it is 4.
    """
    if not isinstance(comparison, Call) or comparison.function not in COMPARISONS:
        return None
    place = 1 + max(columns_of(comparison), default=-1)
    opened = _last_opened(comparison, place) if place else None
    return None if opened is None else Turning(term_of(opened.expression), place, opened.constant)


def _last_opened(call: Call, place: int) -> _Opened | None:
    """Return a call with the last constant of its arguments opened."""
    for number in reversed(range(len(call.arguments))):
        argument = call.arguments[number]
        found = _opened(argument, place)
        if found is not None:
            opened = found.expression
            others = (*call.arguments[:number], *call.arguments[number + 1 :])
            if isinstance(opened, Column) and any(o.dtype == DataType.DOUBLE for o in others):
                opened = Column(place, "", DataType.DOUBLE)  # 3 counts as 3.0 there
            arguments = (*call.arguments[:number], opened, *call.arguments[number + 1 :])
            return _Opened(Call(call.function, arguments, call.dtype), found.constant)
    return None


def _opened(expression: Expression, place: int) -> _Opened | None:
    match expression:
        case Literal(value=bool()):
            return None
        case Literal(value=int() | float() as value, dtype=dtype) if isfinite(value):
            return _Opened(Column(place, "", dtype), value)
        case Call(function=name, arguments=(_, _)) if name in _SUMS:
            return _last_opened(expression, place)
        case Call(function="NEGATE", arguments=(_,)):
            return _last_opened(expression, place)
        case Call(function="*", arguments=(Literal(), _) | (_, Literal())):
            # Infinite values are none of a product, but 0 times something may be.
            found = _last_opened(expression, place)
            return None if found is None or not found.constant else found
        case _:
            return None
