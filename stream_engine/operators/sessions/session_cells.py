"""What is computed of the rows of one session: groups inside it, their aggregates, their output."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stream_engine.operators.aggregates.accumulator import Changes, MergingAccumulator
from stream_engine.operators.aggregates.aggregate_slots import row_of, slots_of
from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Expression
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row

Bounds = tuple[int, int]
"""Start and end of a session."""


@dataclass(frozen=True, slots=True)
class SessionGroups:
    """GROUP BY over the sessions of a relation, as one step. Columns are those of the relation.

    Attributes:
        gap: Times that are less apart are of one session, in microseconds.
        inner: What else is grouped by: groups inside a session.
        predicates: Rows for which one of them is not true make sessions too, but are in no group.
        aggregates: Their arguments are over the relation's rows.
        output: Group columns in order: positions in (*inner, *partition, start, end).
    """

    time: int
    gap: int
    partition: tuple[int, ...]
    inner: tuple[Expression, ...]
    predicates: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    output: tuple[int, ...]


class Cell:
    """A group inside a session."""

    __slots__ = ("output", "slots", "weight")

    def __init__(self) -> None:
        self.weight = 0
        self.slots: list[Any] | None = None  # no row has come
        self.output: Row | None = None


class Session(Cell):
    """A session; where nothing else is grouped by it is its only cell.

    Attributes:
        cells: By what else is grouped by; None until a row has come.
        moved: Whether it is shown with other bounds.
        pending: Items that came and went in this batch, or None: untouched.
    """

    __slots__ = ("cells", "last", "moved", "pending", "size", "start")

    def __init__(self, start: int, last: int, size: int) -> None:
        self.weight = 0  # as every cell begins
        self.slots = self.output = None
        self.start = start
        self.last = last
        self.size = size
        self.cells: dict[Row, Cell] | None = None
        self.moved = True
        self.pending: Changes | None = None


class SessionAggregates:
    """Keeps cells: as an `AggregateOperator` keeps groups, but their bounds may change.

    What has to be kept of a row is its *item*: the inner group columns, the arguments of the
    aggregates, and whether each predicate holds. Cells are sums over items, so the rows of a part
    of a session may be added to one session and taken from another in any order.

    Attributes:
        merges: Whether cells of two sessions can be added without a look at their items.
    """

    def __init__(self, spec: SessionGroups) -> None:
        slots = slots_of(spec.aggregates, len(spec.inner))
        parts = (*spec.inner, *slots.arguments, *spec.predicates)
        self.item_of = row_of(parts)
        self._cell_of = picker(tuple(range(len(spec.inner)))) if spec.inner else None
        self._tested = len(parts) - len(spec.predicates) if spec.predicates else None
        self._pick = picker(spec.output)
        counted = all(call.function == AggregateFunction.COUNT_ALL for call in spec.aggregates)
        # The weight of a cell is its count: nothing else need be kept.
        self._counts = len(spec.aggregates) if counted else None
        self._accumulators = [] if counted else slots.accumulators
        self._empties = [accumulator.empty for accumulator in self._accumulators]
        self._updates = [accumulator.update for accumulator in self._accumulators]
        self._results = slots.results
        self._merging = [a for a in self._accumulators if isinstance(a, MergingAccumulator)]
        self.merges = len(self._merging) == len(self._accumulators)

    def settle(self, session: Session, key: Row, gap: int, result: Delta) -> None:
        """Ingest what is pending; show what has changed of the output."""
        items, session.pending = session.pending or [], None
        if not session.size:  # it has ended, or is part of another one
            self._withdraw(session, result)
            return
        keys = (*key, session.start, session.last + gap)
        tested, cell_of = self._tested, self._cell_of
        if tested is not None:
            items = [pair for pair in items if all(holds is True for holds in pair[0][tested:])]
        if cell_of is None:
            if items:
                self._take(session, items)
            self._show(session, keys, result)
        else:
            self._settle_cells(session, items, keys, result)
        session.moved = False

    def _withdraw(self, session: Session, result: Delta) -> None:
        for cell in (session, *(session.cells or {}).values()):
            if cell.output is not None:
                add(result, cell.output, -1)
                cell.output = None

    def _settle_cells(self, session: Session, items: Changes, keys: Row, result: Delta) -> None:
        cell_of = self._cell_of
        cells = session.cells
        if cells is None:
            cells = session.cells = {}
        changed: dict[Row, Changes] = {}
        for pair in items:
            inner = cell_of(pair[0]) if cell_of is not None else ()
            if inner in changed:
                changed[inner].append(pair)
            else:
                changed[inner] = [pair]
        for inner, part in changed.items():
            cell = cells.get(inner)
            if cell is None:
                cell = cells[inner] = Cell()
            self._take(cell, part)
        for inner in list(cells) if session.moved else changed:
            cell = cells[inner]
            self._show(cell, inner + keys, result)
            if not cell.weight:
                del cells[inner]

    def _take(self, cell: Cell, items: Changes) -> None:
        weight = cell.weight
        for _item, change in items:
            weight += change
        cell.weight = weight
        if self._counts is None:
            slots = cell.slots
            if slots is None:
                slots = cell.slots = [empty() for empty in self._empties]
            for number, update in enumerate(self._updates):
                slots[number] = update(slots[number], items)

    def _show(self, cell: Cell, keys: Row, result: Delta) -> None:
        old, new = cell.output, None
        weight = cell.weight
        if weight > 0:
            new = self._pick(keys)
            if self._counts is not None:
                new += (weight,) * self._counts
            elif cell.slots is not None:
                slots = cell.slots
                new += tuple([of(slots[slot]) for of, slot in self._results])
        if new != old:
            cell.output = new
            if old is not None:
                add(result, old, -1)
            if new is not None:
                add(result, new, 1)

    def of_items(self, items: Changes, key: Row, bounds: Bounds, sign: int, result: Delta) -> None:
        """Show the groups of a session that is remembered by its items alone."""
        if self._counts is not None and self._cell_of is None and self._tested is None:
            weight = sum([weight for _item, weight in items])
            if weight > 0:
                add(result, self._pick(key + bounds) + (weight,) * self._counts, sign)
            return
        session = Session(*bounds, 1)
        session.pending = items
        shown: Delta = {}
        self.settle(session, key, 0, shown)
        for row in shown:
            add(result, row, sign)

    def absorb(self, kept: Session, gone: Session) -> None:
        """Merge the cells of a session that has become part of another one.

        The other session has to be shown with its new bounds. The slots are merged if `merges`,
        otherwise the items are still to be put into the other one.
        """
        if not self.merges:
            return
        if self._cell_of is None:
            self._absorb(kept, gone)
            return
        if kept.cells is None:
            kept.cells = {}
        for inner, cell in (gone.cells or {}).items():
            self._absorb(kept.cells.setdefault(inner, Cell()), cell)

    def _absorb(self, kept: Cell, gone: Cell) -> None:
        kept.weight += gone.weight
        if kept.slots is None:
            kept.slots = gone.slots
        elif gone.slots is not None:
            slots, others = kept.slots, gone.slots
            for number, accumulator in enumerate(self._merging):
                slots[number] = accumulator.merge(slots[number], others[number])

    def grouped(self, items: Iterable[tuple[Row, int]]) -> int:
        """Return the weight of the items that are in a group."""
        tested = self._tested
        if tested is None:
            return sum([weight for _item, weight in items])
        return sum([weight for item, weight in items if all(h is True for h in item[tested:])])

    def rows(self, session: Session) -> int:
        """Return the cells, and values that their aggregates remember one by one."""
        cells = [session] if self._cell_of is None else [*(session.cells or {}).values()]
        return len(cells) + sum(
            accumulator.rows(slot)
            for cell in cells
            for accumulator, slot in zip(self._accumulators, cell.slots or (), strict=False)
        )
