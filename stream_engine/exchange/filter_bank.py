"""Readers of one relation by their conditions: who may need a row, without asking all of them."""

from bisect import bisect_left, insort
from collections.abc import Collection
from itertools import count

from stream_engine.exchange.bound_pairs import BoundPairs
from stream_engine.exchange.needed_rows import Bound, OneOf, RowCondition, Within, is_nan
from streamsql.data.delta import Delta
from streamsql.data.types import Value

_Side = list[tuple[Bound, int, str]]
"""A bound, whether it is in (see `Within`), and the name of the condition, sorted."""


class FilterBank:
    """Finds the readers whose condition a row fulfils.

    Readers of equal conditions are one entry, and get one part of a change. Conditions of equality
    are found by hash, those with one bound in a sorted list, those with two in a tree. Nobody needs
    a row for a condition on a value that is NULL or NaN.

    State: one entry a condition and value, and one a reader. Work: of a change, O(columns with
    conditions) a row, O(log conditions + conditions found) a distinct value, and one step a row and
    condition found; of a new condition, amortised, O(log conditions) comparisons.
    """

    def __init__(self) -> None:
        self._conditions: dict[str, RowCondition] = {}
        self._alike: dict[RowCondition, _Alike] = {}
        self._equal: dict[int, dict[Value, dict[_Alike, None]]] = {}
        self._bounds: dict[int, _ColumnBounds] = {}
        self._count = count()

    def __len__(self) -> int:
        """Return the number of readers."""
        return len(self._conditions)

    def add(self, reader: str, condition: RowCondition) -> None:
        """Add a reader that is not there."""
        self._conditions[reader] = condition
        alike = self._alike.get(condition)
        if alike is not None:
            alike.readers[reader] = None
            return
        alike = self._alike[condition] = _Alike(str(next(self._count)), {reader: None})
        if isinstance(condition, OneOf):
            by_value = self._equal.setdefault(condition.column, {})
            for value in condition.values:
                by_value.setdefault(value, {})[alike] = None
        else:
            self._bounds.setdefault(condition.column, _ColumnBounds()).add(alike, condition)

    def remove(self, reader: str) -> None:
        """Remove a reader; nothing happens if it is not there."""
        condition = self._conditions.pop(reader, None)
        if condition is None:
            return
        alike = self._alike[condition]
        del alike.readers[reader]
        if alike.readers:
            return
        del self._alike[condition]
        if isinstance(condition, OneOf):
            by_value = self._equal[condition.column]
            for value in condition.values:
                del by_value[value][alike]
                if not by_value[value]:
                    del by_value[value]
            if not by_value:
                del self._equal[condition.column]
        else:
            bounds = self._bounds[condition.column]
            bounds.remove(alike, condition)
            if bounds.is_empty:
                del self._bounds[condition.column]

    def parts(self, delta: Delta) -> list[tuple[Collection[str], Delta]]:
        """Return readers with the rows of a change that each of them may need, in their order.

        No reader is named twice, and nobody may alter a part.
        """
        found: dict[_Alike, Delta] = {}
        for column, by_value in self._equal.items():
            for row, weight in delta.items():
                readers = by_value.get(row[column])
                if readers is None:
                    continue
                for alike in readers:
                    part = found.get(alike)
                    if part is None:
                        found[alike] = {row: weight}
                    else:
                        part[row] = weight
        for column, bounds in self._bounds.items():
            around: dict[Value, list[_Alike]] = {None: []}  # neither NULL nor NaN is in any order
            for row, weight in delta.items():
                value = row[column]
                near = around.get(value)
                if near is None:
                    near = around[value] = [] if is_nan(value) else bounds.around(value)  # type: ignore[arg-type]
                for alike in near:
                    part = found.get(alike)
                    if part is None:
                        found[alike] = {row: weight}
                    else:
                        part[row] = weight
        return [(alike.readers, part) for alike, part in found.items()]


class _Alike:
    """The readers of one condition, and a name of the condition."""

    __slots__ = ("name", "readers")

    def __init__(self, name: str, readers: dict[str, None]) -> None:
        self.name = name
        self.readers = readers


class _ColumnBounds:
    """The bounds of one column."""

    __slots__ = ("_alike", "_high", "_low", "_pairs")

    def __init__(self) -> None:
        self._low: _Side = []
        self._high: _Side = []
        self._pairs = BoundPairs()
        self._alike: dict[str, _Alike] = {}

    @property
    def is_empty(self) -> bool:
        return not self._alike

    def add(self, alike: _Alike, condition: Within) -> None:
        low, high, name = condition.low, condition.high, alike.name
        self._alike[name] = alike
        if low is not None and high is not None:
            self._pairs.add(name, low, high)
        elif low is not None:
            insort(self._low, (*low, name))
        elif high is not None:
            insort(self._high, (*high, name))

    def remove(self, alike: _Alike, condition: Within) -> None:
        low, high, name = condition.low, condition.high, alike.name
        del self._alike[name]
        if low is not None and high is not None:
            self._pairs.remove(name)
        elif low is not None:
            del self._low[bisect_left(self._low, (*low, name))]
        elif high is not None:
            del self._high[bisect_left(self._high, (*high, name))]

    def around(self, value: Bound) -> list[_Alike]:
        """Return those between whose bounds a value is."""
        found = self._low[: bisect_left(self._low, (value, 1))]
        found += self._high[bisect_left(self._high, (value, 1)) :]
        names = [name for _bound, _in, name in found]
        if self._pairs:
            names += self._pairs.around(value)
        return [self._alike[name] for name in names]
