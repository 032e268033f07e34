"""Scalar functions and the compilation of expressions to Python closures.

One table says what each function takes, returns and does; binder, reference evaluator and stream
engine all read it, so a function means the same everywhere. Three-valued logic as in SQL: NULL in,
NULL out, except AND, OR, IS NULL, COALESCE and CASE. Integer division truncates toward zero (as
PostgreSQL). There is one rule for failure: division by zero, a value outside a function's domain, a
number that does not fit 64 bits and a CAST that fails give NULL, because a running query must not
die of one reading.
"""

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.scalar_numbers import NUMERIC_FUNCTIONS, in_range, total
from streamsql.algebra.scalar_text import TEXT_FUNCTIONS
from streamsql.algebra.scalar_time import TIME_FUNCTIONS
from streamsql.algebra.user_functions import INSTALLED, is_called_on_null, is_user_function
from streamsql.data.types import DataType, Row, Value, coerce, text_of
from streamsql.errors import InternalError

__all__ = [
    "FUNCTIONS",
    "Compiled",
    "cast",
    "compile_expression",
    "compile_predicate",
    "compile_row",
    "in_range",
    "key_of",
]

Compiled = Callable[[Row], Any]


def compile_expression(expression: Expression) -> Compiled:
    """Return a function from row to value.

    Raises:
        InternalError: The function is unknown here, although the binder let it pass.
        DeploymentError: A function of the user is not installed here.
    """
    match expression:
        case Column(position=position):
            return lambda row: row[position]
        case Literal(value=value):
            return lambda _row: value
        case Call(function="AND", arguments=arguments):
            return _compile_and(tuple(compile_expression(a) for a in arguments))
        case Call(function="OR", arguments=arguments):
            return _compile_or(tuple(compile_expression(a) for a in arguments))
        case Call(function="CASE", arguments=arguments):
            return _compile_case(tuple(compile_expression(a) for a in arguments))
        case Call(function="COALESCE", arguments=arguments):
            return _compile_coalesce(tuple(compile_expression(a) for a in arguments))
        case Call(function="IN", arguments=arguments):
            return _compile_in(tuple(compile_expression(a) for a in arguments))
        case Call(function="CAST", arguments=(inner,), dtype=dtype):
            return _compile_cast(compile_expression(inner), dtype)
        case Call(function="IS NULL", arguments=(inner,)):
            value_of = compile_expression(inner)
            return lambda row: value_of(row) is None
        case Call(function="IS NOT NULL", arguments=(inner,)):
            value_of = compile_expression(inner)
            return lambda row: value_of(row) is not None
        case Call(function=name, arguments=arguments, dtype=dtype) if is_user_function(name):
            return _compile_user(name, dtype, tuple(compile_expression(a) for a in arguments))
        case Call(function=name, arguments=arguments):
            return _compile_strict(name, tuple(compile_expression(a) for a in arguments))


def compile_predicate(expression: Expression) -> Callable[[Row], bool]:
    """Return a function that is true only where the predicate is TRUE (not NULL)."""
    value_of = compile_expression(expression)
    return lambda row: value_of(row) is True


def compile_row(expressions: tuple[Expression, ...]) -> Callable[[Row], Row]:
    """Return a function from input row to the row of all the expressions."""
    if all(isinstance(e, Column) for e in expressions):
        return key_of(tuple(e.position for e in expressions if isinstance(e, Column)))
    parts = tuple(compile_expression(e) for e in expressions)
    return lambda row: tuple([part(row) for part in parts])


def key_of(positions: tuple[int, ...]) -> Callable[[Row], Row]:
    """Return a function that picks columns."""
    if len(positions) == 1:
        (only,) = positions
        return lambda row: (row[only],)
    return lambda row: tuple([row[p] for p in positions])


def _compile_and(parts: tuple[Compiled, ...]) -> Compiled:
    def evaluate(row: Row) -> Any:
        result: Any = True
        for part in parts:
            value = part(row)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return evaluate


def _compile_or(parts: tuple[Compiled, ...]) -> Compiled:
    def evaluate(row: Row) -> Any:
        result: Any = False
        for part in parts:
            value = part(row)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return evaluate


def _compile_case(parts: tuple[Compiled, ...]) -> Compiled:
    branches = tuple(zip(parts[:-1:2], parts[1::2], strict=True))
    otherwise = parts[-1]

    def evaluate(row: Row) -> Any:
        for condition, value in branches:
            if condition(row) is True:
                return value(row)
        return otherwise(row)

    return evaluate


def _compile_coalesce(parts: tuple[Compiled, ...]) -> Compiled:
    def evaluate(row: Row) -> Any:
        for part in parts:
            value = part(row)
            if value is not None:
                return value
        return None

    return evaluate


def _compile_in(parts: tuple[Compiled, ...]) -> Compiled:
    needle, candidates = parts[0], parts[1:]

    def evaluate(row: Row) -> Any:
        value = needle(row)
        if value is None:
            return None
        unknown = False
        for candidate in candidates:
            other = candidate(row)
            if other is None:
                unknown = True
            elif other == value:
                return True
        return None if unknown else False

    return evaluate


def _compile_cast(value_of: Compiled, dtype: DataType) -> Compiled:
    def evaluate(row: Row) -> Any:
        return cast(value_of(row), dtype)

    return evaluate


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


def _compile_strict(name: str, parts: tuple[Compiled, ...]) -> Compiled:
    function = FUNCTIONS.get(name)
    if function is None:
        raise InternalError(f"no scalar function {name!r}")
    return _strict(function, parts)


def _compile_user(name: str, dtype: DataType, parts: tuple[Compiled, ...]) -> Compiled:
    function = INSTALLED.function(name, dtype)
    if is_called_on_null(name):
        return lambda row: function(*[part(row) for part in parts])
    return _strict(function, parts)


def _strict(implementation: Callable[..., Any], parts: tuple[Compiled, ...]) -> Compiled:
    if len(parts) == 1:
        (only,) = parts

        def evaluate_one(row: Row) -> Any:
            value = only(row)
            return None if value is None else implementation(value)

        return evaluate_one
    if len(parts) == 2:
        left, right = parts

        def evaluate_two(row: Row) -> Any:
            first = left(row)
            if first is None:
                return None
            second = right(row)
            return None if second is None else implementation(first, second)

        return evaluate_two

    def evaluate(row: Row) -> Any:
        values = [part(row) for part in parts]
        return None if None in values else implementation(*values)

    return evaluate


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
        return quotient if (a < 0) == (b < 0) else -quotient
    return _finite(a / b)


def _modulo(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        rest = abs(a) % abs(b)
        return rest if a >= 0 else -rest
    return math.fmod(a, b)


@lru_cache(maxsize=512)
def _like_pattern(pattern: str) -> re.Pattern[str]:
    parts = {"%": ".*", "_": "."}
    return re.compile("".join(parts.get(c, re.escape(c)) for c in pattern), re.DOTALL)


def _like(text: str, pattern: str) -> bool:
    return _like_pattern(pattern).fullmatch(text) is not None


_PLACES = 400
"""No number has a digit so far from the point."""


def _distance(*coordinates: float) -> float | None:
    half = len(coordinates) // 2
    return _finite(math.dist(coordinates[:half], coordinates[half:]))


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
    "||": lambda a, b: text_of(a) + text_of(b),
    "NOT": lambda a: not a,
    "NEGATE": lambda a: in_range(-a),
    "LIKE": _like,
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
    "REPLACE": str.replace,
    "DISTANCE": _distance,
    **NUMERIC_FUNCTIONS,
    **TEXT_FUNCTIONS,
    **TIME_FUNCTIONS,
}
"""Strict functions by name; NULL arguments never reach them. DISTANCE is Euclidean, in the unit of
its arguments: (x1, y1, x2, y2) or (x1, y1, z1, x2, y2, z2)."""
