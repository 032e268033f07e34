"""Delete and rederive at one place (Gupta, Mumick, Subrahmanian 1993).

A deletion takes out everything that has a derivation through what was deleted (over-deletion), then
derives again what has another one. Set semantics, no annotations.
"""

from collections.abc import Iterator, Sequence

from typing_extensions import override

from stream_engine.recursion.baselines.dred.candidates import Candidates
from stream_engine.recursion.baselines.dred.dred_evaluation import DredCounters, Evaluation
from stream_engine.recursion.program.fixpoint_options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program.item_tables import Item, ItemTable
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.program import Program
from stream_engine.recursion.program.rules import RECURSIVE
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class DredEngine(LocalEngine):
    """A `LocalEngine` that over-deletes and derives again.

    State: leaf rows and derived rows, indexed. Work per insertion: its consequences; per deletion:
    the consequences of everything that has a derivation through it.

    With aggregate selection nothing is retracted from what a surpassed row derived: it is still
    true, and itself surpassed. Over-deletion therefore follows surpassed rows, too.
    """

    description = "delete and rederive"

    def __init__(self, program: Program, options: RecursionOptions) -> None:
        self.work = DredCounters()
        self.counters: FixpointCounters = self.work
        self._program = program
        self._rules = Evaluation(program, options, self.work)
        self._leaves = tuple(ItemTable() for _ in program.uses)
        self._items: tuple[dict[Row, Item], ...] = tuple({} for _ in program.uses)
        self._derived = Candidates(program.selection)

    @override
    def change(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        self.work.settles += 1
        self._rules.begin()
        if any(left):
            self._delete(left)
        if any(entered):
            self._insert(entered)
        return self._derived.take_changes()

    def _delete(self, left: Sequence[Sequence[Row]]) -> None:
        self.work.waves += 1
        doomed = self._over_deleted(left)
        for leaf, rows in enumerate(left):
            for row in rows:
                self._leaves[leaf].remove(self._items[leaf].pop(row))
        for row in doomed:
            self._derived.discard(row)
        self._derived.settle_groups()
        again = self._rules.derivable(doomed, self._leaves.__getitem__, self._shown)
        self._derived.add_all([row for row in doomed if row in again])
        self._propagate()
        self.work.over_deleted += len(doomed)
        self.work.rederived += sum(1 for row in doomed if row in self._derived)

    def _over_deleted(self, left: Sequence[Sequence[Row]]) -> dict[Row, None]:
        """Return every row that has a derivation through leaf rows, which are still there."""
        doomed: dict[Row, None] = {}
        plans = self._rules.plans
        found: list[Row] = []
        for leaf, rows in enumerate(left):
            found += self._rules.heads([*plans.base[leaf], *plans.step[leaf]], rows, self._all)
        while found:
            new = [r for r in dict.fromkeys(found) if r in self._derived and r not in doomed]
            doomed.update(dict.fromkeys(new))
            self.work.rounds += 1
            self.work.trace.note(0, len(new))
            found = self._rules.heads(plans.recursive, new, self._all)
        return doomed

    def _insert(self, entered: Sequence[Sequence[Row]]) -> None:
        for leaf, rows in enumerate(entered):
            for row in rows:
                item = self._items[leaf][row] = Item(row, True)
                self._leaves[leaf].add(item)
        plans = self._rules.plans
        for leaf, rows in enumerate(entered):
            both = [*plans.base[leaf], *plans.step[leaf]]
            self._add(self._rules.heads(both, rows, self._shown))
        self._propagate()

    def _propagate(self) -> None:
        rounds = 0
        while released := self._derived.take_released():
            self.work.trace.note(len(released))
            self._add(self._rules.heads(self._rules.plans.recursive, released, self._shown))
            rounds += 1
            self._program.check_rounds(rounds, len(self._derived.shown))
        self.work.rounds += rounds

    def _add(self, rows: list[Row]) -> None:
        self._derived.add_all(rows)
        self._program.check_size(len(self._derived.shown), len(self._derived))

    def _shown(self, number: int) -> ItemTable:
        return self._derived.shown if number == RECURSIVE else self._leaves[number]

    def _all(self, number: int) -> ItemTable:
        return self._derived.all if number == RECURSIVE else self._leaves[number]

    @override
    def rows(self) -> Iterator[Row]:
        return (item.row for item in self._derived.shown.items)

    @override
    def size(self) -> int:
        return len(self._derived.shown)

    @override
    def clear(self) -> None:
        for table, items in zip(self._leaves, self._items, strict=True):
            table.clear()
            items.clear()
        self._derived = Candidates(self._program.selection)
