"""Scalar functions by name: what each does with values that are not NULL.

One table for binder, reference evaluator, stream engine and Spark, so a function means the same
everywhere. Integer division truncates toward zero (as PostgreSQL). There is one rule for failure:
division by zero, a value outside a function's domain, a number that does not fit 64 bits and a CAST
that fails give NULL, because a running query must not die of one reading.
"""

import math
import re
from collections.abc import Callable
from typing import Any

from streamsql.algebra.regular_expressions import regexp_like
from streamsql.algebra.scalar_functions.like_patterns import like
from streamsql.algebra.scalar_functions.scalar_numbers import NUMERIC_FUNCTIONS, in_range, total
from streamsql.algebra.scalar_functions.scalar_text import TEXT_FUNCTIONS
from streamsql.algebra.scalar_functions.scalar_time import TIME_FUNCTIONS
from streamsql.data.types import DataType, Value, coerce, text_of

_PLACES = 400
"""No number has a digit so far from the point."""
_POINT = re.compile(r"\s*(?:POINT\s*Z?\s*)?(\()?([^()]*)(?(1)\))\s*", re.ASCII | re.IGNORECASE)
_COORDINATE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_LONGEST_POINT = 200


def cast(value: Value, dtype: DataType) -> Value:
    """Convert a value; NULL when it cannot be.

    DOUBLE to INTEGER rounds half to even, as PostgreSQL.
    """
    if dtype == DataType.INTEGER and isinstance(value, float):
        return in_range(round(value))
    if dtype == DataType.INTEGER and isinstance(value, bool):
        return int(value)
    if dtype == DataType.TEXT and value is not None:
        return text_of(value)
    try:
        return coerce(value, dtype)
    except ValueError:
        return None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _add(a: Any, b: Any) -> Any:
    return in_range(a + b)


def _multiply(a: Any, b: Any) -> Any:
    return in_range(a * b)


def _divide(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return in_range(quotient if (a < 0) == (b < 0) else -quotient)
    return _finite(a / b)


def _modulo(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        rest = abs(a) % abs(b)
        return rest if a >= 0 else -rest
    return math.fmod(a, b)


def _point(text: str) -> tuple[float, ...] | None:
    """Return the two or three coordinates of `3, 4`, `(3, 4)` or `POINT (3 4)`; None for others."""
    found = _POINT.fullmatch(text) if len(text) <= _LONGEST_POINT else None
    parts = found[2].replace(",", " ").split() if found is not None else []
    if len(parts) not in (2, 3) or not all(map(_COORDINATE.fullmatch, parts)):
        return None
    return tuple(map(float, parts))


def _distance(*ends: float | str) -> float | None:
    half = len(ends) // 2
    if half > 1:
        return _finite(math.dist([*map(float, ends[:half])], [*map(float, ends[half:])]))
    first, second = _point(str(ends[0])), _point(str(ends[1]))
    if first is None or second is None or len(first) != len(second):
        return None
    return _finite(math.dist(first, second))


def _power(a: float, b: float) -> float | None:
    try:
        result = float(a) ** float(b)
    except (OverflowError, ZeroDivisionError):
        return None
    return result if isinstance(result, float) and math.isfinite(result) else None


def _round(value: float, digits: int = 0) -> float:
    if digits > _PLACES:
        return float(value)
    if digits < -_PLACES:  # round() would compute 10**-digits first
        return value * 0.0
    return float(round(value, digits))


def _substring(text: str, start: int, length: int = 2**31) -> str:
    begin = start - 1
    end = max(begin + length, 0)
    return text[max(begin, 0) : end]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": _add,
    "-": lambda a, b: _add(a, -b),
    "*": _multiply,
    "/": _divide,
    "%": _modulo,
    "NOT": lambda a: not a,
    "NEGATE": lambda a: in_range(-a),
    "LIKE": like,
    "REGEXP_LIKE": regexp_like,
    "ABS": lambda a: in_range(abs(a)),
    "ROUND": total(_round),
    "FLOOR": lambda a: float(math.floor(a)),
    "CEIL": lambda a: float(math.ceil(a)),
    "SQRT": lambda a: math.sqrt(a) if a >= 0 else None,
    "POWER": _power,
    "LEAST": lambda *values: min(values),
    "GREATEST": lambda *values: max(values),
    "LOWER": str.lower,
    "UPPER": str.upper,
    "LENGTH": len,
    "TRIM": str.strip,
    "SUBSTRING": _substring,
    "POSITION": lambda needle, text: text.find(needle) + 1,
    "DISTANCE": _distance,
    **NUMERIC_FUNCTIONS,
    **TEXT_FUNCTIONS,
    **TIME_FUNCTIONS,
}
"""Strict functions by name; NULL arguments never reach them. DISTANCE is Euclidean, in the unit of
its arguments: (x1, y1, x2, y2), (x1, y1, z1, x2, y2, z2) or two points in texts."""
