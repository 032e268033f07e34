"""Aggregates of one row, and of few, looked up in the rows without any accumulator."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.algebra.scalar import compile_row, in_range
from streamsql.data.delta import Delta
from streamsql.data.types import DataType, Row, Value

_ONE = Literal(1, DataType.INTEGER)


def lone_row_function(
    group: tuple[int, ...], aggregates: tuple[AggregateCall, ...]
) -> Callable[[Row], Row] | None:
    """Return the output row of a group that holds one row without NULLs, once.

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


def few_rows_function(aggregates: tuple[AggregateCall, ...]) -> Callable[[Delta], Row] | None:
    """Return the aggregates of rows without NULLs and with positive weights, at least one.

    Returns:
        None where an aggregate is not simply found among the values of columns.
    """
    found = [_of_few(call) for call in aggregates]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    return lambda rows: tuple([part(rows) for part in parts])


def _of_few(call: AggregateCall) -> Callable[[Delta], Value] | None:
    columns = [a.position for a in call.arguments if isinstance(a, Column)]
    if len(columns) < len(call.arguments):
        return None
    first: Callable[[Row], Any] = itemgetter(columns[0] if columns else 0)
    match call.function:
        case AggregateFunction.MIN:
            return lambda rows: min(map(first, rows))
        case AggregateFunction.MAX:
            return lambda rows: max(map(first, rows))
        case AggregateFunction.ARG_MIN:
            both: Callable[[Row], Any] = itemgetter(columns[1], columns[0])
            return lambda rows: min(map(both, rows))[1]
        case AggregateFunction.ARG_MAX:
            by: Callable[[Row], Any] = itemgetter(columns[1])
            return lambda rows: _least_where_greatest(rows, by, first)
        case AggregateFunction.COUNT | AggregateFunction.SUM if call.distinct:
            return None
        case AggregateFunction.COUNT_ALL | AggregateFunction.COUNT:
            return lambda rows: sum(rows.values())
        case AggregateFunction.SUM if call.arguments[0].dtype != DataType.DOUBLE:
            return lambda rows: in_range(sum([first(row) * rows[row] for row in rows]))
        case _:
            return None


def _least_where_greatest(
    rows: Delta, by: Callable[[Row], Any], value: Callable[[Row], Any]
) -> Value:
    greatest = max(map(by, rows))
    found: Value = min([value(row) for row in rows if by(row) == greatest])
    return found
