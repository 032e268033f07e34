"""Arithmetic: operand and result types of operators."""

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.binder.expressions.coercion import time_value
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.binder.names.environment import Environment
from streamsql.data.types import DataType

ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}

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
_SCALED = {
    ("*", DataType.INTERVAL, DataType.DOUBLE),
    ("*", DataType.DOUBLE, DataType.INTERVAL),
    ("/", DataType.INTERVAL, DataType.DOUBLE),
}
_NEGATIVE = (DataType.INTEGER, DataType.DOUBLE, DataType.INTERVAL, DataType.NULL)

_BEYOND = str(2**63)
"""Digits of the least INTEGER: without the sign it would not fit."""


def bind_arithmetic(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `+`, `-`, `*`, `/` and `%` over numbers and times."""
    operator = ARITHMETIC[type(node)]
    left, right = binder.bind(node.this), binder.bind(node.expression)
    if operator == "-":
        left = _as_timestamp(left, right, node, binder.environment)
        right = _as_timestamp(right, left, node, binder.environment)
    if (operator, left.dtype, right.dtype) in _SCALED:
        return _scaled(Call(operator, (left, right), DataType.DOUBLE))
    dtype = _result(operator, left, right, node, binder.environment)
    return Call(operator, (left, right), dtype)


def _scaled(microseconds: Expression) -> Expression:
    """Return a computed number of microseconds, rounded, as an INTERVAL."""
    whole = Call("CAST", (microseconds,), DataType.INTEGER)
    return Call("CAST", (whole,), DataType.INTERVAL)


def bind_negation(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `- x`; constants are folded but for 0.0."""
    if isinstance(node.this, exp.Literal) and node.this.is_int and node.this.name == _BEYOND:
        return Literal(-int(_BEYOND), DataType.INTEGER)
    operand = binder.bind(node.this)
    if operand.dtype not in _NEGATIVE:
        raise binder.environment.type_mismatch(
            node, f"{operand.dtype} has no negative", "- takes numbers"
        )
    match operand:
        case Literal(value=float(number)) if not number:
            # No constant is -0.0: to Python it equals 0.0, and so would plans of other values.
            return Call("NEGATE", (operand,), operand.dtype)
        case Literal(value=int() | float() as number, dtype=dtype) if number != -int(_BEYOND):
            return Literal(-number, dtype)
        case Literal(value=int()):  # its negative does not fit: NULL
            return Call("NEGATE", (operand,), operand.dtype)
        case Literal():
            return operand
        case _:
            return Call("NEGATE", (operand,), operand.dtype)


def _as_timestamp(
    side: Expression, other: Expression, node: exp.Expr, environment: Environment
) -> Expression:
    """Read a text constant next to `TIMESTAMP -` as a timestamp."""
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
    raise environment.type_mismatch(
        node, f"{left.dtype} {operator} {right.dtype} is not defined", _hint(operator, types)
    )


def _hint(operator: str, types: set[DataType]) -> str:
    if DataType.TIMESTAMP in types or DataType.INTERVAL in types:
        return "write a duration as INTERVAL '10 min'"
    if operator == "+" and DataType.TEXT in types:
        return "join text with ||"
    return f"{operator} takes numbers; CAST(… AS DOUBLE) turns text into one"
