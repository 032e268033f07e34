"""Aggregates over all rows of a group at once.

Sums of DOUBLE are exact rationals rounded once, so the result does not depend on the order.
"""

import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

from streamsql.algebra.aggregates import discrete_place
from streamsql.algebra.exact_totals import exact_sum
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.algebra.scalar_functions.scalar import compile_expression, in_range
from streamsql.algebra.user_functions import INSTALLED
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
    if call.function == AggregateFunction.USER:
        return _by_user(call, [tuple(a(row) for a in arguments) for row in rows])
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
        case AggregateFunction.AVG:
            mean = sum(map(Fraction, values)) / len(values) if values else None
            return None if mean is None else _rounded(Fraction(mean), DataType.DOUBLE)
        case AggregateFunction.BOOL_AND:
            return all(values) if values else None
        case AggregateFunction.BOOL_OR:
            return any(values) if values else None
        case _:
            return _holistic(call, values) if values else None


def _holistic(call: AggregateCall, values: list[Any]) -> Value:
    match call.function:
        case AggregateFunction.ARRAY_AGG:
            return array_text(values)
        case AggregateFunction.PERCENTILE_CONT:
            return percentile(sorted(values), call.parameter)
        case AggregateFunction.EXACT_SUM:
            return exact_sum(values)
        case AggregateFunction.EXACT_SQUARES:
            return exact_sum(values, squared=True)
        case AggregateFunction.STRING_AGG:
            return call.separator.join(sorted(values))
        case AggregateFunction.PERCENTILE_DISC:
            return _plain(sorted(values)[discrete_place(len(values), call)])
        case AggregateFunction.MODE:
            counts = Counter(values)
            return _plain(min(counts, key=lambda value: (-counts[value], value)))
        case _:
            return _spread(call.function, values)


def _by_user(call: AggregateCall, rows: list[Row]) -> Value:
    chosen = list(dict.fromkeys(rows)) if call.distinct else rows
    aggregate = INSTALLED.aggregate(call.implementation, call.dtype)
    return aggregate.over(sorted(chosen, key=sort_key))


def _plain(value: Value) -> Value:
    """Return a value; a negative zero, equal to zero, is 0.0."""
    return value + 0.0 if isinstance(value, float) else value


def array_text(values: list[Any]) -> str:
    """Return values in row order as a JSON array; a negative zero, equal to zero, is 0.0.

    Examples:
        >>> array_text([2, 1]), array_text([-0.0])
        ('[1,2]', '[0.0]')
    """
    values = [value + 0.0 if isinstance(value, float) else value for value in values]
    ordered = sorted(values, key=lambda value: sort_key((value,)))
    return json.dumps(ordered, separators=(",", ":"), ensure_ascii=False)


def percentile(ordered: list[Any], fraction: float | None) -> float | None:
    """Return the value at a fraction of an ordered list, between neighbours in doubles.

    NULL where their difference is beyond the range of doubles.

    Examples:
        >>> percentile([1, 2, 4], 0.75)
        3.0
    """
    place = (len(ordered) - 1) * (0.5 if fraction is None else fraction)
    below = math.floor(place)
    low = float(ordered[below])
    if place == below:
        return low
    return in_range(low + (float(ordered[below + 1]) - low) * (place - below))


def _spread(function: AggregateFunction, values: list[Any]) -> Value:
    sample = function in (AggregateFunction.VAR_SAMP, AggregateFunction.STDDEV_SAMP)
    freedom = len(values) - sample
    if freedom <= 0:
        return None
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = _rounded(Fraction(sum((x - mean) ** 2 for x in exact)) / freedom, DataType.DOUBLE)
    if variance is None or function in (AggregateFunction.VAR_SAMP, AggregateFunction.VAR_POP):
        return variance
    return math.sqrt(float(variance))


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
