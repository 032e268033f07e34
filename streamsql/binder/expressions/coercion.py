"""Implicit conversions between the sides of comparisons and the alternatives of a value."""

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.scalar_functions.scalar import cast
from streamsql.binder.names.environment import Environment
from streamsql.data.durations import parse_duration
from streamsql.data.types import DataType, coerce, common_type

_TIMES = (DataType.TIMESTAMP, DataType.INTERVAL)
TIME_TEXTS = {DataType.TIMESTAMP: "TIMESTAMP TEXT", DataType.INTERVAL: "INTERVAL TEXT"}
"""The functions that write times, which are integers to engines."""


def converted(expression: Expression, dtype: DataType) -> Expression:
    """Return the expression as a value of a type it converts to implicitly."""
    if expression.dtype == dtype:
        return expression
    if isinstance(expression, Literal):
        return Literal(cast(expression.value, dtype), dtype)
    return Call("CAST", (expression,), dtype)


def as_text(expression: Expression) -> Expression:
    """Return `CAST(expression AS TEXT)`."""
    writer = TIME_TEXTS.get(expression.dtype)
    if writer is not None:
        return Call(writer, (expression,), DataType.TEXT)
    return converted(expression, DataType.TEXT)


def unified(
    expressions: list[Expression], node: exp.Expr, environment: Environment, what: str
) -> list[Expression]:
    """Convert alternatives of one value to their common type."""
    expressions = _time_literals(expressions, node, environment)
    dtype = DataType.NULL
    for expression in expressions:
        common = common_type(dtype, expression.dtype)
        if common is None:
            raise environment.type_mismatch(
                node,
                f"{what} mixes {dtype} and {expression.dtype}",
                f"CAST one of them, for example CAST(… AS {dtype})",
            )
        dtype = common
    return [converted(expression, dtype) for expression in expressions]


def comparable(
    left: Expression, right: Expression, node: exp.Expr, environment: Environment
) -> tuple[Expression, Expression]:
    """Return both sides of a comparison, times written as text converted.

    Numbers of different types compare as they are.
    """
    left, right = _time_literals([left, right], node, environment)
    if common_type(left.dtype, right.dtype) is None:
        raise environment.type_mismatch(
            node,
            f"{left.dtype} cannot be compared with {right.dtype}",
            _comparison_hint(left, right),
        )
    return left, right


def _comparison_hint(left: Expression, right: Expression) -> str:
    for one, other in ((left, right), (right, left)):
        if other.dtype == DataType.TEXT and one.dtype.is_numeric:
            if isinstance(other, Literal):
                return "write the number without quotes"
            return f"CAST(… AS {one.dtype}) turns text into a number"
    return f"CAST one side, for example CAST(… AS {left.dtype})"


def _time_literals(
    expressions: list[Expression], node: exp.Expr, environment: Environment
) -> list[Expression]:
    """Read text constants as times where they meet times."""
    times = {e.dtype for e in expressions if e.dtype in _TIMES}
    if len(times) != 1:
        return expressions
    (dtype,) = times
    return [_as_time(e, dtype, node, environment) for e in expressions]


def _as_time(
    expression: Expression, dtype: DataType, node: exp.Expr, environment: Environment
) -> Expression:
    if not (isinstance(expression, Literal) and isinstance(expression.value, str)):
        return expression
    return Literal(time_value(expression.value, dtype, node, environment), dtype)


def time_value(text: str, dtype: DataType, node: exp.Expr, environment: Environment) -> int:
    """Return a constant time or duration in microseconds."""
    try:
        value = parse_duration(text) if dtype == DataType.INTERVAL else coerce(text, dtype)
    except ValueError as error:
        shape = "'10 min'" if dtype == DataType.INTERVAL else "'2026-01-01T12:00:00Z'"
        raise environment.error(
            node, str(error), hint=f"write for example {shape}", code="bad_literal"
        ) from None
    if not isinstance(value, int):
        raise environment.error(node, f"{text!r:.60} is not a {dtype}", code="bad_literal")
    return value
