"""Aggregate calls of a query as written: function, arguments and conditions; nothing is bound.

The forms of PostgreSQL next to `F(x)` and `F(DISTINCT x)` are FILTER (WHERE …), percentiles and
MODE WITHIN GROUP (ORDER BY x), STRING_AGG, and other names of a function.
"""

from dataclasses import dataclass, replace

from sqlglot import exp

from streamsql.algebra.aggregates import AggregateFunction
from streamsql.binder.names.environment import Environment
from streamsql.binder.names.refused_clauses import only
from streamsql.catalog.functions import FunctionDefinition

_PLAIN: dict[type[exp.Expr], AggregateFunction] = {
    exp.Count: AggregateFunction.COUNT,
    exp.Sum: AggregateFunction.SUM,
    exp.Avg: AggregateFunction.AVG,
    exp.Min: AggregateFunction.MIN,
    exp.Max: AggregateFunction.MAX,
    exp.ArgMin: AggregateFunction.ARG_MIN,
    exp.ArgMax: AggregateFunction.ARG_MAX,
    exp.Stddev: AggregateFunction.STDDEV_SAMP,
    exp.StddevSamp: AggregateFunction.STDDEV_SAMP,
    exp.StddevPop: AggregateFunction.STDDEV_POP,
    exp.Variance: AggregateFunction.VAR_SAMP,
    exp.VariancePop: AggregateFunction.VAR_POP,
    exp.LogicalAnd: AggregateFunction.BOOL_AND,
    exp.LogicalOr: AggregateFunction.BOOL_OR,
    exp.ArrayAgg: AggregateFunction.ARRAY_AGG,
    exp.Median: AggregateFunction.PERCENTILE_CONT,
    exp.Mode: AggregateFunction.MODE,
    # Any value will do, so every engine takes the same one, whatever came first.
    exp.AnyValue: AggregateFunction.MIN,
}
_NAMED = {
    "EVERY": AggregateFunction.BOOL_AND,
    "QUANTILE_CONT": AggregateFunction.PERCENTILE_CONT,
    "QUANTILE_DISC": AggregateFunction.PERCENTILE_DISC,
}
_ORDERED: dict[type[exp.Expr], AggregateFunction] = {
    exp.PercentileCont: AggregateFunction.PERCENTILE_CONT,
    exp.PercentileDisc: AggregateFunction.PERCENTILE_DISC,
    exp.Mode: AggregateFunction.MODE,
}
_PERCENTILES = (AggregateFunction.PERCENTILE_CONT, AggregateFunction.PERCENTILE_DISC)


@dataclass(frozen=True, slots=True)
class Written:
    """An aggregate call as it was written.

    Attributes:
        node: The call itself, without FILTER.
        arguments: As parsed.
        distinct: Each value, or each combination of values, once.
        parameter: The fraction of a percentile, or the separator of STRING_AGG, as parsed.
        descending: Whether the fraction counts from the greatest value.
        conditions: Of FILTER, and the argument of COUNT_IF; a row counts where all hold.
        definition: Of a user-defined aggregate.
    """

    function: AggregateFunction
    node: exp.Expr
    arguments: tuple[exp.Expr, ...]
    distinct: bool = False
    parameter: exp.Expr | None = None
    descending: bool = False
    conditions: tuple[exp.Expr, ...] = ()
    definition: FunctionDefinition | None = None


def is_aggregate(node: exp.Expr, environment: Environment) -> bool:
    """Whether a node is an aggregate call, whatever becomes of it."""
    if isinstance(node, exp.AggFunc):
        return True
    if not isinstance(node, exp.Anonymous):
        return False
    named = str(node.this).upper() in _NAMED
    return named or user_defined(node, environment, aggregate=True) is not None


def user_defined(
    node: exp.Expr, environment: Environment, *, aggregate: bool
) -> FunctionDefinition | None:
    """Return the user-defined aggregate, or scalar function, that a call means, if any."""
    if not isinstance(node, exp.Anonymous):
        return None
    found = environment.binding.catalog.find(str(node.this))
    if isinstance(found, FunctionDefinition) and found.aggregate == aggregate:
        return found
    return None


def written(node: exp.Expr, environment: Environment) -> Written | None:
    """Return the aggregate call that a node is, or None for another node."""
    match node:
        case exp.Filter():
            call = written(node.this, environment)
            if call is None:
                return None
            return replace(call, conditions=(node.expression.this, *call.conditions))
        case exp.WithinGroup():
            return _within_group(node, environment)
        case exp.CountIf():
            return _count_if(node, environment)
        case exp.GroupConcat():
            return _texts(node, environment)
        case exp.Anonymous():
            return _anonymous(node, environment)
        case _:
            function = _PLAIN.get(type(node))
            return None if function is None else _call(function, node, environment)


def _anonymous(node: exp.Anonymous, environment: Environment) -> Written | None:
    definition = user_defined(node, environment, aggregate=True)
    distinct, arguments = _listed(list(node.expressions))
    if definition is not None:
        return Written(
            AggregateFunction.USER, node, arguments, distinct=distinct, definition=definition
        )
    function = _NAMED.get(str(node.this).upper())
    if function is None:
        return None
    if function in _PERCENTILES:
        if len(arguments) != 2:
            raise environment.wrong_arguments(
                node,
                f"{str(node.this).upper()} takes a value and a fraction",
                f"write {_form(function)}",
            )
        value, fraction = arguments
        return Written(function, node, (value,), distinct=distinct, parameter=fraction)
    return Written(function, node, arguments, distinct=distinct)


def _count_if(node: exp.CountIf, environment: Environment) -> Written:
    """Return COUNT_IF(c), which counts the rows that COUNT(*) FILTER (WHERE c) counts."""
    more = node.args.get("zero_on_all_null")  # where sqlglot puts a second argument
    if more is not None or isinstance(node.this, exp.Distinct | exp.Star):
        raise environment.wrong_arguments(
            node,
            "COUNT_IF takes one condition",
            "COUNT_IF(x > 3), or COUNT(DISTINCT x) FILTER (WHERE x > 3)",
        )
    return Written(AggregateFunction.COUNT, node, (exp.Star(),), conditions=(node.this,))


def _listed(given: list[exp.Expr]) -> tuple[bool, tuple[exp.Expr, ...]]:
    if given and isinstance(given[0], exp.Distinct):
        return True, (*given[0].expressions, *given[1:])
    return False, tuple(given)


def _call(function: AggregateFunction, node: exp.Expr, environment: Environment) -> Written:
    given = [node.args[key] for key in ("this", "expression") if node.args.get(key) is not None]
    distinct, arguments = _listed(given)
    extra = [*(node.args.get("expressions") or []), *_more(node.args.get("count"))]
    arguments = (*arguments, *extra)
    if arguments and isinstance(arguments[0], exp.Order):
        arguments = (_unordered(function, arguments[0], environment), *arguments[1:])
    return Written(function, node, arguments, distinct=distinct)


def _more(value: object) -> list[exp.Expr]:
    return [value] if isinstance(value, exp.Expr) else []


def _unordered(function: AggregateFunction, order: exp.Order, environment: Environment) -> exp.Expr:
    """Return x of `ARRAY_AGG(x ORDER BY x)`; other orders than that of the values are refused."""
    keys = order.expressions
    value: exp.Expr = order.this
    distinct = isinstance(value, exp.Distinct) and len(value.expressions) == 1
    ordered = value.expressions[0] if distinct else value
    same = len(keys) == 1 and keys[0].this == ordered and not keys[0].args.get("desc")
    if function in (AggregateFunction.ARRAY_AGG, AggregateFunction.STRING_AGG) and same:
        return value
    raise environment.unsupported(
        order,
        f"ORDER BY inside {function.value} is not supported",
        hint="ARRAY_AGG(x) and STRING_AGG(x, ',') are in ascending order of x by themselves; "
        "ARG_MIN(x, by) and ARG_MAX(x, by) pick one value",
        code="unsupported_aggregate",
    )


def _texts(node: exp.GroupConcat, environment: Environment) -> Written:
    """Return STRING_AGG(x, separator)."""
    only(node, environment, "this", "separator")
    given = node.this
    if isinstance(given, exp.Order):
        given = _unordered(AggregateFunction.STRING_AGG, given, environment)
    distinct, arguments = _listed([given])
    separator = node.args.get("separator")
    return Written(
        AggregateFunction.STRING_AGG, node, arguments, distinct=distinct, parameter=separator
    )


def _form(function: AggregateFunction) -> str:
    short = "CONT" if function == AggregateFunction.PERCENTILE_CONT else "DISC"
    return f"PERCENTILE_{short}(0.5) WITHIN GROUP (ORDER BY x), or QUANTILE_{short}(x, 0.5)"


def _within_group(node: exp.WithinGroup, environment: Environment) -> Written:
    only(node, environment, "this", "expression")
    inner, order = node.this, node.expression
    function = _ORDERED.get(type(inner))
    mode = function == AggregateFunction.MODE
    more = inner.args.get("expression") is not None or isinstance(inner.this, exp.Distinct)
    if function is None or more or (mode and inner.this):
        raise environment.unsupported(
            node,
            f"{inner.sql():.40} WITHIN GROUP is not supported",
            hint=f"write {_form(AggregateFunction.PERCENTILE_CONT)}",
            code="unsupported_aggregate",
        )
    keys = order.expressions
    if len(keys) != 1:
        raise environment.wrong_arguments(
            node,
            f"{function.value} orders by one value",
            "MODE() WITHIN GROUP (ORDER BY x)" if mode else f"write {_form(function)}",
        )
    descending = bool(keys[0].args.get("desc"))
    if mode and descending:
        raise environment.unsupported(
            node,
            "MODE returns the smallest of the most frequent values",
            hint="leave DESC out",
            code="unsupported_aggregate",
        )
    return Written(
        function,
        node,
        (keys[0].this,),
        parameter=None if mode else inner.this,
        descending=descending,
    )
