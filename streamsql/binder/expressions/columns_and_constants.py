"""Leaves of expressions: columns, constants, CAST and INTERVAL."""

import math

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.scalar import cast
from streamsql.binder.expressions.coercion import TIME_TEXTS, as_text, time_value
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.data.types import DataType
from streamsql.syntax.create_statements import type_named

_TIMES = (DataType.TIMESTAMP, DataType.INTERVAL)
_CAST_HINTS = {
    (DataType.INTEGER, DataType.TIMESTAMP): "TO_TIMESTAMP(seconds since 1970)",
    (DataType.DOUBLE, DataType.TIMESTAMP): "TO_TIMESTAMP(seconds since 1970)",
    (DataType.TIMESTAMP, DataType.INTEGER): "EXTRACT(EPOCH FROM …) gives seconds since 1970",
    (DataType.TIMESTAMP, DataType.DOUBLE): "EXTRACT(EPOCH FROM …) gives seconds since 1970",
    (DataType.INTERVAL, DataType.INTEGER): "EXTRACT(EPOCH FROM …) gives seconds",
    (DataType.INTERVAL, DataType.DOUBLE): "EXTRACT(EPOCH FROM …) gives seconds",
    (DataType.INTEGER, DataType.INTERVAL): "INTERVAL '1 s' * number",
    (DataType.DOUBLE, DataType.INTERVAL): "INTERVAL '1 s' * number",
    (DataType.TEXT, DataType.INTERVAL): "constants only: INTERVAL '10 min'",
}


def bind_column(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `name` or `table.name`."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        raise binder.environment.unsupported(
            node,
            "* is not a value in this place",
            hint="name the column",
            code="unsupported_expression",
        )
    return binder.scope.read(binder.scope.resolve(node, binder.environment))


def bind_identifier(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind a bare name that sqlglot did not wrap into a column."""
    column = exp.Column(this=node.copy())
    column.meta.update(node.meta)
    return bind_column(binder, column)


def bind_dot(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Refuse `a.b.c.d`."""
    raise binder.environment.error(
        node,
        "write a column as name or table.name",
        hint="nested columns are not supported",
        code="bad_column_name",
    )


def bind_literal(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind a text or a number."""
    if node.args.get("is_string"):
        return Literal(node.name, DataType.TEXT)
    try:
        return number_literal(node.name)
    except ValueError:
        raise binder.environment.error(
            node,
            f"{node.name!r:.40} is not a number",
            hint="numbers must fit 64 bits",
            code="bad_literal",
        ) from None


def number_literal(text: str) -> Literal:
    """Return a numeric constant: INTEGER when it is all digits, else DOUBLE.

    Raises:
        ValueError: It is no number, or does not fit 64 bits.

    Examples:
        >>> number_literal("7").value, number_literal("1e3").value
        (7, 1000.0)
    """
    if text.isascii() and text.isdigit():
        if len(text) > 19 or int(text) >= 2**63:
            raise ValueError(text)
        return Literal(int(text), DataType.INTEGER)
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return Literal(number, DataType.DOUBLE)


def bind_null(_binder: NodeBinder, _node: exp.Expr) -> Expression:
    """Bind NULL."""
    return Literal(None, DataType.NULL)


def bind_boolean(_binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind TRUE or FALSE."""
    return Literal(bool(node.this), DataType.BOOLEAN)


def bind_paren(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind what parentheses hold."""
    return binder.bind(node.this)


def bind_interval(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `INTERVAL '10 min'`."""
    amount, unit = node.args.get("this"), node.args.get("unit")
    if unit is not None and not isinstance(unit, exp.Var):
        raise binder.environment.unsupported(
            node,
            "an interval has one unit outside the quotes",
            hint="INTERVAL '1 day 2 h 30 min'",
            code="unsupported_expression",
        )
    if not isinstance(amount, exp.Literal):
        raise binder.environment.unsupported(
            node,
            "an interval must be a constant",
            hint="INTERVAL '1 min' * number",
            code="not_constant",
        )
    text = f"{amount.name} {unit.name}" if unit is not None else amount.name
    micros = time_value(text, DataType.INTERVAL, node, binder.environment)
    return Literal(micros, DataType.INTERVAL)


def bind_cast(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `CAST(x AS type)`, `x::type` and `TIMESTAMP '…'`; constants are folded."""
    written = node.args["to"].sql()
    target = type_named(written)
    if target is None:
        raise binder.environment.error(
            node,
            f"there is no type {written!r:.40}",
            hint="types are TEXT, INTEGER, DOUBLE, BOOLEAN, TIMESTAMP and INTERVAL",
            code="unknown_type",
        )
    value = binder.bind(node.this)
    if value.dtype == target:
        return value
    if isinstance(value, Literal) and isinstance(value.value, str) and target in _TIMES:
        return Literal(time_value(value.value, target, node, binder.environment), target)
    if target == DataType.TEXT and value.dtype in TIME_TEXTS:
        return as_text(value)
    if not _castable(value.dtype, target):
        raise binder.environment.unsupported(
            node,
            f"{value.dtype} cannot be cast to {target}",
            hint=_CAST_HINTS.get(
                (value.dtype, target), "subtract two TIMESTAMPs to get an INTERVAL"
            ),
            code="unsupported_cast",
        )
    if isinstance(value, Literal):
        return _constant(binder, value, target, node)
    return Call("CAST", (value,), target)


def _castable(source: DataType, target: DataType) -> bool:
    if source == DataType.NULL or (source, target) == (DataType.TEXT, DataType.TIMESTAMP):
        return True
    return source not in _TIMES and target not in _TIMES


def _constant(binder: NodeBinder, value: Literal, target: DataType, node: exp.Expr) -> Literal:
    result = cast(value.value, target)
    if result is None and value.value is not None:
        raise binder.environment.error(
            node,
            f"{value.value!r:.60} is not a {target}",
            hint="write a value of that type",
            code="bad_literal",
        )
    return Literal(result, target)
