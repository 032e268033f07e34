"""Numeric functions beyond arithmetic: logarithms, powers, rounding, trigonometry.

Angles are in radians. A value outside a function's domain gives NULL, and so does a result that is
not finite or does not fit: `total` makes that one rule out of Python's several errors.
"""

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any

from streamsql.algebra.exact_totals import EXACT_FUNCTIONS

_PLACES = 400  # beyond the digits of every double
_EXACT = Context(prec=2 * _PLACES)


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with None in place of an arithmetic error or a value it cannot take."""

    def evaluate(*arguments: Any) -> Any:
        try:
            result = function(*arguments)
        except (ArithmeticError, ValueError, TypeError):
            # TypeError: a complex number, as the root of a negative one, has no order.
            return None
        return in_range(result) if isinstance(result, int | float) else result

    return evaluate


def in_range(value: float) -> float | None:
    """Return a number, or NULL where it is not finite or does not fit 64 bits."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if -(2**63) <= value < 2**63 else None


def _logarithm(first: float, second: float | None = None) -> float:
    """Return LOG(x), of base 10, or LOG(base, x)."""
    if second is None:
        return math.log10(first)
    if first == 2:
        return math.log2(second)
    if first == 10:
        return math.log10(second)
    quotient = math.log(second) / math.log(first)
    return _whole_power(first, second, quotient)


def _whole_power(base: float, power: float, exponent: float) -> float:
    """Return the nearest whole exponent if it gives the power exactly, else the exponent.

    A quotient of two rounded logarithms has the last digit wrong: 3.0000000000000004 for 5 and 125.
    """
    whole = round(exponent)
    if not math.isclose(exponent, whole, rel_tol=1e-12):
        return exponent
    try:
        return float(whole) if float(base) ** whole == power else exponent
    except OverflowError:  # the base to it is no double, so it is not the power
        return exponent


def _cube_root(value: float) -> float:
    """Return the double nearest to the cube root.

    The C library may return a neighbour (3.0000000000000004 for 27), and another one on
    another machine: one step of Newton's method with the exact error ends at the same everywhere.
    """
    root = math.cbrt(value)
    if not root:
        return root
    error = Fraction(value) - Fraction(root) ** 3
    return root + float(error) / (3.0 * root * root)


def _truncated(value: float, digits: int = 0) -> float:
    """Return a number without its digits behind a place; negative places are before the point."""
    if not -_PLACES <= digits <= _PLACES:
        return float(value) if digits > 0 else 0.0
    unit = Decimal(1).scaleb(-digits)
    written = Decimal(repr(value))  # as people see it: 0.3 has one digit
    return float(written.quantize(unit, rounding=ROUND_DOWN, context=_EXACT))


def _sign(value: float) -> float:
    if isinstance(value, float):
        return math.copysign(1.0, value) if value else 0.0
    return (value > 0) - (value < 0)


WORD = 2**32
"""Integers are added as `high * WORD + low`: neither sum leaves 64 bits below 2^31 rows."""


def _sum_of_words(high: int, low: int) -> float | None:
    return in_range(high * WORD + low)


def _mean_of_words(high: int, low: int, count: int) -> float:
    return (high * WORD + low) / count  # Python rounds once


NUMERIC_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "SIGN": _sign,
    "TRUNC": total(_truncated),
    "LN": total(math.log),
    "LOG": total(_logarithm),
    "EXP": total(math.exp),
    "CBRT": total(_cube_root),
    "SIN": total(math.sin),
    "COS": total(math.cos),
    "TAN": total(math.tan),
    "COT": total(lambda a: 1.0 / math.tan(a)),
    "ASIN": total(math.asin),
    "ACOS": total(math.acos),
    "ATAN": total(math.atan),
    # Of a negative zero it would make another angle.
    "ATAN2": total(lambda y, x: math.atan2(y + 0.0, x + 0.0)),
    "SINH": total(math.sinh),
    "COSH": total(math.cosh),
    "TANH": total(math.tanh),
    "ASINH": total(math.asinh),
    "ACOSH": total(math.acosh),
    "ATANH": total(math.atanh),
    "DEGREES": total(math.degrees),
    "RADIANS": total(math.radians),
    "SUM_OF_WORDS": _sum_of_words,
    "MEAN_OF_WORDS": total(_mean_of_words),
    **{name: total(function) for name, function in EXACT_FUNCTIONS.items()},
}
"""Strict functions of numbers by name; those of words and of exact sums are for plans, no
query can name them."""
