"""ARRAY_AGG: the values of a group as JSON text."""

import json
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from typing_extensions import override

from stream_engine.operators.aggregates.accumulator import Accumulator, Changes
from stream_engine.state.ranked_order import RankedOrder
from streamsql.data.types import DataType, Value

_Item = tuple[Any, str]
"""A value and how JSON writes it."""

_MOST_FEW = 256
"""Values up to which a group is two lists: twice as fast as an order (ARRAY_AGG by key)."""


class _Few:
    """The values of a small group in order, each as often as it counts."""

    __slots__ = ("texts", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.texts: list[str] = []


_Slot = _Few | RankedOrder[_Item]


class ArrayAggregate(Accumulator):
    """ARRAY_AGG(x): the values that are not NULL, in order, as a JSON array.

    Most groups have few values: two lists, of which the second only has to be joined. More of
    them, and groups of which something went before it came, are kept in an order with weights.

    State: the values (of many: the distinct ones) with their texts. Work: O(log values) a changed
    row; the texts are joined once per group and batch, in the length of the group: it is the
    answer.
    """

    def __init__(self, position: int, dtype: DataType) -> None:
        self._position = position
        self._text_of = _WRITERS.get(dtype, int.__repr__)

    @override
    def empty(self) -> _Slot:
        return _Few()

    @override
    def update(self, slot: _Slot, changes: Changes) -> _Slot:
        position, text_of = self._position, self._text_of
        for row, weight in changes:
            value = row[position]
            if value is None:
                continue
            if isinstance(slot, _Few):
                if self._put(slot, value, weight):
                    continue
                slot = _many(slot)
            slot.change((value, text_of(value)), weight)
        return slot

    def _put(self, few: _Few, value: Any, weight: int) -> bool:
        values, texts = few.values, few.texts
        index = bisect_left(values, value)
        if weight == 1:
            if len(values) >= _MOST_FEW:
                return False
            values.insert(index, value)
            texts.insert(index, self._text_of(value))
            return True
        if weight > 0:
            if len(values) + weight > _MOST_FEW:
                return False
            values[index:index] = [value] * weight
            texts[index:index] = [self._text_of(value)] * weight
            return True
        end = index - weight
        if end > len(values) or values[end - 1] != value:
            return False
        del values[index:end], texts[index:end]
        return True

    @override
    def result(self, slot: _Slot) -> Value:
        if isinstance(slot, _Few):
            return f"[{','.join(slot.texts)}]" if slot.texts else None
        if not slot.total:
            return None
        return f"[{','.join([text for _value, text in slot.copies()])}]"

    @override
    def rows(self, slot: _Slot) -> int:
        return len(set(slot.values)) if isinstance(slot, _Few) else len(slot)


def _many(few: _Few) -> RankedOrder[_Item]:
    order: RankedOrder[_Item] = RankedOrder()
    for item in zip(few.values, few.texts, strict=True):
        order.change(item, 1)
    return order


def _double(value: float) -> str:
    """Return a double as JSON has it; a negative zero is equal to zero and written as such.

    Examples:
        >>> _double(-0.0), _double(1e300)
        ('0.0', '1e+300')
    """
    return repr(value + 0.0)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


_WRITERS: dict[DataType, Callable[[Any], str]] = {
    DataType.DOUBLE: _double,
    DataType.BOOLEAN: _boolean,
    DataType.TEXT: json.JSONEncoder(ensure_ascii=False).encode,
}
