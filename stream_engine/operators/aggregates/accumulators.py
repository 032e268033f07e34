"""Per-group accumulators of the aggregate functions, by name.

To add an aggregate is to write a class with the methods of `Accumulator` and name it in
`accumulator_for`. Groups of one row need no accumulators where `small_groups` knows all aggregates;
one that it does not name is not affected.
"""

from typing import Any

from typing_extensions import override

from stream_engine.operators.aggregates.accumulator import Accumulator, Changes
from stream_engine.operators.aggregates.array_aggregate import ArrayAggregate
from stream_engine.operators.aggregates.counting_accumulators import (
    BooleanAggregate,
    Count,
    CountAll,
    Sum,
    Variance,
)
from stream_engine.operators.aggregates.ordered_accumulators import (
    ArgExtremum,
    DiscretePercentile,
    Extremum,
    Mode,
    Percentile,
    StringAggregate,
)
from stream_engine.operators.aggregates.user_aggregate import UserAccumulator
from streamsql.algebra.operators import AggregateCall
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.data.types import DataType, Value


class DistinctValues(Accumulator):
    """An aggregate over DISTINCT values: passes a value on when it appears or vanishes.

    The slot is (weights by value, slot of the aggregate).
    """

    def __init__(self, inner: Accumulator, position: int) -> None:
        self._inner = inner
        self._position = position

    @override
    def empty(self) -> tuple[dict[Value, int], Any]:
        return ({}, self._inner.empty())

    @override
    def update(self, slot: tuple[dict[Value, int], Any], changes: Changes) -> Any:
        position = self._position
        weights, inner = slot
        passed: Changes = []
        for row, weight in changes:
            value = row[position]
            old = weights.get(value, 0)
            new = old + weight
            if new:
                weights[value] = new
            else:
                del weights[value]
            if old <= 0 < new:
                passed.append((row, 1))
            elif new <= 0 < old:
                passed.append((row, -1))
        return (weights, self._inner.update(inner, passed) if passed else inner)

    @override
    def result(self, slot: tuple[dict[Value, int], Any]) -> Value:
        return self._inner.result(slot[1])

    @override
    def rows(self, slot: tuple[dict[Value, int], Any]) -> int:
        return len(slot[0])


def accumulator_for(call: AggregateCall, position: int) -> Accumulator:
    """Return the accumulator of an aggregate whose arguments start at a position.

    MIN, MAX, ARG_MIN and ARG_MAX are the same with and without DISTINCT.
    """
    function = call.function
    inner: Accumulator
    match function:
        case F.COUNT_ALL:
            return CountAll()
        case F.MIN | F.MAX:
            return Extremum(position, minimum=function == F.MIN)
        case F.ARG_MIN | F.ARG_MAX:
            minimum = function == F.ARG_MIN
            return ArgExtremum(position, position + 1, minimum=minimum)
        case F.COUNT:
            inner = Count(position)
        case F.VAR_SAMP | F.VAR_POP | F.STDDEV_SAMP | F.STDDEV_POP:
            sample, root = function in (F.VAR_SAMP, F.STDDEV_SAMP), function.startswith("STDDEV")
            inner = Variance(position, sample=sample, root=root)
        case F.BOOL_AND | F.BOOL_OR:
            inner = BooleanAggregate(position, every=function == F.BOOL_AND)
        case F.PERCENTILE_CONT:
            inner = Percentile(position, 0.5 if call.parameter is None else call.parameter)
        case F.ARRAY_AGG:
            inner = ArrayAggregate(position, call.arguments[0].dtype)
        case F.PERCENTILE_DISC:
            inner = DiscretePercentile(position, call)
        case F.MODE:
            inner = Mode(position)
        case F.STRING_AGG:
            inner = StringAggregate(position, call.separator)
        case F.SUM | F.AVG:
            double = call.arguments[0].dtype == DataType.DOUBLE
            inner = Sum(position, double=double, mean=function == F.AVG)
        case F.USER:
            return UserAccumulator(call, position)
    return DistinctValues(inner, position) if call.distinct else inner
