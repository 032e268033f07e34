"""Aggregates over all rows of a group at once.

Sums of DOUBLE are exact rationals rounded once, so the result does not depend on the order.
"""

from fractions import Fraction

from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.algebra.scalar import compile_expression, in_range
from streamsql.data.delta import sort_key
from streamsql.data.types import DataType, Row, Value


def aggregate(call: AggregateCall, rows: list[Row]) -> Value:
    """Return the value of one aggregate over a group's rows (a bag, as a list)."""
    if call.function == AggregateFunction.COUNT_ALL:
        return len(rows)
    arguments = [compile_expression(argument) for argument in call.arguments]
    if call.function in (AggregateFunction.ARG_MIN, AggregateFunction.ARG_MAX):
        pairs = [(arguments[1](row), arguments[0](row)) for row in rows]
        return _best_argument(call.function, [pair for pair in pairs if pair[0] is not None])
    values = [value for row in rows if (value := arguments[0](row)) is not None]
    if call.distinct:
        values = list(dict.fromkeys(values))
    match call.function:
        case AggregateFunction.COUNT:
            return len(values)
        case AggregateFunction.MIN:
            return min(values, default=None)
        case AggregateFunction.MAX:
            return max(values, default=None)
        case AggregateFunction.SUM:
            return _rounded(sum(map(Fraction, values)), call.dtype) if values else None
        case _:
            mean = sum(map(Fraction, values)) / len(values) if values else None
            return None if mean is None else _rounded(Fraction(mean), DataType.DOUBLE)


def _best_argument(function: AggregateFunction, pairs: list[tuple[Value, Value]]) -> Value:
    if not pairs:
        return None
    orders = [sort_key((by,)) for by, _ in pairs]
    best = min(orders) if function == AggregateFunction.ARG_MIN else max(orders)
    ties = [value for order, (_, value) in zip(orders, pairs, strict=True) if order == best]
    return min(ties, key=lambda value: sort_key((value,)))


def _rounded(total: Fraction | int, dtype: DataType) -> Value:
    if dtype != DataType.DOUBLE:
        return in_range(int(total))
    try:
        return float(total)
    except OverflowError:
        return None
