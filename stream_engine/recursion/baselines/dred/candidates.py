"""Derived rows as a set, and which of them aggregate selection lets into the view."""

from collections.abc import Iterable
from typing import Any

from stream_engine.recursion.program.item_tables import Item, ItemTable
from stream_engine.recursion.program.program import best_rows
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row


class _Group:
    """Rows that compete.

    Attributes:
        best: Per aggregate the best value in the view, or None.
    """

    __slots__ = ("best", "members", "shown")

    def __init__(self, aggregates: int) -> None:
        self.members: dict[Row, None] = {}
        self.shown: set[Row] = set()
        self.best: list[Any] = [None] * aggregates


class Candidates:
    """All derived rows; without aggregate selection all are in the view.

    With it, surpassed rows are kept, because a deletion may make any of them the best again, unless
    there are no deletions (`forgetful`).

    Attributes:
        changes: Set-level changes of the view that the caller has not taken.
        released: Rows that entered the view and were not taken by the caller.
    """

    def __init__(self, selection: AggregateSelection | None, *, forgetful: bool = False) -> None:
        self.all = ItemTable()
        self.shown = self.all if selection is None else ItemTable()
        self.changes: Delta = {}
        self.released: list[Row] = []
        self._selection = selection
        self._forgetful = forgetful
        self._items: dict[Row, Item] = {}
        self._groups: dict[Row, _Group] = {}
        self._changed: dict[Row, None] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, row: Row) -> bool:
        return row in self._items

    def is_shown(self, row: Row) -> bool:
        """Whether a row is in the view."""
        item = self._items.get(row)
        return item is not None and item in self.shown.items

    def add(self, row: Row) -> None:
        """Add a row; one that is there, or has only NULLs to compare, is ignored."""
        if row in self._items:
            return
        if self._selection is None:
            self._enter(row)
            self._show(row)
            return
        bests = self._selection.bests
        values = [row[best.value] for best in bests]
        if all(value is None for value in values):
            return
        key = tuple([row[column] for column in self._selection.group])
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(len(bests))
        competes = key in self._changed or any(
            _reaches(value, held, minimum=best.minimum)
            for value, held, best in zip(values, group.best, bests, strict=True)
        )
        if competes:
            self._changed[key] = None
        elif self._forgetful:
            return
        self._enter(row)
        group.members[row] = None

    def add_all(self, rows: Iterable[Row]) -> None:
        """Add several rows, which may repeat."""
        known = self._items
        for row in rows:
            if row not in known:
                self.add(row)

    def discard(self, row: Row) -> None:
        """Remove a row that is there."""
        if self._selection is None:
            self._hide(row)
            self._leave(row)
            return
        key = tuple([row[column] for column in self._selection.group])
        group = self._groups[key]
        if row in group.shown:
            group.shown.discard(row)
            self._hide(row)
            self._changed[key] = None
        self._leave(row)
        del group.members[row]
        if not group.members:
            del self._groups[key]
            self._changed.pop(key, None)

    def settle_groups(self) -> None:
        """Decide which rows of changed groups are best."""
        changed, self._changed = self._changed, {}
        if self._selection is None:
            return
        for key in changed:
            group = self._groups[key]
            best = best_rows(self._selection, group.members)
            for row in group.members:
                if row in group.shown and row not in best:
                    self._hide(row)
                elif row in best and row not in group.shown:
                    self._show(row)
            group.shown = best
            for number, wanted in enumerate(self._selection.bests):
                values: list[Any] = [
                    row[wanted.value] for row in best if row[wanted.value] is not None
                ]
                choose = min if wanted.minimum else max
                group.best[number] = choose(values) if values else None
            if self._forgetful:
                for row in [row for row in group.members if row not in best]:
                    self._leave(row)
                    del group.members[row]

    def take_released(self) -> list[Row]:
        """Return the rows to derive from, those that were surpassed meanwhile left out."""
        self.settle_groups()
        released, self.released = self.released, []
        return [row for row in released if self.is_shown(row)]

    def take_changes(self) -> Delta:
        """Return the change of the view since the last call."""
        changes, self.changes = self.changes, {}
        return changes

    def _enter(self, row: Row) -> None:
        item = self._items[row] = Item(row, True)
        self.all.add(item)

    def _leave(self, row: Row) -> None:
        self.all.remove(self._items.pop(row))

    def _show(self, row: Row) -> None:
        if self.shown is not self.all:
            self.shown.add(self._items[row])
        self.released.append(row)
        add(self.changes, row, 1)

    def _hide(self, row: Row) -> None:
        if self.shown is not self.all:
            self.shown.remove(self._items[row])
        add(self.changes, row, -1)


def _reaches(value: Any, held: Any, *, minimum: bool) -> bool:
    if value is None:
        return False
    return held is None or value == held or (value < held) == minimum
