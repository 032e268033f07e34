"""A relation by key and, within each key, in the order of a value."""

from collections.abc import Callable
from typing import Any

from stream_engine.state.columns import key_picker
from stream_engine.state.indexed_relation import Bucket
from stream_engine.state.ordered_rows import OrderedRows
from streamsql.data.types import Row


class OrderedIndex:
    """Rows with their weights, by key and then by value.

    Rows with a NULL in the key or as value are not kept: none can match. A row that is alone with
    its key and there once stands for itself; lists in order would take some 400 bytes more.

    State: every row once. Work: O(log rows of the key) per changed row and per look-up, plus the
    rows found.

    Attributes:
        length: Distinct rows.
        value_of: The function from row to value.
    """

    __slots__ = ("_composite", "_key_of", "_keys", "length", "value_of")

    def __init__(self, key: tuple[int, ...], value_of: Callable[[Row], Any]) -> None:
        self._keys: dict[Any, Row | OrderedRows] = {}
        self.length = 0
        self._key_of = key_picker(key)
        self._composite = len(key) > 1
        self.value_of = value_of

    def place_of(self, row: Row) -> tuple[Any, Any] | None:
        """Return a row's key and value, or None if a NULL keeps it from ever matching."""
        key, value = self._key_of(row), self.value_of(row)
        if value is None or key is None or (self._composite and None in key):
            return None
        return key, value

    def add(self, key: Any, value: Any, row: Row, weight: int) -> int:
        """Add copies of a row at its place; return how often it is there now."""
        keys = self._keys
        rows = keys.get(key)
        if rows is None:
            if weight == 1:
                keys[key] = row
                self.length += 1
                return 1
            rows = keys[key] = OrderedRows()
        elif not isinstance(rows, OrderedRows):
            if weight == -1 and rows == row:
                del keys[key]
                self.length -= 1
                return 0
            lone, rows = rows, OrderedRows()
            rows.add(self.value_of(lone), lone, 1)
            keys[key] = rows
        new = rows.add(value, row, weight)
        if not new:
            self.length -= 1
            if not rows:
                del keys[key]
            elif (last := rows.lone()) is not None:
                keys[key] = last
        elif new == weight:
            self.length += 1
        return new

    def between(
        self, key: Any, low: Any, high: Any, *, low_open: bool, high_open: bool
    ) -> list[Bucket]:
        """Return the rows of a key in a range of values; a bound of None does not bind."""
        rows = self._keys.get(key)
        if rows is None:
            return []
        if isinstance(rows, OrderedRows):
            return rows.entries(low, high, low_open=low_open, high_open=high_open)
        value = self.value_of(rows)
        if low is not None and (value <= low if low_open else value < low):
            return []
        if high is not None and (value >= high if high_open else value > high):
            return []
        return [rows]

    def newest(self, key: Any, value: Any, *, strict: bool) -> Bucket | None:
        """Return what stands at a key's greatest value not after the given one (strict: before)."""
        rows = self._keys.get(key)
        if rows is None or isinstance(rows, OrderedRows):
            return None if rows is None else rows.newest(value, strict=strict)
        own = self.value_of(rows)
        return rows if (own < value if strict else own <= value) else None

    def next_value(self, key: Any, value: Any) -> Any:
        """Return a key's least value after the given one, or None."""
        rows = self._keys.get(key)
        if rows is None or isinstance(rows, OrderedRows):
            return None if rows is None else rows.next_value(value)
        own = self.value_of(rows)
        return own if own > value else None
