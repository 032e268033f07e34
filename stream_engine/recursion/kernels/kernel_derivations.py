"""Changes of leaves become changes of what non-recursive rules derive from them: edges, sources.

A derivation that joins m changed rows is found m times, once from each of them. So that it counts
once, every finding counts 1/m; sums are kept in units of 1/lcm(1 … atoms).
"""

import math
from collections.abc import Callable, Sequence
from operator import add

from stream_engine.recursion.kernels.proximity import ProximityJoin, proximity_join
from stream_engine.recursion.program.item_tables import Item, ItemTable
from stream_engine.recursion.program.probing import ProbePlan, plan_from_atom
from stream_engine.recursion.program.rules import Rule
from streamsql.data.delta import Delta
from streamsql.data.types import Row

Leaves = Sequence[Sequence[Row]]


class Derivations:
    """Keeps the rows that rules derive, as counts of derivations that it only passes on.

    State: the rows of leaves that are joined with others, indexed. Work per change: the joins of
    the changed rows.

    Args:
        rules: Without the recursive relation.
    """

    def __init__(self, rules: Sequence[Rule], leaf_count: int) -> None:
        self._count = len(rules)
        self._mappings: list[list[tuple[int, _Mapping]]] = [[] for _ in range(leaf_count)]
        self._joins: list[list[tuple[int, int, ProbePlan]]] = [[] for _ in range(leaf_count)]
        self._near: list[tuple[int, ProximityJoin]] = []
        self._unit = [math.lcm(*range(1, len(rule.atoms) + 1)) for rule in rules]
        joined: set[int] = set()
        for number, rule in enumerate(rules):
            if len(rule.atoms) == 1:
                mapping = _Mapping(plan_from_atom(rule, 0))
                self._mappings[rule.atoms[0]].append((number, mapping))
                continue
            near = proximity_join(rule)
            joined.update(rule.atoms)
            if near is not None:
                self._near.append((number, near))
                continue
            for atom, leaf in enumerate(rule.atoms):
                self._joins[leaf].append((number, atom, plan_from_atom(rule, atom)))
        self._scaled: set[int] = set()
        self._items: dict[int, dict[Row, Item]] = {leaf: {} for leaf in joined}
        self._tables = {leaf: ItemTable() for leaf in joined}

    def change(self, entered: Leaves, left: Leaves) -> list[Delta]:
        """Apply changes of the leaves; return per rule which derivations came and went."""
        found: list[Delta] = [{} for _ in range(self._count)]
        scaled = self._scaled = set()
        if any(left):
            self._map(left, -1, found)
            if self._items:
                self._leave(left, found)
        if any(entered):
            self._map(entered, 1, found)
            if self._items:
                self._enter(entered, found)
        for number in scaled:
            unit = self._unit[number]
            if unit > 1:
                found[number] = {row: count // unit for row, count in found[number].items()}
        return found

    def _map(self, changes: Leaves, sign: int, found: list[Delta]) -> None:
        for leaf, rows in enumerate(changes):
            if rows:
                for number, mapping in self._mappings[leaf]:
                    mapping.add_to(found[number], rows, sign)

    def _leave(self, left: Leaves, found: list[Delta]) -> None:
        items = self._marked(left)
        self._join(items, -1, found)
        for leaf, gone in items.items():
            table, known = self._tables[leaf], self._items[leaf]
            for item in gone:
                table.remove(item)
                del known[item.row]
        for _, near in self._near:
            near.remove(items)

    def _enter(self, entered: Leaves, found: list[Delta]) -> None:
        items: dict[int, list[Item]] = {}
        for leaf, known in self._items.items():
            table = self._tables[leaf]
            come = items[leaf] = [Item(row, 1) for row in entered[leaf]]
            for item in come:
                known[item.row] = item
                table.add(item)
        for _, near in self._near:
            near.add(items)
        self._join(items, 1, found)
        for come in items.values():
            for item in come:
                item.sent = 0

    def _marked(self, rows: Leaves) -> dict[int, list[Item]]:
        """Return the items of rows, marked as changed."""
        marked: dict[int, list[Item]] = {}
        for leaf, known in self._items.items():
            marked[leaf] = [known[row] for row in rows[leaf]]
            for item in marked[leaf]:
                item.sent = 1
        return marked

    def _join(self, changed: dict[int, list[Item]], sign: int, found: list[Delta]) -> None:
        for leaf, items in changed.items():
            joins = self._joins[leaf]
            if not items or not joins:
                continue
            start = [(item.row, 1) for item in items]
            for number, _atom, plan in joins:
                unit = sign * self._unit[number]
                self._count_in(number, plan.run(start, self._tables.__getitem__, add), unit, found)
        for number, near in self._near:
            self._count_in(number, near.pairs(changed), sign * self._unit[number], found)

    def _count_in(
        self,
        number: int,
        pairs: list[tuple[Row, int]],
        unit: int,
        found: list[Delta],
    ) -> None:
        """Count what a rule derives in units, and what it has derived so far, too."""
        if number not in self._scaled:
            self._scaled.add(number)
            whole = self._unit[number]
            found[number] = {row: count * whole for row, count in found[number].items()}
        _count(found[number], pairs, unit)


class _Mapping:
    """A rule over one leaf, and its rows one by one."""

    def __init__(self, plan: ProbePlan) -> None:
        self._holds = plan.holds
        self._head_of: Callable[[Row], Row] = plan.head_of

    def add_to(self, found: Delta, rows: Sequence[Row], sign: int) -> None:
        holds, head_of = self._holds, self._head_of
        for row in rows:
            if holds is None or holds(row):
                derived = head_of(row)
                count = found.get(derived, 0) + sign
                if count:
                    found[derived] = count
                else:
                    del found[derived]


def _count(found: Delta, pairs: list[tuple[Row, int]], unit: int) -> None:
    get = found.get
    for row, changed_rows in pairs:
        count = get(row, 0) + unit // changed_rows
        if count:
            found[row] = count
        else:
            del found[row]
