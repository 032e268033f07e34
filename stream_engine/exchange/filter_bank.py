"""Readers of one relation by their conditions: who may need a row, without asking all of them."""

from bisect import bisect_left, insort
from collections.abc import Iterator

from stream_engine.exchange.bound_pairs import BoundPairs
from stream_engine.exchange.needed_rows import Bound, OneOf, RowCondition, Within, is_nan
from streamsql.data.delta import Delta
from streamsql.data.types import Row, Value

_Side = list[tuple[Bound, int, str]]
"""A bound, whether it is in (see `Within`), and the reader, sorted."""


class FilterBank:
    """Finds the readers whose condition a row fulfils.

    Conditions of equality are found by hash, those with one bound in a sorted list, those with two
    in a tree. Nobody needs a row for a condition on a value that is NULL or NaN.

    State: one entry a reader and value. Work: of a row, O(columns with conditions * log readers +
    readers found); of a new reader, amortised, O(log readers) comparisons.
    """

    def __init__(self) -> None:
        self._conditions: dict[str, RowCondition] = {}
        self._equal: dict[int, dict[Value, dict[str, None]]] = {}
        self._bounds: dict[int, _ColumnBounds] = {}

    def __len__(self) -> int:
        """Return the number of readers."""
        return len(self._conditions)

    def add(self, reader: str, condition: RowCondition) -> None:
        """Add a reader that is not there."""
        self._conditions[reader] = condition
        if isinstance(condition, OneOf):
            by_value = self._equal.setdefault(condition.column, {})
            for value in condition.values:
                by_value.setdefault(value, {})[reader] = None
        else:
            self._bounds.setdefault(condition.column, _ColumnBounds()).add(reader, condition)

    def remove(self, reader: str) -> None:
        """Remove a reader; nothing happens if it is not there."""
        condition = self._conditions.pop(reader, None)
        if isinstance(condition, OneOf):
            by_value = self._equal[condition.column]
            for value in condition.values:
                del by_value[value][reader]
                if not by_value[value]:
                    del by_value[value]
            if not by_value:
                del self._equal[condition.column]
        elif condition is not None:
            bounds = self._bounds[condition.column]
            bounds.remove(reader, condition)
            if bounds.is_empty:
                del self._bounds[condition.column]

    def parts(self, delta: Delta) -> dict[str, Delta]:
        """Return, by reader, the rows of a change that it may need."""
        found: dict[str, Delta] = {}
        for row, weight in delta.items():
            for reader in self.readers(row):
                found.setdefault(reader, {})[row] = weight
        return found

    def readers(self, row: Row) -> Iterator[str]:
        """Yield the readers that may need a row."""
        for column, by_value in self._equal.items():
            yield from by_value.get(row[column], ())
        for column, bounds in self._bounds.items():
            value = row[column]
            if value is not None and not is_nan(value):  # neither is in any order
                yield from bounds.around(value)


class _ColumnBounds:
    """The bounds of one column."""

    __slots__ = ("_high", "_low", "_pairs")

    def __init__(self) -> None:
        self._low: _Side = []
        self._high: _Side = []
        self._pairs = BoundPairs()

    @property
    def is_empty(self) -> bool:
        return not (self._low or self._high or self._pairs)

    def add(self, reader: str, condition: Within) -> None:
        low, high = condition.low, condition.high
        if low is not None and high is not None:
            self._pairs.add(reader, low, high)
        elif low is not None:
            insort(self._low, (*low, reader))
        elif high is not None:
            insort(self._high, (*high, reader))

    def remove(self, reader: str, condition: Within) -> None:
        low, high = condition.low, condition.high
        if low is not None and high is not None:
            self._pairs.remove(reader)
        elif low is not None:
            del self._low[bisect_left(self._low, (*low, reader))]
        elif high is not None:
            del self._high[bisect_left(self._high, (*high, reader))]

    def around(self, value: Bound) -> Iterator[str]:
        """Yield the readers between whose bounds a value is."""
        for _bound, _out, reader in self._low[: bisect_left(self._low, (value, 1))]:
            yield reader
        for _bound, _in, reader in self._high[bisect_left(self._high, (value, 1)) :]:
            yield reader
        yield from self._pairs.around(value)
