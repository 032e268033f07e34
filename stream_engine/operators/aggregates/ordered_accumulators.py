"""Aggregates that keep a group's values in order: MIN, MAX, percentiles, MODE, STRING_AGG."""

import math
from typing import Any

from typing_extensions import override

from stream_engine.operators.aggregates.accumulator import Accumulator, Changes
from stream_engine.state.ranked_order import RankedOrder
from streamsql.algebra.aggregates import AggregateCall, discrete_place
from streamsql.algebra.scalar_functions.scalar import in_range
from streamsql.data.delta import sort_key
from streamsql.data.types import Value


class OrderedValues(Accumulator):
    """An ordered multiset of the values that are not NULL.

    State: the distinct values with their weights. Work: O(log values) a changed row.
    """

    def __init__(self, position: int) -> None:
        self._position = position

    @override
    def empty(self) -> RankedOrder[Any]:
        return RankedOrder()

    @override
    def update(self, slot: RankedOrder[Any], changes: Changes) -> RankedOrder[Any]:
        position, change = self._position, slot.change
        for row, weight in changes:
            value = row[position]
            if value is not None:
                change(value, weight)
        return slot

    @override
    def rows(self, slot: RankedOrder[Any]) -> int:
        return len(slot)


class Extremum(OrderedValues):
    """MIN(x) and MAX(x)."""

    def __init__(self, position: int, *, minimum: bool) -> None:
        super().__init__(position)
        self._minimum = minimum

    @override
    def result(self, slot: RankedOrder[Any]) -> Value:
        if not slot.total:
            return None
        value: Value = slot.first() if self._minimum else slot.last()
        return value


class ArgExtremum(OrderedValues):
    """ARG_MIN(x, by) and ARG_MAX(x, by): x where `by` is least or greatest, ties by least x.

    Rows whose `by` is NULL do not count; an x that is NULL is the least. Entries are
    (by, order of x), so that both ends and their ties are found in one order.
    """

    def __init__(self, position: int, by: int, *, minimum: bool) -> None:
        super().__init__(position)
        self._by = by
        self._minimum = minimum

    @override
    def update(self, slot: RankedOrder[Any], changes: Changes) -> RankedOrder[Any]:
        by, value, change = self._by, self._position, slot.change
        for row, weight in changes:
            if row[by] is not None:
                change((row[by], sort_key((row[value],))[0]), weight)
        return slot

    @override
    def result(self, slot: RankedOrder[Any]) -> Value:
        if not slot.total:
            return None
        best = slot.first() if self._minimum else slot.at_least((slot.last()[0],))
        kind, value = best[1]
        return value if kind else None


class Percentile(OrderedValues):
    """PERCENTILE_CONT(x, p): with n values the one at (n - 1) p, between neighbours in doubles.

    Holistic: no summary of fixed size has it.
    """

    def __init__(self, position: int, fraction: float) -> None:
        super().__init__(position)
        self._fraction = fraction

    @override
    def result(self, slot: RankedOrder[Any]) -> Value:
        if not slot.total:
            return None
        place = (slot.total - 1) * self._fraction
        below = math.floor(place)
        low = float(slot.at(below))
        if place == below:
            return low
        return in_range(low + (float(slot.at(below + 1)) - low) * (place - below))


class DiscretePercentile(OrderedValues):
    """PERCENTILE_DISC(x, p): one of the values, of any type; a negative zero is 0.0."""

    def __init__(self, position: int, call: AggregateCall) -> None:
        super().__init__(position)
        self._call = call

    @override
    def result(self, slot: RankedOrder[Any]) -> Value:
        if not slot.total:
            return None
        value: Value = slot.at(discrete_place(slot.total, self._call))
        return value + 0.0 if isinstance(value, float) else value


class StringAggregate(OrderedValues):
    """STRING_AGG(x, separator): the texts that are not NULL, in order, with the separator between.

    The texts are joined once per group and batch, in the length of the group: it is the answer.
    """

    def __init__(self, position: int, separator: str) -> None:
        super().__init__(position)
        self._separator = separator

    @override
    def result(self, slot: RankedOrder[str]) -> Value:
        return self._separator.join(slot.copies()) if slot.total else None


_Weighted = tuple[dict[Any, int], RankedOrder[Any]]


class Mode(Accumulator):
    """MODE(x): the most frequent value, ties by least value; a negative zero is 0.0.

    State: every distinct value twice, by value with its weight and in order of (-weight, value),
    so that the first entry is the answer. Work: O(log values) a changed value.
    """

    def __init__(self, position: int) -> None:
        self._position = position

    @override
    def empty(self) -> _Weighted:
        return ({}, RankedOrder())

    @override
    def update(self, slot: _Weighted, changes: Changes) -> _Weighted:
        position = self._position
        weights, order = slot
        for row, weight in changes:
            value: Any = row[position]
            if value is None:
                continue
            old = weights.get(value, 0)
            new = old + weight
            if old:
                order.change((-old, value), -1)
            if new:
                weights[value] = new
                order.change((-new, value), 1)
            else:
                weights.pop(value, None)
        return slot

    @override
    def result(self, slot: _Weighted) -> Value:
        order = slot[1]
        if not order.total:
            return None
        value: Value = order.first()[1]
        return value + 0.0 if isinstance(value, float) else value

    @override
    def rows(self, slot: _Weighted) -> int:
        return len(slot[0])
