"""Scalar functions and the compilation of expressions to Python functions.

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
from types import CodeType
from typing import Any

from streamsql.algebra.expression_source import ExpressionSource, tuple_source
from streamsql.algebra.expressions import Expression
from streamsql.algebra.like_patterns import like
from streamsql.algebra.regular_expressions import regexp_like
from streamsql.algebra.scalar_numbers import NUMERIC_FUNCTIONS, in_range, total
from streamsql.algebra.scalar_text import TEXT_FUNCTIONS
from streamsql.algebra.scalar_time import TIME_FUNCTIONS
from streamsql.algebra.user_functions import INSTALLED, is_called_on_null, is_user_function
from streamsql.data.delta import Delta
from streamsql.data.types import DataType, Row, Value, coerce, text_of
from streamsql.errors import InternalError

__all__ = [
    "FUNCTIONS",
    "Compiled",
    "cast",
    "compile_expression",
    "compile_filter",
    "compile_predicate",
    "compile_row",
    "expression_source",
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
    source = expression_source(_place)
    return _compiled(source, source.value(expression))


def compile_predicate(expression: Expression) -> Callable[[Row], bool]:
    """Return a function that is true only where the predicate is TRUE (not NULL)."""
    source = expression_source(_place)
    return _compiled(source, source.predicate(expression))


def compile_filter(expression: Expression) -> Callable[[Delta], Delta]:
    """Return a function that keeps the rows of a change for which a predicate is TRUE.

    The predicate stands inside the loop: a call for every row would cost as much as many predicates
    do.
    """
    source = expression_source(_place)
    kept = source.predicate(expression)
    text = f"{{row: weight for row, weight in delta.items() if {kept}}}"
    return _compiled(source, text, "delta")


def compile_row(expressions: tuple[Expression, ...]) -> Callable[[Row], Row]:
    """Return a function from input row to the row of all the expressions."""
    source = expression_source(_place)
    return _compiled(source, tuple_source([source.value(e) for e in expressions]))


def expression_source(place: Callable[[int], str]) -> ExpressionSource:
    """Return a writer of source for generated functions; see `ExpressionSource`."""
    return ExpressionSource(place, _FUNCTIONS)


def _place(position: int) -> str:
    return f"row[{position}]"


def _compiled(source: ExpressionSource, text: str, parameter: str = "row") -> Callable[[Any], Any]:
    code = _code(parameter, text)
    function: Callable[[Any], Any] = eval(code, dict(source.names))  # noqa: S307  (our own text)
    return function


@lru_cache(maxsize=4_096)
def _code(parameter: str, text: str) -> CodeType:
    """Return the code of a function of a row or a change; the same text is compiled once."""
    return compile(f"lambda {parameter}: {text}", "<expression>", "eval")


def key_of(positions: tuple[int, ...]) -> Callable[[Row], Row]:
    """Return a function that picks columns."""
    if len(positions) == 1:
        (only,) = positions
        return lambda row: (row[only],)
    return lambda row: tuple([row[p] for p in positions])


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


class _Functions:
    """What expressions may call: the functions below, and those of the user."""

    def strict(self, name: str, dtype: DataType) -> Callable[..., Any]:
        """Return a function that is called without NULLs."""
        if is_user_function(name):
            return INSTALLED.function(name, dtype)
        function = FUNCTIONS.get(name)
        if function is None:
            raise InternalError(f"no scalar function {name!r}")
        return function

    def takes_null(self, name: str) -> bool:
        """Whether a function is called on NULL, too."""
        return is_called_on_null(name)

    def cast(self, value: Value, dtype: DataType) -> Value:
        """Convert a value; NULL when it cannot be."""
        return cast(value, dtype)

    def in_range(self, value: float) -> float | None:
        """Return a number, or NULL where it is not finite or does not fit 64 bits."""
        return in_range(value)

    def closure(self, expression: Expression) -> Compiled:
        """Return a function from row to value."""
        return compile_expression(expression)


_FUNCTIONS = _Functions()


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


_PLACES = 400
"""No number has a digit so far from the point."""


_POINT = re.compile(r"\s*(?:POINT\s*Z?\s*)?(\()?([^()]*)(?(1)\))\s*", re.ASCII | re.IGNORECASE)
_COORDINATE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_LONGEST_POINT = 200


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
