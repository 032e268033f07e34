"""Leaf relations of a recursion: from Z-set changes to rows with tokens."""

from typing import Any

from stream_engine.recursion.rules import LeafUse
from stream_engine.recursion.tables import Item, ItemTable, values_at
from streamsql.algebra.expressions import conjunction
from streamsql.algebra.scalar import compile_predicate
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row


class LeafInput:
    """Turns the changes of a leaf into rows that enter and rows that leave.

    The leaf is narrowed to what the recursion reads of it and made distinct: a row is there while
    its weight is positive. Opposite changes within one settle cancel out.

    State: the weight of every narrowed row.
    """

    def __init__(self, use: LeafUse) -> None:
        predicate = conjunction(list(use.filter))
        self._holds = None if predicate is None else compile_predicate(predicate)
        self._cut = _cutter(use.columns)
        self._weights: Delta = {}
        self._pending: Delta = {}

    def buffer(self, delta: Delta) -> None:
        """Note changes."""
        holds, cut, pending = self._holds, self._cut, self._pending
        for row, weight in delta.items():
            if holds is None or holds(row):
                add(pending, cut(row), weight)

    def take(self) -> tuple[list[Row], list[Row]]:
        """Apply what was noted; return the rows that entered and those that left."""
        pending, self._pending = self._pending, {}
        weights = self._weights
        entered: list[Row] = []
        left: list[Row] = []
        for row, change in pending.items():
            old = weights.get(row, 0)
            new = old + change
            if new:
                weights[row] = new
            else:
                del weights[row]
            if old <= 0 < new:
                entered.append(row)
            elif new <= 0 < old:
                left.append(row)
        return entered, left


class LeafTable(ItemTable):
    """Leaf rows with their tokens; one row may have several, from several sites."""

    def __init__(self) -> None:
        super().__init__()
        self.by_token: dict[int, Item] = {}

    def enter(self, row: Row, token: int, annotation: Any) -> Item:
        """Add a row under a token that is not there."""
        item = self.by_token[token] = Item(row, annotation)
        self.add(item)
        return item

    def kill(self, token: int) -> None:
        """Remove the row of a token, if there is one."""
        item = self.by_token.pop(token, None)
        if item is not None:
            self.remove(item)

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self.by_token = {}


def _cutter(columns: tuple[int, ...]) -> Any:
    if len(columns) == 1:
        (only,) = columns
        return lambda row: (row[only],)
    return values_at(columns)
