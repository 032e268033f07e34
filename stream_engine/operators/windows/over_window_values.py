"""The values of window functions for neighbouring rows of an ordered partition."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from stream_engine.operators.aggregates.accumulator import Accumulator, Changes
from stream_engine.operators.aggregates.aggregate_slots import accumulator_for
from stream_engine.state.ranked_order import RankedOrder
from stream_engine.state.row_order import GREATEST, Entry, row_of
from streamsql.algebra.operators import WindowCall, WindowFunction
from streamsql.algebra.over_windows import run_of
from streamsql.algebra.scalar_functions.scalar import compile_expression, compile_row
from streamsql.data.types import Row, Value
from streamsql.errors import InternalError

Changed = list[tuple[Entry, int]]
"""Entries of one partition with the weights that come."""


class OrderedPartition:
    """The rows of a partition in order, and what its calls know about all of them.

    Attributes:
        groups: The different keys, if a call counts them.
        slots: Per aggregate whose frame is unbounded the accumulator's slot over all rows.
        results: What those over whole partitions give.
    """

    __slots__ = ("_owed", "groups", "order", "results", "slots")

    def __init__(self, slots: list[Any]) -> None:
        self.order: RankedOrder[Entry] = RankedOrder()
        self.groups: RankedOrder[Entry] = RankedOrder()
        self.slots = slots
        self.results: list[Value] = [None] * len(slots)  # read only where there are rows
        self._owed: dict[Entry, int] = {}

    def possible(self, changed: Changed) -> Changed:
        """Return the changes that can be made now; copies taken before they came are owed."""
        owed = self._owed
        applied: Changed = []
        for entry, weight in changed:
            wanted = weight + owed.pop(entry, 0)
            came = wanted if wanted > 0 else max(wanted, -self.order.place(entry)[1])
            if came != wanted:
                owed[entry] = wanted - came
            if came:
                applied.append((entry, came))
        return applied

    def __bool__(self) -> bool:
        return bool(self.order or self._owed)

    def peers(self, keys: Entry) -> tuple[int, int]:
        """Return the places of the rows with some keys: from the first to behind the last."""
        return (self.order.place(keys)[0], self.order.place((*keys, GREATEST))[0])

    def rows(self, start: int, end: int) -> list[Row]:
        """Return the rows at some places, each as often as it stands there."""
        total = self.order.total
        found = self.order.between(max(start, 0), min(end, total))
        return [row for entry, copies in found for row in [row_of(entry)] * copies]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring rows whose values are wanted.

    Attributes:
        start: Place of the first one.
        peers: Per row the places of its peers, if a call looks at them.
    """

    partition: OrderedPartition
    start: int
    entries: list[Entry]
    rows: list[Row]
    peers: list[tuple[int, int]]

    @property
    def end(self) -> int:
        """The place behind the last row."""
        return self.start + len(self.rows)


def stretch_of(partition: OrderedPartition, start: int, end: int, *, with_peers: bool) -> Stretch:
    """Return the rows from one place to before another, with their peers if wanted."""
    entries: list[Entry] = []
    rows: list[Row] = []
    peers: list[tuple[int, int]] = []
    keys: Entry | None = None
    around = (0, 0)
    for entry, copies in partition.order.between(start, end):
        if with_peers and entry[:-1] != keys:
            keys = entry[:-1]
            around = partition.peers(keys)
        entries += [entry] * copies
        rows += [row_of(entry)] * copies
        peers += [around] * copies
    return Stretch(partition, start, entries, rows, peers)


Values = Callable[[Stretch], list[Value]]


def values_of(call: WindowCall, slot: int | None) -> Values:
    """Return how to compute a call for a stretch."""
    match call.function:
        case WindowFunction.ROW_NUMBER:
            return lambda stretch: list(range(stretch.start + 1, stretch.end + 1))
        case WindowFunction.RANK:
            return lambda stretch: [first + 1 for first, _ in stretch.peers]
        case WindowFunction.DENSE_RANK:
            return _dense_ranks
        case WindowFunction.PERCENT_RANK:
            return _percent_ranks
        case WindowFunction.CUME_DIST:
            return lambda stretch: [
                behind / stretch.partition.order.total for _, behind in stretch.peers
            ]
        case WindowFunction.NTILE:
            return _runs(call.number)
        case WindowFunction.LAG | WindowFunction.LEAD:
            return _shifted(call)
        case WindowFunction.FIRST_VALUE | WindowFunction.LAST_VALUE | WindowFunction.NTH_VALUE:
            return _edges(call)
        case WindowFunction.AGGREGATE:
            return _AggregateValues(call, accumulator_of(call), slot)


def accumulator_of(call: WindowCall) -> Accumulator:
    """Return the accumulator of an aggregate; it sees rows of the call's arguments.

    Raises:
        InternalError: The call is no aggregate.
    """
    aggregate = call.aggregate_call
    if aggregate is None:
        raise InternalError(f"{call.function} is no aggregate")
    return accumulator_for(aggregate, 0)


def frames(call: WindowCall, stretch: Stretch) -> Iterator[tuple[int, int]]:
    """Yield the frame of every row: from a place to before another, both in the partition."""
    total = stretch.partition.order.total
    frame = call.frame
    for place, (first, behind) in enumerate(stretch.peers, stretch.start):
        low, high = (first, behind) if frame.peers else (place, place + 1)
        start = 0 if frame.start is None else min(max(low + frame.start, 0), total)
        end = total if frame.end is None else min(max(high + frame.end, 0), total)
        yield start, max(start, end)


def _dense_ranks(stretch: Stretch) -> list[Value]:
    ranks: list[Value] = []
    groups = stretch.partition.groups
    keys: Entry | None = None
    rank = 0
    for entry in stretch.entries:
        if entry[:-1] != keys:
            keys = entry[:-1]
            rank = rank + 1 if rank else groups.place(keys)[0] + 1
        ranks.append(rank)
    return ranks


def _percent_ranks(stretch: Stretch) -> list[Value]:
    others = stretch.partition.order.total - 1
    return [first / others if others else 0.0 for first, _ in stretch.peers]


def _runs(runs: int) -> Values:
    def values(stretch: Stretch) -> list[Value]:
        total = stretch.partition.order.total
        return [run_of(place, runs, total) for place in range(stretch.start, stretch.end)]

    return values


def _shifted(call: WindowCall) -> Values:
    value, *given = map(compile_expression, call.arguments)
    default = given[0] if given else None
    shift = call.shift

    def values(stretch: Stretch) -> list[Value]:
        total = stretch.partition.order.total
        low = min(max(stretch.start + shift, 0), total)
        others = stretch.partition.rows(low, stretch.end + shift)
        result: list[Value] = []
        for place, row in enumerate(stretch.rows, stretch.start + shift):
            if 0 <= place < total:
                result.append(value(others[place - low]))
            else:
                result.append(None if default is None else default(row))
        return result

    return values


def _edges(call: WindowCall) -> Values:
    value = compile_expression(call.arguments[0])
    last, before = call.function == WindowFunction.LAST_VALUE, call.number - 1

    def values(stretch: Stretch) -> list[Value]:
        order = stretch.partition.order
        known: dict[int, Value] = {}
        result: list[Value] = []
        for start, end in frames(call, stretch):
            place = end - 1 if last else start + before
            if not start <= place < end:
                place = -1
            if place >= 0 and place not in known:
                known[place] = value(row_of(order.at(place)))
            result.append(known[place] if place >= 0 else None)
        return result

    return values


class _AggregateValues:
    """An aggregate over frames: a slot to which rows are added and from which rows are taken.

    A bounded frame begins with nothing, another one with the slot over the whole partition, which
    is put back as it was.
    """

    def __init__(self, call: WindowCall, accumulator: Accumulator, slot: int | None) -> None:
        self._call = call
        self._slot = slot
        self._accumulator = accumulator
        self._arguments_of = compile_row(call.arguments)

    def __call__(self, stretch: Stretch) -> list[Value]:
        partition = stretch.partition
        if self._slot is None:
            bounds = list(frames(self._call, stretch))
            start, _ = bounds[0]
            return self._slid(partition, self._accumulator.empty(), (start, start), bounds)[0]
        slot, whole = partition.slots[self._slot], (0, partition.order.total)
        if self._call.frame.is_whole:
            return [partition.results[self._slot]] * len(stretch.rows)
        bounds = list(frames(self._call, stretch))
        backwards = self._call.frame.start is None  # then the last frame is the largest
        if backwards:
            bounds.reverse()
        bounds.append(whole)
        values, partition.slots[self._slot] = self._slid(partition, slot, whole, bounds)
        values.pop()
        return values[::-1] if backwards else values

    def _slid(
        self,
        partition: OrderedPartition,
        slot: Any,
        held: tuple[int, int],
        bounds: list[tuple[int, int]],
    ) -> tuple[list[Value], Any]:
        """Return the values over some frames, and the slot over the last one."""
        starts, ends = zip(held, *bounds, strict=True)
        moving = [side for side in (starts, ends) if min(side) < max(side)]
        low = min((min(side) for side in moving), default=0)
        high = max((max(side) for side in moving), default=0)
        arguments = list(map(self._arguments_of, partition.rows(low, high)))

        def between(first: int, last: int, weight: int) -> Changes:
            if first > last:
                first, last, weight = last, first, -weight
            return [(row, weight) for row in arguments[first - low : last - low]]

        accumulator = self._accumulator
        values: list[Value] = []
        start, end = held
        for new_start, new_end in bounds:
            changes = between(end, new_end, 1) + between(start, new_start, -1)
            if changes:
                slot = accumulator.update(slot, changes)
            start, end = new_start, new_end
            values.append(accumulator.result(slot))
        return values, slot
