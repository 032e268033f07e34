"""Compute a recursion again from scratch with every change: the oracle and the baseline.

Semi-naive: every round joins only the rows that the last one has added.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from typing_extensions import override

from stream_engine.recursion.program.fixpoint_options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program.item_tables import Item, ItemTable
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.probing import RulePlans, run_all
from stream_engine.recursion.program.program import Program, best_rows
from stream_engine.recursion.program.rules import RECURSIVE
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class RecomputeEngine(LocalEngine):
    """A `LocalEngine` that keeps nothing but leaf rows and the view.

    State: the leaf rows, indexed, and the view. Work per change: that of the whole view.
    """

    description = "recompute"

    def __init__(self, program: Program, options: RecursionOptions) -> None:
        self.counters = FixpointCounters()
        self._program = program
        self._options = options
        self._plans = RulePlans(program.rules, len(program.uses))
        self._tables = tuple(ItemTable() for _ in program.uses)
        self._items: tuple[dict[Row, Item], ...] = tuple({} for _ in program.uses)
        self._view: set[Row] = set()

    @override
    def change(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        for table, items, gone, come in zip(self._tables, self._items, left, entered, strict=True):
            for row in gone:
                table.remove(items.pop(row))
            for row in come:
                item = items[row] = Item(row, True)
                table.add(item)
        self.counters.settles += 1
        if self._view:
            self.counters.trace.note(0, len(self._view))
        view = self._evaluate()
        old, self._view = self._view, view
        delta: Delta = dict.fromkeys(view - old, 1)
        delta.update(dict.fromkeys(old - view, -1))
        return delta

    def _evaluate(self) -> set[Row]:
        program, selection = self._program, self._program.selection
        view: set[Row] = set()
        joined = ItemTable()
        shown: dict[Row, Item] = {}
        known: set[Row] = set()
        derivations = rounds = 0

        def table(number: int) -> ItemTable:
            return joined if number == RECURSIVE else self._tables[number]

        fresh = self._derived_without_recursion(table)
        while fresh:
            self.counters.trace.note(len(fresh))
            known.update(fresh)
            view = known if selection is None else best_rows(selection, known)
            for row in [row for row in shown if row not in view]:
                joined.remove(shown.pop(row))
            start: list[tuple[Row, Any]] = []
            for row in fresh if selection is None else [row for row in view if row not in shown]:
                item = shown[row] = Item(row, True)
                joined.add(item)
                start.append((row, True))
            known = view
            program.check_size(len(view))
            found = run_all(self._plans.recursive, start, table, _both)
            derivations += len(found)
            program.check_derivations(derivations, self._options.max_derivations)
            rounds += 1
            program.check_rounds(rounds, len(view))
            fresh = {row for row, _ in found} - known
            if selection is not None:
                fresh &= best_rows(selection, known | fresh)
        self.counters.derivations += derivations
        self.counters.rounds += rounds
        return set(view)

    def _derived_without_recursion(self, table: Any) -> set[Row]:
        found: set[Row] = set()
        for leaf, plans in enumerate(self._plans.base):
            start = [(item.row, True) for item in self._tables[leaf].items]
            found.update(row for row, _ in run_all(plans, start, table, _both))
        selection = self._program.selection
        return found if selection is None else best_rows(selection, found)

    @override
    def rows(self) -> Iterator[Row]:
        return iter(self._view)

    @override
    def size(self) -> int:
        return len(self._view)

    @override
    def clear(self) -> None:
        for table, items in zip(self._tables, self._items, strict=True):
            table.clear()
            items.clear()
        self._view = set()


def _both(_left: object, _right: object) -> bool:
    return True
