"""Arguments of aggregates: accepted types and preparation."""

from decimal import Decimal
from functools import reduce

from sqlglot import exp

from streamsql.algebra.aggregates import AggregateFunction
from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.binder.expressions.aggregate_calls import Written
from streamsql.binder.expressions.coercion import as_text
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.binder.names.environment import Environment
from streamsql.data.types import DataType

_NUMBERS = (DataType.INTEGER, DataType.DOUBLE, DataType.NULL)
_TRUTH = (DataType.BOOLEAN, DataType.NULL)
_TEXTS = (DataType.TEXT, DataType.NULL)
_ACCEPTED = {
    AggregateFunction.SUM: (*_NUMBERS, DataType.INTERVAL),
    AggregateFunction.BOOL_AND: _TRUTH,
    AggregateFunction.BOOL_OR: _TRUTH,
    AggregateFunction.STRING_AGG: _TEXTS,
    **dict.fromkeys(
        (
            AggregateFunction.AVG,
            AggregateFunction.VAR_SAMP,
            AggregateFunction.VAR_POP,
            AggregateFunction.STDDEV_SAMP,
            AggregateFunction.STDDEV_POP,
            AggregateFunction.PERCENTILE_CONT,
        ),
        _NUMBERS,
    ),
}

# Repetitions change none of these.
IDEMPOTENT = (
    AggregateFunction.MIN,
    AggregateFunction.MAX,
    AggregateFunction.BOOL_AND,
    AggregateFunction.BOOL_OR,
    AggregateFunction.ARG_MIN,
    AggregateFunction.ARG_MAX,
)


def check_types(
    function: AggregateFunction,
    bound: tuple[Expression, ...],
    node: exp.Expr,
    environment: Environment,
) -> None:
    """Check the types of an aggregate's arguments."""
    accepted = _ACCEPTED.get(function)
    if accepted is None or bound[0].dtype in accepted:
        return
    if accepted is _TRUTH:
        what, hint = "conditions", "compare it with something, for example BOOL_OR(x > 0)"
    elif accepted is _TEXTS:
        what, hint = "texts", "CAST(… AS TEXT)"
    else:
        what, hint = "numbers", "CAST(… AS DOUBLE), or COUNT to count rows"
        if bound[0].dtype in (DataType.TIMESTAMP, DataType.INTERVAL):
            hint = "EXTRACT(EPOCH FROM …) gives seconds"
    raise environment.wrong_arguments(
        node, f"{function.value} takes {what}, but this has type {bound[0].dtype}", hint
    )


def combined(values: tuple[Expression, ...]) -> Expression:
    """Return one text for a combination of values, another one for every other combination.

    NULL where one of them is NULL. Every text goes behind its length, so `'a', 'bc'` and
    `'ab', 'c'` differ.
    """
    parts = []
    for value in values:
        text = as_text(value)
        length = as_text(Call("LENGTH", (text,), DataType.INTEGER))
        parts += [length, Literal(":", DataType.TEXT), text]
    return reduce(lambda a, b: Call("||", (a, b), DataType.TEXT), parts)


def readable(function: AggregateFunction, bound: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return arguments of ARRAY_AGG as its JSON shows them: times as text, intervals as seconds."""
    if function != AggregateFunction.ARRAY_AGG:
        return bound
    (value,) = bound
    match value.dtype:
        case DataType.TIMESTAMP:
            return (as_text(value),)
        case DataType.INTERVAL:
            part = Literal("EPOCH", DataType.TEXT)
            return (Call("EXTRACT INTERVAL", (part, value), DataType.DOUBLE),)
        case _:
            return bound


def fraction(call: Written, binder: NodeBinder) -> float:
    """Return the fraction of a percentile, from 0 to 1."""
    if call.parameter is None:
        return 0.5  # MEDIAN
    bound = binder.bind(call.parameter)
    value = bound.value if isinstance(bound, Literal) else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise binder.environment.error(
            call.parameter,
            "a percentile needs a constant from 0 to 1",
            hint="0.5 is the median; 95 % of the values do not exceed the 0.95 percentile",
            code="bad_fraction",
        )
    # Of values between neighbours; as written: 1 - 0.9 in doubles is less than 0.1.
    turned = call.descending and call.function == AggregateFunction.PERCENTILE_CONT
    return float(1 - Decimal(repr(value))) if turned else float(value)


def separator(call: Written, binder: NodeBinder) -> str:
    """Return the separator of a STRING_AGG; a comma where none is written."""
    if call.parameter is None:
        return ","
    bound = binder.bind(call.parameter)
    if isinstance(bound, Literal) and isinstance(bound.value, str):
        return bound.value
    raise binder.environment.wrong_arguments(
        call.parameter,
        "STRING_AGG needs a constant text between the values",
        "STRING_AGG(name, ', ')",
    )
