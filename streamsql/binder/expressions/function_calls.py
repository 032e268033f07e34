"""Calls of built-in and user-defined functions, and errors about other nodes."""

from typing import Any

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression
from streamsql.algebra.user_functions import implementation_name
from streamsql.binder.expressions.aggregate_calls import user_defined, written
from streamsql.binder.expressions.coercion import TIME_TEXTS, as_text, converted
from streamsql.binder.expressions.function_expansion import expanded
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.binder.expressions.scalar_functions import (
    KNOWN_NAMES,
    PARSED,
    SIGNATURES,
    SPELLINGS,
    Signature,
)
from streamsql.binder.names.environment import Environment
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.types import DataType, common_type
from streamsql.errors import QueryError
from streamsql.syntax.cursor import did_you_mean


def bind_user_function(
    binder: NodeBinder, definition: FunctionDefinition, node: exp.Expr
) -> Expression:
    """Bind a call of a user-defined scalar function."""
    bound = tuple(binder.bind(argument) for argument in node.expressions)
    arguments = checked_arguments(definition, bound, node, binder.environment)
    if definition.body:
        return expanded(binder, definition, arguments, node)
    return Call(implementation_of(definition), arguments, definition.result)


def implementation_of(definition: FunctionDefinition) -> str:
    """Return what a plan names the implementation."""
    return implementation_name(definition.implementation, on_null=definition.on_null)


def checked_arguments(
    definition: FunctionDefinition,
    bound: tuple[Expression, ...],
    node: exp.Expr,
    environment: Environment,
) -> tuple[Expression, ...]:
    """Return arguments as values of the types of the parameters."""
    types = definition.parameters.dtypes
    fits = len(bound) == len(types) and all(
        argument.dtype == DataType.NULL or common_type(argument.dtype, dtype) == dtype
        for argument, dtype in zip(bound, types, strict=True)
    )
    if not fits:
        given = ", ".join(argument.dtype for argument in bound)
        raise environment.wrong_arguments(
            node, f"{definition.name} does not take ({given})", f"it is {definition.usage}"
        )
    return tuple(converted(a, dtype) for a, dtype in zip(bound, types, strict=True))


_QUERY = ("a query inside an expression is not supported", "put it into FROM and join with it")
_WRITTEN: dict[type[exp.Expr], str] = {exp.GroupConcat: "STRING_AGG"}
_LEVELS = "GROUP BY ROLLUP (a, b), or GROUP BY GROUPING SETS ((a, b), a, ())"
_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Rollup: ("ROLLUP must directly follow GROUP BY", _LEVELS),
    exp.Cube: ("CUBE must directly follow GROUP BY", _LEVELS),
    exp.GroupingSets: ("GROUPING SETS must directly follow GROUP BY", _LEVELS),
    exp.Exists: ("EXISTS (…) is not supported", "join with the inner query instead"),
    exp.Query: _QUERY,
    exp.Window: (
        "window functions are allowed only in the select list, ORDER BY and QUALIFY",
        "compute it in a query in FROM and compare its column, or write QUALIFY",
    ),
    exp.Filter: ("FILTER (WHERE …) is allowed only after aggregates", "use CASE WHEN … THEN … END"),
    exp.Rand: (
        "RANDOM() is not supported: a result must not change without a change of its inputs",
        "leave it out",
    ),
    exp.BitwiseXor: ("^ is not supported", "write POWER(base, exponent)"),
    exp.Binary: ("this operator is not supported", "operators are + - * / % || and comparisons"),
    exp.CurrentTimestamp: (
        "the current time is not a value: the result would change at every tick",
        "use a window such as s [RANGE 10 MINUTES]",
    ),
    exp.CurrentDate: ("the current date is not a value", "use a window on the stream"),
    exp.Star: ("* is not a value in this place", "name the column"),
    exp.Placeholder: ("parameters are not supported", "write the value itself"),
    exp.Parameter: ("parameters are not supported", "write the value itself"),
    exp.Bracket: (
        "columns hold single values, not arrays",
        "a window follows the name of a stream",
    ),
}
_CODES: dict[type[exp.Expr], str] = {
    exp.CurrentTimestamp: "current_time",
    exp.Window: "unsupported_window",
}
_NEED_OVER = (
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.PercentRank,
    exp.CumeDist,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
)


def bind_parsed(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind a function that sqlglot knows."""
    name, wanted = PARSED[type(node)]
    given = [node.args.get(argument) for argument in wanted]
    if any(key not in wanted and _is_content(value) for key, value in node.args.items()):
        raise binder.environment.unsupported(
            node,
            f"{name} does not take these arguments",
            hint=f"write {SIGNATURES[name][0].usage}",
            code="wrong_arguments",
        )
    return bind_call(binder, name, [a for a in given if isinstance(a, exp.Expr)], node)


def bind_anonymous(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind a function that only we know, such as `distance`."""
    name = str(node.this).upper()
    definition = user_defined(node, binder.environment, aggregate=False)
    if definition is not None:
        return bind_user_function(binder, definition, node)
    name = SPELLINGS.get(name, name)
    if name not in SIGNATURES:
        raise refusal(binder, node)
    return bind_call(binder, name, list(node.expressions), node)


def bind_concatenation(binder: NodeBinder, node: exp.Expr) -> Expression:
    """Bind `||`, which writes values of other types as CAST to TEXT does."""
    sides = [binder.bind(node.this), binder.bind(node.expression)]
    texts = [as_text(side) if side.dtype in TIME_TEXTS else side for side in sides]
    return Call("||", tuple(texts), DataType.TEXT)


def refusal(binder: NodeBinder, node: exp.Expr) -> QueryError:
    """Return the error for a node that no part of the binder takes."""
    environment = binder.environment
    call = written(node, environment)
    if call is not None:
        name = call.definition.name if call.definition is not None else call.function.value
        return environment.error(
            node,
            f"the aggregate {name} cannot stand here",
            hint="put conditions on aggregates into HAVING",
            code="misplaced_aggregate",
        )
    if isinstance(node, _NEED_OVER):
        name = node.sql_name()
        return environment.wrong_arguments(
            node,
            f"{name} is a window function and needs OVER (…)",
            f"{node.sql()} OVER (PARTITION BY k ORDER BY x)",
        )
    if isinstance(node, exp.AggFunc):
        return environment.unsupported(
            node,
            f"the aggregate {_WRITTEN.get(type(node), node.sql_name())} is not supported",
            hint="aggregates are COUNT, SUM, AVG, MIN, MAX, ANY_VALUE, ARG_MIN, ARG_MAX, STDDEV, "
            "VARIANCE, MEDIAN, PERCENTILE_CONT, PERCENTILE_DISC, MODE, ARRAY_AGG, STRING_AGG, "
            "BOOL_AND, BOOL_OR",
            code="unsupported_aggregate",
        )
    for kind, (message, hint) in _REFUSED.items():
        if isinstance(node, kind):
            code = _CODES.get(kind, "unsupported_expression")
            return environment.unsupported(node, message, hint=hint, code=code)
    if not isinstance(node, exp.Func):
        return environment.unsupported(
            node,
            "this expression is not supported",
            hint="see the language reference for operators and functions",
            code="unsupported_expression",
        )
    name = str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()
    if name.upper() == "NOW":
        message, hint = _REFUSED[exp.CurrentTimestamp]
        return environment.unsupported(node, message, hint=hint, code="current_time")
    hint = did_you_mean(name.upper(), KNOWN_NAMES, f"functions: {', '.join(KNOWN_NAMES)}")
    return environment.error(
        node, f"there is no function {name!r:.40}", hint=hint, code="unknown_function"
    )


def bind_call(
    binder: NodeBinder, name: str, arguments: list[exp.Expr], node: exp.Expr
) -> Expression:
    """Return a call of a function of the table."""
    bound = [binder.bind(argument) for argument in arguments]
    for signature in SIGNATURES[name]:
        if _accepts(signature, bound):
            types = tuple(argument.dtype for argument in bound)
            return Call(name, tuple(bound), signature.result(types))
    usage = " or ".join(signature.usage for signature in SIGNATURES[name])
    types_text = ", ".join(argument.dtype for argument in bound)
    raise binder.environment.wrong_arguments(
        node, f"{name} does not take ({types_text})", f"write {usage}"
    )


def _accepts(signature: Signature, arguments: list[Expression]) -> bool:
    if not signature.least <= len(arguments) <= len(signature.arguments):
        return False
    return all(
        argument.dtype in (*accepted, DataType.NULL)
        for argument, accepted in zip(arguments, signature.arguments, strict=False)
    )


def _is_content(value: Any) -> bool:
    return isinstance(value, exp.Expr) or (isinstance(value, list) and bool(value))
