"""What a group of a single row is in the output of an aggregation, without any accumulator.

Most groups of a view that keeps the best row per key hold one row. Its aggregates are columns of
that row, so neither counts nor ordered values need be kept for it.
"""

from collections.abc import Callable

from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.algebra.scalar import compile_row
from streamsql.data.types import DataType, Row

_ONE = Literal(1, DataType.INTEGER)


def lone_row_function(
    group: tuple[int, ...], aggregates: tuple[AggregateCall, ...]
) -> Callable[[Row], Row] | None:
    """Return the output row of a group that holds one row without NULLs, once.

    Args:
        group: Group columns.
        aggregates: Over the same row.

    Returns:
        None where an aggregate of one row is not simply a value of the row.
    """
    values: list[Expression] = []
    for call in aggregates:
        value = _of_one(call)
        if value is None:
            return None
        values.append(value)
    columns = [value.position for value in values if isinstance(value, Column)]
    if len(columns) == len(values):
        return picker(group + tuple(columns))
    key_of, rest_of = picker(group), compile_row(tuple(values))
    return lambda row: key_of(row) + rest_of(row)


def _of_one(call: AggregateCall) -> Expression | None:
    """Return an aggregate of one row, as an expression over it.

    The row has no NULLs, but what is computed from it may be NULL: then only MIN and MAX are what
    they are of. A sum of doubles makes 0.0 of -0.0, so it is no copy either.
    """
    first = call.arguments[0] if call.arguments else _ONE
    match call.function:
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return first
        case AggregateFunction.ARG_MIN | AggregateFunction.ARG_MAX:
            return first if isinstance(call.arguments[1], Column) else None
        case AggregateFunction.COUNT_ALL:
            return _ONE
        case AggregateFunction.COUNT:
            return _ONE if isinstance(first, Column) else None
        case AggregateFunction.SUM:
            return first if first.dtype != DataType.DOUBLE else None
        case _:
            return None
