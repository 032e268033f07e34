"""Values at which a monotone function of one column passes a limit, as engines compute it.

Sums, products and quotients with constants round, so they are not solved: the exact solution is a
first guess, and neighbours of it are computed. A value at which the function is beyond the limit
bounds the column, because the function is monotone wherever it is not NULL.
"""

import math
import operator
from collections.abc import Iterator
from fractions import Fraction

from federated_optimizer.canonical.linear_comparisons import WHOLE, Number, exact
from streamsql.algebra.expressions import Call, Column, Expression, Literal, map_columns
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import DataType

_STEPS = 4
"""Neighbours on either side of the guess that are computed."""

_BEYOND = {
    (True, False): operator.gt,
    (True, True): operator.ge,
    (False, False): operator.lt,
    (False, True): operator.le,
}
"""By whether the limit is an upper one, and strict."""


def first_beyond(
    function: Expression, column: Column, limit: int | Fraction, *, upper: bool, strict: bool
) -> int | Fraction | None:
    """Return a value of a column at which a function of it is beyond a limit, a close one.

    None if none is found. Then the function may keep to the limit everywhere.

    Args:
        function: Monotone, of this column only.
        column: Of INTEGER, a time, or DOUBLE.
        limit: Of the function.
        upper: Whether the function is at most the limit.
        strict: Whether the function does not reach the limit.
    """
    line = _line(function)
    if line is None or not line[0]:
        return None
    rises = line[0] > 0
    guess = (limit - line[1]) / line[0]
    beyond = _BEYOND[upper, strict]
    for value in _around(guess, column.dtype, ascending=rises == upper):
        result = _computed(function, Literal(value, column.dtype))
        if isinstance(result, int | Fraction) and beyond(result, limit):
            found = exact(value)
            return None if isinstance(found, str) else found
    return None


def _computed(function: Expression, at: Literal) -> Number | None:
    return exact(compile_expression(map_columns(function, lambda _: at))(()))


def _around(guess: Fraction, dtype: DataType, *, ascending: bool) -> Iterator[float]:
    """Yield values around a guess, in the direction in which the function goes beyond."""
    step = 1 if ascending else -1
    if dtype in WHOLE:
        start = math.floor(guess) - step * _STEPS
        for number in range(2 * _STEPS + 2):
            value = start + step * number
            if -(2**63) <= value < 2**63:
                yield value
        return
    try:
        at = float(guess)
    except OverflowError:
        return
    for _ in range(_STEPS):
        at = math.nextafter(at, -step * math.inf)
    for _ in range(2 * _STEPS + 1):
        if math.isfinite(at):
            yield at
        at = math.nextafter(at, step * math.inf)


def _line(function: Expression) -> tuple[Fraction, Fraction] | None:
    """Return factor and constant of a function where nothing is rounded; None: it is no line."""
    match function:
        case Column():
            return Fraction(1), Fraction(0)
        case Call(function="NEGATE", arguments=(inner,)):
            return _changed(_line(inner), Fraction(-1), Fraction(0))
        case Call(function=name, arguments=(Literal() as constant, inner)):
            number = _number(constant)
            match name:
                case "+":
                    return _changed(_line(inner), Fraction(1), number)
                case "-":
                    return _changed(_line(inner), Fraction(-1), number)
                case "*":
                    return _changed(_line(inner), number, Fraction(0))
                case _:
                    return None
        case Call(function=name, arguments=(inner, Literal() as constant)):
            number = _number(constant)
            match name:
                case "+":
                    return _changed(_line(inner), Fraction(1), number)
                case "-":
                    return _changed(_line(inner), Fraction(1), None if number is None else -number)
                case "*":
                    return _changed(_line(inner), number, Fraction(0))
                case "/" if number:
                    return _changed(_line(inner), 1 / number, Fraction(0))
                case _:
                    return None
        case _:
            return None


def _number(constant: Literal) -> Fraction | None:
    value = constant.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Fraction(value)


def _changed(
    line: tuple[Fraction, Fraction] | None, factor: Fraction | None, constant: Fraction | None
) -> tuple[Fraction, Fraction] | None:
    if line is None or factor is None or constant is None:
        return None
    return factor * line[0], factor * line[1] + constant
