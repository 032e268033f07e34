"""Scalar expressions: from parsed trees to typed, positional expressions.

`_PARTS` names the function that binds each kind of node; other nodes are refused. Columns,
constants and CAST are bound here.
"""

import math
from collections.abc import Callable

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.scalar_functions.scalar import cast
from streamsql.binder.expressions import (
    arithmetic,
    conditions,
    function_calls,
    function_forms,
    patterns,
)
from streamsql.binder.expressions.coercion import TIME_TEXTS, as_text, converted, time_value
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.binder.expressions.scalar_functions import PARSED
from streamsql.binder.names.environment import Environment, Scope
from streamsql.data.types import DataType
from streamsql.syntax.statement_parsers.type_names import type_named

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


AggregateHook = Callable[[exp.Expr], Expression | None]


class ExpressionBinder:
    """Binds expressions over one scope.

    `aggregates` receives every node first. It returns the column that stands for an aggregate, or
    None for another node; without it aggregates are refused.
    """

    def __init__(
        self, environment: Environment, scope: Scope, aggregates: AggregateHook | None = None
    ) -> None:
        self.environment = environment
        self.scope = scope
        self._aggregates = aggregates

    def over(self, environment: Environment, scope: Scope) -> "ExpressionBinder":
        """Return a binder over other names, without aggregates."""
        return ExpressionBinder(environment, scope)

    def bind(self, node: exp.Expr) -> Expression:
        """Return the typed expression."""
        outer = self.environment.outer
        outside = None if outer is None else outer.aggregate(node, self.environment)
        if outside is not None:
            return self.scope.read(outside)
        if self._aggregates is not None:
            found = self._aggregates(node)
            if found is not None:
                return found
        part = _PARTS.get(type(node))
        if isinstance(node, exp.Anonymous):
            part = _NAMED.get(str(node.this).upper(), part)
        if part is None:
            raise function_calls.refusal(self, node)
        return part(self, node)

    def predicate(self, node: exp.Expr, where: str) -> Expression:
        """Return a condition."""
        bound = self.bind(node)
        if bound.dtype not in (DataType.BOOLEAN, DataType.NULL):
            raise self.environment.error(
                node,
                f"{where} needs a condition, but this has type {bound.dtype}",
                hint="compare it with something, for example … > 0",
                code="not_a_condition",
            )
        return converted(bound, DataType.BOOLEAN)


_PARTS: dict[type[exp.Expr], Callable[[NodeBinder, exp.Expr], Expression]] = {
    exp.Column: bind_column,
    exp.Identifier: bind_identifier,
    exp.Dot: bind_dot,
    exp.Literal: bind_literal,
    exp.Null: bind_null,
    exp.Boolean: bind_boolean,
    exp.Paren: bind_paren,
    exp.Cast: bind_cast,
    exp.Interval: bind_interval,
    exp.And: conditions.bind_logic,
    exp.Or: conditions.bind_logic,
    exp.Not: conditions.bind_not,
    **dict.fromkeys(conditions.COMPARISONS, conditions.bind_comparison),
    exp.Is: conditions.bind_is,
    exp.NullSafeEQ: conditions.bind_null_safe,
    exp.NullSafeNEQ: conditions.bind_null_safe,
    exp.Between: conditions.bind_between,
    exp.In: conditions.bind_in,
    exp.Like: conditions.bind_like,
    exp.ILike: conditions.bind_like,
    exp.RegexpLike: patterns.bind_regexp,
    exp.RegexpILike: patterns.bind_regexp_folded,
    exp.SimilarTo: patterns.bind_similar,
    exp.Case: conditions.bind_case,
    exp.If: conditions.bind_if,
    exp.Coalesce: conditions.bind_choice,
    exp.Least: conditions.bind_choice,
    exp.Greatest: conditions.bind_choice,
    exp.Nullif: conditions.bind_nullif,
    **dict.fromkeys(arithmetic.ARITHMETIC, arithmetic.bind_arithmetic),
    exp.Neg: arithmetic.bind_negation,
    exp.DPipe: function_calls.bind_concatenation,
    **dict.fromkeys(PARSED, function_calls.bind_parsed),
    exp.Anonymous: function_calls.bind_anonymous,
    exp.Escape: conditions.bind_escape,
    **function_forms.FORMS,
}

_NAMED = {**function_forms.NAMED, "REGEXP_MATCHES": patterns.bind_regexp_call}
"""By the name of a function that sqlglot does not know."""
