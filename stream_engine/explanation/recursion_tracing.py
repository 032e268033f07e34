"""Derivations inside a recursion, backwards from requested rows.

Only rows that a requested one may rest on are visited: the rules run from their heads, over the
leaf rows and the current view. With an aggregate selection the view is its best rows only.
"""

from collections.abc import Callable
from typing import Any

from stream_engine.explanation.budget import Budget, ExplanationLimitError
from stream_engine.explanation.derivation_trees import DerivationGraph
from stream_engine.explanation.plan_evaluation import Relation
from stream_engine.recursion.program.item_tables import Item, ItemTable
from stream_engine.recursion.program.probing import ProbePlan, RulePlans
from stream_engine.recursion.program.rules import RECURSIVE, LeafUse
from streamsql.algebra.expressions import conjunction
from streamsql.algebra.scalar_functions.scalar import compile_predicate, key_of
from streamsql.data.types import Row
from streamsql.errors import InternalError

_CHUNK = 500
"""Rows whose derivations are looked for together."""

Atom = tuple[int, Row]
"""Leaf number, or RECURSIVE, and a row of it."""


class RecursionTracer:
    """The derivations of one recursion, added to a graph until the budget is spent.

    State: the leaf rows and the view, indexed as the rules need it, and the node of every row
    visited. `node_of` returns the node of a row of a leaf.

    Attributes:
        complete: Whether all derivations have been followed.
    """

    def __init__(
        self,
        relation: Relation,
        graph: DerivationGraph,
        node_of: Callable[[Relation, Row], int],
        budget: Budget,
    ) -> None:
        if relation.program is None:
            raise InternalError("a recursion without program")
        self._relation = relation
        self._program = relation.program
        self._graph = graph
        self._node_of = node_of
        self._budget = budget
        self.complete = True
        plans = RulePlans(self._program.rules, len(self._program.uses))
        self._heads = [(plan, _as_written(plan)) for plan in plans.base_heads + plans.step_heads]
        self._made_of: list[dict[Row, list[Row]]] = []
        self._tables: dict[int, ItemTable] = {}
        for number, (use, leaf) in enumerate(zip(self._program.uses, relation.inputs, strict=True)):
            narrowed = _narrowed(use, leaf)
            self._made_of.append(narrowed)
            self._tables[number] = _table(number, narrowed)
        self._tables[RECURSIVE] = _table(RECURSIVE, relation.rows)
        self._nodes: dict[Row, int] = {}
        self._leaf_nodes: dict[Atom, int] = {}

    def node(self, row: Row) -> int:
        """Return the node of a row of the view, after following all it can be derived from."""
        known = self._nodes.get(row)
        if known is not None:
            return known
        waiting = [row]
        found = self._nodes[row] = self._graph.open_or()
        while waiting and self.complete:
            chunk, waiting = waiting[:_CHUNK], waiting[_CHUNK:]
            try:
                waiting.extend(self._follow(chunk))
            except ExplanationLimitError:
                self.complete = False
        return found

    def _follow(self, rows: list[Row]) -> list[Row]:
        """Add the derivations of some rows; return the rows they use that are new."""
        start: list[tuple[Row, Any]] = [(row, (row,)) for row in rows]
        fresh: list[Row] = []
        ways: dict[Row, dict[int, None]] = {}
        for plan, order in self._heads:
            derived = plan.run(start, self._tables.__getitem__, _and)
            self._budget.spend(1 + len(derived), "following the derivations")
            for head, (row, *joined) in derived:
                if head != row or (RECURSIVE, row) in joined:
                    continue  # another row of the same key, or the row from itself
                parts = []
                for atom in (joined[place] for place in order):
                    if atom[0] == RECURSIVE and atom[1] not in self._nodes:
                        self._nodes[atom[1]] = self._graph.open_or()
                        fresh.append(atom[1])
                    parts.append(self._atom_node(atom))
                ways.setdefault(row, {})[self._graph.all_of(parts)] = None
        for row, nodes in ways.items():
            for node in nodes:
                self._graph.add(self._nodes[row], node)
        return fresh

    def _atom_node(self, atom: Atom) -> int:
        number, row = atom
        if number == RECURSIVE:
            return self._nodes[row]
        known = self._leaf_nodes.get(atom)
        if known is None:
            leaf = self._relation.inputs[number]
            nodes = [self._node_of(leaf, full) for full in self._made_of[number][row]]
            known = self._leaf_nodes[atom] = self._graph.any_of(nodes)
        return known


def _and(left: tuple[Any, ...], right: Atom) -> tuple[Any, ...]:
    return (*left, right)


def _as_written(plan: ProbePlan) -> list[int]:
    """Return the places in a plan's joining order of a rule's atoms as they are written.

    So that the links of a path come in the order of the path.
    """
    left = list(enumerate(step.atom for step in plan.steps))
    order: list[int] = []
    for atom in plan.rule.atoms:
        found = next(pair for pair in left if pair[1] == atom)
        left.remove(found)
        order.append(found[0])
    return order


def _narrowed(use: LeafUse, leaf: Relation) -> dict[Row, list[Row]]:
    """Return the rows of a leaf as the rules read them, with the rows they are cut from."""
    predicate = conjunction(list(use.filter))
    holds = None if predicate is None else compile_predicate(predicate)
    cut = key_of(use.columns)
    found: dict[Row, list[Row]] = {}
    for row in leaf.rows:
        if holds is None or holds(row):
            found.setdefault(cut(row), []).append(row)
    return found


def _table(number: int, rows: Any) -> ItemTable:
    table = ItemTable()
    for row in rows:
        table.add(Item(row, (number, row)))
    return table
