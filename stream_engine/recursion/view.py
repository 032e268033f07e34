"""The partition of a recursive relation that one site holds, also with aggregate selection."""

from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding
from stream_engine.recursion.absorption import AbsorptionTable, Entry, Shipping
from stream_engine.recursion.tables import ItemTable
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row, Value


class View(AbsorptionTable):
    """All rows with support are in the view and take part in the recursion.

    Attributes:
        joined: The rows of the view, for the step rules.
        changes: Set-level changes since the caller last took them.
    """

    def __init__(self, encoding: AnnotationEncoding[Any], shipping: Shipping) -> None:
        super().__init__(encoding, shipping)
        self.joined = ItemTable()
        self.changes: Delta = {}

    def __len__(self) -> int:
        """Return the number of rows in the view."""
        return len(self.joined)

    @property
    def group_count(self) -> int | None:
        """Number of groups of the aggregate selection; None without one."""
        return None

    def begin(self, row: Row, annotation: Any) -> None:
        """Enter a row, show it and let it join."""
        super().begin(row, annotation)
        self._show(self.entries[row])

    def forget(self, entry: Entry) -> None:
        """Remove a row without support."""
        super().forget(entry)
        if entry.shown:
            self._hide(entry)

    def _show(self, entry: Entry) -> None:
        entry.shown = True
        self.joined.add(entry)
        add(self.changes, entry.row, 1)

    def _hide(self, entry: Entry) -> None:
        entry.shown = False
        self.joined.remove(entry)
        add(self.changes, entry.row, -1)

    def settle_groups(self) -> None:
        """Decide which rows of changed groups are best; without selection nothing is to do."""

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self.joined.clear()
        self.changes = {}


class _Group:
    """The live rows of one group: `best` is the value of the rows in `front`."""

    __slots__ = ("best", "front", "members")

    def __init__(self) -> None:
        self.best: Value = None
        self.front: dict[Entry, None] = {}
        self.members: dict[Entry, None] = {}


class SelectiveView(View):
    """Per group only the rows with the best value (all ties) are in the view and recur.

    All live rows are kept, because a deletion may make any of them the best. A row that is
    surpassed leaves the view and the joins; nothing is retracted from what it derived, which is
    still true and is itself surpassed (MIN and MAX over isotone steps). When it becomes best again
    it is sent again. A NULL value is never best.
    """

    def __init__(
        self,
        encoding: AnnotationEncoding[Any],
        shipping: Shipping,
        selection: AggregateSelection,
    ) -> None:
        super().__init__(encoding, shipping)
        self._group_columns = selection.group
        self._value = selection.value
        self._minimum = selection.minimum
        self._groups: dict[Row, _Group] = {}
        self._changed: dict[_Group, None] = {}

    @property
    def group_count(self) -> int | None:
        """Number of groups that have rows."""
        return len(self._groups)

    def begin(self, row: Row, annotation: Any) -> None:
        """Enter a row into its group; `settle_groups` shows and sends it if nothing is better."""
        value = row[self._value]
        if value is None:
            return
        entry = self.entries[row] = Entry(row, annotation, shown=False)
        self.mention(entry, annotation)
        key = tuple([row[c] for c in self._group_columns])
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group()
        group.members[entry] = None
        if not group.front and len(group.members) > 1:
            self._changed[group] = None  # its best died; `settle_groups` chooses among all
        elif not group.front or self._is_better(value, group.best):
            for surpassed in group.front:
                if surpassed.shown:
                    self._hide(surpassed)
            group.best, group.front = value, {entry: None}
            self._changed[group] = None
        elif value == group.best:
            group.front[entry] = None
            self._changed[group] = None

    def _is_better(self, value: Any, than: Any) -> bool:
        return bool(value < than if self._minimum else value > than)

    def settle_groups(self) -> None:
        """Show and send the front rows of changed groups that are not in the view yet."""
        changed, self._changed = self._changed, {}
        for group in changed:
            if not group.front and group.members:
                self._choose(group)
            for entry in group.front:
                if not entry.shown:
                    self._show(entry)
                    self.released.append((entry, entry.sent))

    def _choose(self, group: _Group) -> None:
        values: list[Any] = [entry.row[self._value] for entry in group.members]
        group.best = min(values) if self._minimum else max(values)
        group.front = {e: None for e in group.members if e.row[self._value] == group.best}

    def forget(self, entry: Entry) -> None:
        """Remove a row without support; its group may need another best."""
        super().forget(entry)
        key = tuple([entry.row[c] for c in self._group_columns])
        group = self._groups[key]
        del group.members[entry]
        if entry in group.front:
            del group.front[entry]
            self._changed[group] = None
        if not group.members:
            del self._groups[key]
            self._changed.pop(group, None)

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self._groups = {}
        self._changed = {}
