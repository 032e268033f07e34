"""The partition of a recursive relation that one site holds, also with aggregate selection."""

from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding
from stream_engine.recursion.absorption.absorption_table import AbsorptionTable, Entry
from stream_engine.recursion.program.item_tables import ItemTable
from streamsql.algebra.choices import Shipping
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row, Value


class JoinedTable(AbsorptionTable):
    """Rows that step rules join: all that have support."""

    def __init__(self, encoding: AnnotationEncoding[Any], shipping: Shipping) -> None:
        super().__init__(encoding, shipping)
        self.joined = ItemTable()

    def __len__(self) -> int:
        return len(self.joined)

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

    def _hide(self, entry: Entry) -> None:
        entry.shown = False
        self.joined.remove(entry)

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self.joined.clear()


class CopyTable(JoinedTable):
    """Copies of view rows that are at home at other sites, or join here by other columns.

    The home sends another annotation when the one it sent has died, so nothing is looked for here.
    """

    def forget(self, entry: Entry) -> None:
        """Remove a row without support."""
        super().forget(entry)
        self.suspects = []


class View(JoinedTable):
    """The rows that are at home here: all with support are in the view and take part in it.

    Attributes:
        changes: Set-level changes since the caller last took them.
    """

    def __init__(self, encoding: AnnotationEncoding[Any], shipping: Shipping) -> None:
        super().__init__(encoding, shipping)
        self.changes: Delta = {}

    @property
    def group_count(self) -> int | None:
        """Number of groups of the aggregate selection; None without one."""
        return None

    def _show(self, entry: Entry) -> None:
        super()._show(entry)
        add(self.changes, entry.row, 1)

    def _hide(self, entry: Entry) -> None:
        super()._hide(entry)
        add(self.changes, entry.row, -1)

    def settle_groups(self) -> None:
        """Decide which rows of changed groups are best; without selection nothing is to do."""

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self.changes = {}


class _Group:
    """The live rows of one group.

    Attributes:
        best: Per aggregate the best value, or None while it has to be chosen again.
        front: Per aggregate the rows of the best value.
    """

    __slots__ = ("best", "front", "members")

    def __init__(self, aggregates: int) -> None:
        self.members: dict[Entry, None] = {}
        self.best: list[Value] = [None] * aggregates
        self.front: list[dict[Entry, None]] = [{} for _ in range(aggregates)]

    def wanted(self) -> dict[Entry, None]:
        if len(self.front) == 1:
            return self.front[0]
        return {entry: None for front in self.front for entry in front}


class SelectiveView(View):
    """Per group only the rows that are best for some aggregate, with ties, are in the view.

    All live rows are kept, because a deletion may make any of them the best. A row that is
    surpassed for every aggregate leaves the view and the joins; nothing is retracted from what it
    derived, which is still true and is itself surpassed (MIN and MAX over isotone steps). When it
    becomes best again it is sent again. A NULL value is never best.
    """

    def __init__(
        self,
        encoding: AnnotationEncoding[Any],
        shipping: Shipping,
        selection: AggregateSelection,
    ) -> None:
        super().__init__(encoding, shipping)
        self._group_columns = selection.group
        self._bests = selection.bests
        self._groups: dict[Row, _Group] = {}
        self._changed: dict[_Group, None] = {}

    @property
    def group_count(self) -> int | None:
        """Number of groups that have rows."""
        return len(self._groups)

    def begin(self, row: Row, annotation: Any) -> None:
        """Enter a row into its group; `settle_groups` shows and sends it if nothing is better."""
        if all(row[best.value] is None for best in self._bests):
            return
        entry = self.entries[row] = Entry(row, annotation, shown=False)
        self.mention(entry, annotation)
        key = tuple([row[c] for c in self._group_columns])
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(len(self._bests))
        group.members[entry] = None
        for number, wanted in enumerate(self._bests):
            value = row[wanted.value]
            if value is not None:
                self._compete(group, number, entry, value)

    def _compete(self, group: _Group, number: int, entry: Entry, value: Any) -> None:
        """Put an entry into the front of an aggregate if no live row is better."""
        front, best = group.front[number], group.best[number]
        if best is None:
            # Either this is the first value, or the best died; `settle_groups` chooses among all.
            self._changed[group] = None
        elif value == best:
            front[entry] = None
            self._changed[group] = None
        elif (value < best) == self._bests[number].minimum:
            group.best[number], group.front[number] = value, {entry: None}
            self._changed[group] = None
            kept = group.wanted()
            for surpassed in front:
                if surpassed.shown and surpassed not in kept:
                    self._hide(surpassed)

    def settle_groups(self) -> None:
        """Show and send the front rows of changed groups that are not in the view yet."""
        changed, self._changed = self._changed, {}
        for group in changed:
            for number, best in enumerate(group.best):
                if best is None and group.members:
                    self._choose(group, number)
            for entry in group.wanted():
                if not entry.shown:
                    self._show(entry)
                    self.released.append((entry, entry.sent))

    def _choose(self, group: _Group, number: int) -> None:
        wanted = self._bests[number]
        at = wanted.value
        values: list[Any] = [e.row[at] for e in group.members if e.row[at] is not None]
        if values:
            best = min(values) if wanted.minimum else max(values)
            group.best[number] = best
            group.front[number] = {e: None for e in group.members if e.row[at] == best}

    def forget(self, entry: Entry) -> None:
        """Remove a row without support; its group may need another best."""
        super().forget(entry)
        key = tuple([entry.row[c] for c in self._group_columns])
        group = self._groups[key]
        del group.members[entry]
        for number, front in enumerate(group.front):
            if entry in front:
                del front[entry]
                if not front:
                    group.best[number] = None
                    self._changed[group] = None
        if not group.members:
            del self._groups[key]
            self._changed.pop(group, None)

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self._groups = {}
        self._changed = {}
