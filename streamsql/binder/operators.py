"""Arithmetic: which types an operator takes and what comes out."""

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.binder.coercion import time_value
from streamsql.binder.environment import Environment
from streamsql.data.types import DataType

_TIME_RESULTS = {
    ("+", DataType.TIMESTAMP, DataType.INTERVAL): DataType.TIMESTAMP,
    ("+", DataType.INTERVAL, DataType.TIMESTAMP): DataType.TIMESTAMP,
    ("-", DataType.TIMESTAMP, DataType.INTERVAL): DataType.TIMESTAMP,
    ("-", DataType.TIMESTAMP, DataType.TIMESTAMP): DataType.INTERVAL,
    ("+", DataType.INTERVAL, DataType.INTERVAL): DataType.INTERVAL,
    ("-", DataType.INTERVAL, DataType.INTERVAL): DataType.INTERVAL,
    ("*", DataType.INTERVAL, DataType.INTEGER): DataType.INTERVAL,
    ("*", DataType.INTEGER, DataType.INTERVAL): DataType.INTERVAL,
    ("/", DataType.INTERVAL, DataType.INTEGER): DataType.INTERVAL,
    ("/", DataType.INTERVAL, DataType.INTERVAL): DataType.INTEGER,
}


def arithmetic(
    operator: str, left: Expression, right: Expression, node: exp.Expr, environment: Environment
) -> Expression:
    """Return `left operator right`.

    Raises:
        BindingError: The types do not fit.
    """
    left, right = _times(operator, left, right, node, environment)
    return Call(operator, (left, right), _result(operator, left, right, node, environment))


def negated(operand: Expression, node: exp.Expr, environment: Environment) -> Expression:
    """Return `- operand`; constants are folded.

    Raises:
        BindingError: The operand is no number.
    """
    if operand.dtype not in (
        DataType.INTEGER,
        DataType.DOUBLE,
        DataType.INTERVAL,
        DataType.NULL,
    ):
        raise environment.error(node, f"{operand.dtype} has no negative", hint="- takes numbers")
    if isinstance(operand, Literal):
        value = operand.value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return Literal(-value, operand.dtype) if number else operand  # type: ignore[operator]
    return Call("NEGATE", (operand,), operand.dtype)


def _times(
    operator: str, left: Expression, right: Expression, node: exp.Expr, environment: Environment
) -> tuple[Expression, Expression]:
    """Read a text constant next to `TIMESTAMP -` as a timestamp."""
    if operator == "-":
        left = _as_timestamp(left, right, node, environment)
        right = _as_timestamp(right, left, node, environment)
    return left, right


def _as_timestamp(
    side: Expression, other: Expression, node: exp.Expr, environment: Environment
) -> Expression:
    text = side.value if isinstance(side, Literal) else None
    if isinstance(text, str) and other.dtype == DataType.TIMESTAMP:
        return Literal(time_value(text, DataType.TIMESTAMP, node, environment), DataType.TIMESTAMP)
    return side


def _result(
    operator: str, left: Expression, right: Expression, node: exp.Expr, environment: Environment
) -> DataType:
    found = _TIME_RESULTS.get((operator, left.dtype, right.dtype))
    if found is not None:
        return found
    types = {left.dtype, right.dtype}
    if types <= {DataType.INTEGER, DataType.NULL}:
        return DataType.INTEGER
    if types <= {DataType.INTEGER, DataType.DOUBLE, DataType.NULL}:
        return DataType.DOUBLE
    raise environment.error(
        node,
        f"{left.dtype} {operator} {right.dtype} is not defined",
        hint=_hint(operator, types),
    )


def _hint(operator: str, types: set[DataType]) -> str:
    if DataType.TIMESTAMP in types or DataType.INTERVAL in types:
        return "write durations as INTERVAL '10 min'"
    if operator == "+" and DataType.TEXT in types:
        return "texts are joined with ||"
    return f"{operator} takes numbers; CAST(… AS DOUBLE) turns text into one"
