"""Which aggregates of a group read the same state: MIN and MAX of a column, SUM and AVG."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from stream_engine.operators.aggregates.accumulator import Accumulator
from stream_engine.operators.aggregates.accumulators import accumulator_for
from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import AggregateCall
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.algebra.scalar import compile_row
from streamsql.data.types import Row, Value


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
        case F.SUM | F.AVG:
            return ("sum", repr(call.arguments), call.distinct)
        case F.VAR_SAMP | F.VAR_POP | F.STDDEV_SAMP | F.STDDEV_POP:
            return ("variance", repr(call.arguments), call.distinct)
        case F.BOOL_AND | F.BOOL_OR:
            return ("truth", repr(call.arguments), call.distinct)
        case F.ARG_MIN | F.ARG_MAX:
            return ("pairs", repr(call.arguments), False)
        case F.COUNT_ALL | F.COUNT:
            return (call.function, repr(call.arguments), call.distinct)
        case _:
            return object()
