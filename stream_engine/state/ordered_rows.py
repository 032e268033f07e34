"""Rows in the order of a value."""

from bisect import bisect_left, bisect_right
from typing import Any

from stream_engine.state.indexed_relation import Bucket
from streamsql.data.types import Row

_LOAD = 512
"""Block length at which inserting into a block costs about as much as finding it."""


class OrderedRows:
    """Rows with their weights, ordered by values that compare with each other.

    Distinct values and what stands at each are kept in two lists that run side by side, cut into
    blocks, so that a range is read without hashing or comparing anything inside it. A row that is
    alone at its value and there once stands for itself, others are in a dict of weights.

    State: each row once. Work: two binary searches and a move inside a block of at most 1,024 per
    changed row; two searches plus the rows found per range.

    Examples:
        >>> rows = OrderedRows()
        >>> for row in ((3, "c"), (1, "a"), (2, "b")):
        ...     _ = rows.add(row[0], row, 1)
        >>> rows.entries(1, None, low_open=True, high_open=False)
        [(2, 'b'), (3, 'c')]
        >>> rows.newest(2, strict=True), rows.next_value(2)
        ((1, 'a'), 3)
    """

    __slots__ = ("_entries", "_lasts", "_values")

    def __init__(self) -> None:
        self._lasts: list[Any] = []
        self._values: list[list[Any]] = []
        self._entries: list[list[Bucket]] = []

    def add(self, value: Any, row: Row, weight: int) -> int:
        """Add copies of a row at its value, or remove some; return its new weight."""
        lasts = self._lasts
        number = bisect_left(lasts, value)
        if number == len(lasts):
            if not lasts:
                lasts.append(value)
                self._values.append([value])
                self._entries.append([row if weight == 1 else {row: weight}])
                return weight
            number -= 1
        values = self._values[number]
        index = bisect_left(values, value)
        if index < len(values) and values[index] == value:
            return self._change(number, index, row, weight)
        values.insert(index, value)
        self._entries[number].insert(index, row if weight == 1 else {row: weight})
        lasts[number] = values[-1]
        if len(values) > 2 * _LOAD:
            self._split(number)
        return weight

    def entries(self, low: Any, high: Any, *, low_open: bool, high_open: bool) -> list[Bucket]:
        """Return what stands at the values of a range, in order; a bound of None does not bind."""
        lasts, values = self._lasts, self._values
        if not lasts:
            return []
        first, begin = 0, 0
        if low is not None:
            search = bisect_right if low_open else bisect_left
            first = search(lasts, low)
            if first == len(lasts):
                return []
            begin = search(values[first], low)
            if high is not None and high < lasts[first]:  # as in most narrow ranges
                search = bisect_left if high_open else bisect_right
                return self._entries[first][begin : search(values[first], high, begin)]
        last, end = len(lasts) - 1, len(values[-1])
        if high is not None:
            search = bisect_left if high_open else bisect_right
            found = search(lasts, high)
            if found <= last:
                last, end = found, search(values[found], high)
        blocks = self._entries
        if first == last:
            return blocks[first][begin:end]
        if first > last:
            return []
        result = blocks[first][begin:]
        for number in range(first + 1, last):
            result.extend(blocks[number])
        result.extend(blocks[last][:end])
        return result

    def lone(self) -> Row | None:
        """Return the only row if there is only one and once, else None."""
        values = self._values
        if len(values) == 1 and len(values[0]) == 1:
            (entry,) = self._entries[0]
            return None if isinstance(entry, dict) else entry
        return None

    def newest(self, value: Any, *, strict: bool) -> Bucket | None:
        """Return what stands at the greatest value not after the given one (before it: strict)."""
        search = bisect_left if strict else bisect_right
        number = search(self._lasts, value)
        if number < len(self._lasts):
            index = search(self._values[number], value)
            if index:
                return self._entries[number][index - 1]
        return self._entries[number - 1][-1] if number else None

    def next_value(self, value: Any) -> Any:
        """Return the least value after the given one, or None."""
        number = bisect_right(self._lasts, value)
        if number == len(self._lasts):
            return None
        values = self._values[number]
        return values[bisect_right(values, value)]

    def __bool__(self) -> bool:
        """Return whether there are rows."""
        return bool(self._lasts)

    def __len__(self) -> int:
        """Return the number of distinct rows."""
        return sum([len(e) if isinstance(e, dict) else 1 for block in self._entries for e in block])

    def _change(self, number: int, index: int, row: Row, weight: int) -> int:
        """Change what stands at a value that is there."""
        entries = self._entries[number]
        entry = entries[index]
        if not isinstance(entry, dict):
            if entry != row:
                entries[index] = {entry: 1, row: weight}
                return weight
            if weight == -1:
                self._drop(number, index)
                return 0
            entries[index] = {row: weight + 1}
            return weight + 1
        new = entry.get(row, 0) + weight
        if new:
            entry[row] = new
            return new
        del entry[row]
        if not entry:
            self._drop(number, index)
        elif len(entry) == 1:
            ((other, copies),) = entry.items()
            if copies == 1:
                entries[index] = other
        return 0

    def _drop(self, number: int, index: int) -> None:
        values = self._values[number]
        del values[index]
        del self._entries[number][index]
        if values:
            self._lasts[number] = values[-1]
        else:
            del self._values[number]
            del self._entries[number]
            del self._lasts[number]

    def _split(self, number: int) -> None:
        for blocks in (self._values, self._entries):
            block: list[Any] = blocks[number]
            blocks.insert(number + 1, block[_LOAD:])
            del block[_LOAD:]
        self._lasts.insert(number, self._values[number][-1])
