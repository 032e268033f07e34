"""The state of aggregates: an accumulator per function, and which of them read the same slot.

To add an aggregate is to write a class with the methods of `Accumulator` and name it in
`accumulator_for`. Groups of one row need no accumulators where `small_groups` knows all aggregates;
one that it does not name is not affected.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from stream_engine.operators.aggregates.accumulator import Accumulator, Changes
from stream_engine.operators.aggregates.array_aggregate import ArrayAggregate
from stream_engine.operators.aggregates.counting_accumulators import (
    BooleanAggregate,
    Count,
    CountAll,
    ExactSquares,
    ExactSum,
    Sum,
    SumOfExactSums,
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
from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import AggregateCall
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.algebra.scalar_functions.scalar import compile_row
from streamsql.data.types import DataType, Row, Value


@dataclass(frozen=True, slots=True)
class AggregateSlots:
    """The state of a group: a slot for all aggregates that are functions of the same.

    Attributes:
        arguments: What has to be known of a row.
        accumulators: One per slot.
        results: Per aggregate its function, and the slot it reads.
    """

    arguments: tuple[Expression, ...]
    accumulators: list[Accumulator]
    results: list[tuple[Callable[[Any], Value], int]]


def row_of(expressions: tuple[Expression, ...]) -> Callable[[Row], Row]:
    """Return a function from a row to the row of expressions; columns alone are only picked."""
    columns = tuple(part.position for part in expressions if isinstance(part, Column))
    return picker(columns) if len(columns) == len(expressions) else compile_row(expressions)


def slots_of(aggregates: tuple[AggregateCall, ...], position: int = 0) -> AggregateSlots:
    """Return the slots of aggregates over the same rows.

    Args:
        aggregates: In the order of the output.
        position: Where the arguments begin in the rows that the accumulators see.
    """
    arguments: list[Expression] = []
    accumulators: list[Accumulator] = []
    results: list[tuple[Callable[[Any], Value], int]] = []
    known: dict[Hashable, tuple[int, int]] = {}
    for call in aggregates:
        state = _state_of(call)
        slot, place = known.get(state, (len(accumulators), position + len(arguments)))
        accumulator = accumulator_for(call, place)
        results.append((accumulator.result, slot))
        if slot == len(accumulators):
            known[state] = (slot, place)
            accumulators.append(accumulator)
            arguments.extend(call.arguments)
    return AggregateSlots(tuple(arguments), accumulators, results)


def _state_of(call: AggregateCall) -> Hashable:
    """Return what is equal for aggregates with the same slot; a new object for one of its own.

    Arguments count as the same where they are written the same: 0.0 and -0.0 are equal numbers.
    """
    match call.function:
        case F.MIN | F.MAX:
            return ("order", repr(call.arguments), False)
        case F.PERCENTILE_CONT | F.PERCENTILE_DISC:
            return ("order", repr(call.arguments), call.distinct)
        case F.EXACT_SUM if call.arguments[0].dtype == DataType.TEXT:
            return object()
        case F.SUM | F.AVG | F.EXACT_SUM:
            return ("sum", repr(call.arguments), call.distinct)
        case F.VAR_SAMP | F.VAR_POP | F.STDDEV_SAMP | F.STDDEV_POP | F.EXACT_SQUARES:
            return ("variance", repr(call.arguments), call.distinct)
        case F.BOOL_AND | F.BOOL_OR:
            return ("truth", repr(call.arguments), call.distinct)
        case F.ARG_MIN | F.ARG_MAX:
            return ("pairs", repr(call.arguments), False)
        case F.COUNT_ALL | F.COUNT:
            return (call.function, repr(call.arguments), call.distinct)
        case _:
            return object()


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
        case F.EXACT_SUM | F.EXACT_SQUARES:
            inner = _exact_sum(call, position)
        case F.USER:
            return UserAccumulator(call, position)
    return DistinctValues(inner, position) if call.distinct else inner


def _exact_sum(call: AggregateCall, position: int) -> Accumulator:
    dtype = call.arguments[0].dtype
    if call.function == F.EXACT_SQUARES:
        return ExactSquares(position)
    if dtype == DataType.TEXT:
        return SumOfExactSums(position)
    return ExactSum(position, double=dtype == DataType.DOUBLE)
