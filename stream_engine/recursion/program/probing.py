"""Evaluate a rule from one changed atom: pipelined joins in the order in which keys become known.

For every atom of a rule a probe plan is compiled that starts with changed rows of that atom and
joins the other atoms one after the other, by index where an equality binds some of their columns,
by nested loop otherwise (theta joins). No intermediate result is stored. A further plan starts from
a *known head row* and finds all derivations of that row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stream_engine.recursion.program.item_tables import NO_ITEMS, Bucket, ItemTable, Key, values_at
from stream_engine.recursion.program.placement import is_base
from stream_engine.recursion.program.rules import RECURSIVE, Rule
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    map_columns,
)
from streamsql.algebra.scalar_functions.scalar import compile_predicate, compile_row
from streamsql.data.types import Row

Annotated = tuple[Row, Any]
"""A row (wide or head) and its annotation."""


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """Joins one more atom.

    Attributes:
        atom: Leaf number or RECURSIVE.
        columns: Columns of the atom that the key fixes; empty for a nested loop.
        read_of: The values of the wide row so far that `holds` reads.
    """

    atom: int
    columns: tuple[int, ...]
    key_of: Key
    skip_nulls: bool
    holds: Callable[[Row], bool] | None
    read_of: Key

    def lookup(self, table: ItemTable) -> "Lookup":
        """Return how to find the items that join; of use until the table is cleared."""
        if not self.columns and self.holds is not None:
            return Lookup(_itself, table.matching(self, self.holds, self.read_of).of, False, None)
        get = table.index(self.columns).get
        if self.skip_nulls and len(self.columns) > 1:

            def get_unless_null(key: Any, otherwise: Bucket) -> Bucket:
                return otherwise if None in key else get(key, otherwise)

            return Lookup(self.key_of, get_unless_null, False, self.holds)
        return Lookup(self.key_of, get, self.skip_nulls, self.holds)

    def fan_out(self, table: ItemTable) -> float:
        """Return about how many items join one partial result."""
        if not self.columns and self.holds is not None:
            return table.matching(self, self.holds, self.read_of).mean
        return len(table) / max(len(table.index(self.columns)), 1)


class Lookup(NamedTuple):
    """A step over a table.

    Attributes:
        get: The items of a key, or its second argument.
        skip_none: Whether nothing joins the key None.
    """

    key_of: Key
    get: Callable[[Any, Bucket], Bucket]
    skip_none: bool
    holds: Callable[[Row], bool] | None


def _itself(wide: Row) -> Row:
    return wide


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """A rule, seen from one of its atoms (or from its head, when `atom` is None)."""

    rule: Rule
    atom: int | None
    holds: Callable[[Row], bool] | None
    steps: tuple[ProbeStep, ...]
    head_of: Callable[[Row], Row]

    def run(
        self,
        start: list[Annotated],
        tables: Callable[[int], ItemTable],
        conjoin: Callable[[Any, Any], Any],
    ) -> list[Annotated]:
        """Return all derivations from the starting rows, as (head row, annotation)."""
        partial = start
        if self.holds is not None:
            holds = self.holds
            partial = [pair for pair in start if holds(pair[0])]
        for step in self.steps:
            if not partial:
                return []
            partial = probe(step, partial, tables(step.atom), conjoin)
        head_of = self.head_of
        return [(head_of(wide), annotation) for wide, annotation in partial]


def probe(
    step: ProbeStep,
    partial: list[Annotated],
    table: ItemTable,
    conjoin: Callable[[Any, Any], Any],
) -> list[Annotated]:
    """Join one more atom to partial results."""
    found: list[Annotated] = []
    append = found.append
    key_of, get, skip_none, holds = step.lookup(table)
    for wide, annotation in partial:
        key = key_of(wide)
        if key is None and skip_none:
            continue
        for item in get(key, NO_ITEMS):
            joined = wide + item.row
            if holds is None or holds(joined):
                append((joined, conjoin(annotation, item.sent)))
    return found


def plan_from_atom(rule: Rule, atom: int, *, leaves_first: bool = False) -> ProbePlan:
    """Return a plan that starts with rows of the rule's atom number `atom`.

    Args:
        rule: Any rule.
        atom: Position in its atoms.
        leaves_first: Whether leaves join before the recursive relation, unless that is bound
            altogether; else what has the most columns bound joins first.
    """
    return _Planner(rule, head_width=0, leaves_first=leaves_first).plan(atom)


def plan_from_head(rule: Rule, *, leaves_first: bool = False) -> ProbePlan:
    """Return a plan that starts with head rows and finds their derivations."""
    return _Planner(rule, head_width=len(rule.head), leaves_first=leaves_first).plan(None)


class _Planner:
    """Orders the atoms and places every predicate as early as its columns are known.

    The working row of a plan is: head values (head plans only), then the atoms in joining order.
    """

    def __init__(self, rule: Rule, head_width: int, *, leaves_first: bool = False) -> None:
        self.rule = rule
        self.leaves_first = leaves_first
        self.place: dict[int, int] = {}
        self.width = head_width
        self.pending = list(rule.predicates)
        self.head_columns: dict[int, int] = {}
        if head_width:
            for i, expression in enumerate(rule.head):
                if isinstance(expression, Column):
                    self.head_columns.setdefault(expression.position, i)
        self.is_head_plan = head_width > 0

    def plan(self, first: int | None) -> ProbePlan:
        atoms = list(range(len(self.rule.atoms)))
        if first is not None:
            atoms.remove(first)
            self._join(first)
        ready = self._ready()
        steps = []
        while atoms:
            atom = max(atoms, key=self._urgency)
            atoms.remove(atom)
            steps.append(self._step(atom))
        head = tuple(self._placed(e) for e in self.rule.head)
        holds = None if ready is None else compile_predicate(ready)
        return ProbePlan(self.rule, first, holds, tuple(steps), _row(head))

    def _urgency(self, atom: int) -> tuple[int, ...]:
        """Return how well an atom is bound by now; the greatest joins next."""
        bound = len(self._bound(atom))
        if not self.leaves_first:
            return (bound, -atom)
        is_whole = bound == self.rule.widths[atom]
        return (is_whole, self.rule.atoms[atom] != RECURSIVE, bound, -atom)

    def _step(self, atom: int) -> ProbeStep:
        bound = self._bound(atom)
        columns = tuple(sorted(bound))
        sources = tuple(bound[c] for c in columns)
        offset = self.rule.offsets[atom]
        if not self.is_head_plan:
            self.pending = [p for p in self.pending if not self._is_covered(p, offset, bound)]
        known = self.width
        self._join(atom)
        ready = self._ready()
        read = () if ready is None else tuple(sorted(p for p in columns_of(ready) if p < known))
        return ProbeStep(
            atom=self.rule.atoms[atom],
            columns=columns,
            key_of=_key(sources),
            skip_nulls=bool(columns) and not self.is_head_plan,
            holds=None if ready is None else compile_predicate(ready),
            read_of=values_at(read),
        )

    def _join(self, atom: int) -> None:
        offset = self.rule.offsets[atom]
        for i in range(self.rule.widths[atom]):
            self.place[offset + i] = self.width + i
        self.width += self.rule.widths[atom]

    def _bound(self, atom: int) -> dict[int, Expression]:
        """Return the atom's columns that are fixed by now, with the expression that fixes them."""
        offset = self.rule.offsets[atom]
        columns = range(offset, offset + self.rule.widths[atom])
        bound: dict[int, Expression] = {}
        for predicate in self.pending:
            pair = self._equality(predicate, columns)
            if pair is not None:
                bound.setdefault(pair[0] - offset, pair[1])
        for position in columns:
            if position in self.head_columns:
                known = Column(self.head_columns[position], "", self.rule.head[0].dtype)
                bound.setdefault(position - offset, known)
        return bound

    def _equality(self, predicate: Expression, columns: range) -> tuple[int, Expression] | None:
        if not isinstance(predicate, Call) or predicate.function != "=":
            return None
        left, right = predicate.arguments
        for mine, other in ((left, right), (right, left)):
            read = columns_of(other)
            if (
                isinstance(mine, Column)
                and mine.position in columns
                and read
                and read <= self.place.keys()
            ):
                return mine.position, self._placed(other)
        return None

    def _is_covered(self, p: Expression, offset: int, bound: dict[int, Expression]) -> bool:
        """Whether the index lookup already guarantees a predicate."""
        columns = range(offset, max(bound, default=-1) + offset + 1)
        pair = self._equality(p, columns)
        return pair is not None and bound.get(pair[0] - offset) == pair[1]

    def _placed(self, expression: Expression) -> Expression:
        return map_columns(expression, lambda c: Column(self.place[c.position], c.name, c.dtype))

    def _ready(self) -> Expression | None:
        """Take out the predicates whose columns are all known; return them over the working row."""
        ready = [p for p in self.pending if columns_of(p) <= self.place.keys()]
        self.pending = [p for p in self.pending if p not in ready]
        return conjunction([self._placed(p) for p in ready])


def _key(sources: tuple[Expression, ...]) -> Key:
    if all(isinstance(s, Column) for s in sources):
        return values_at(tuple(s.position for s in sources if isinstance(s, Column)))
    make = compile_row(sources)
    return make if len(sources) > 1 else lambda row: make(row)[0]


def _row(head: tuple[Expression, ...]) -> Callable[[Row], Row]:
    if len(head) > 1 and all(isinstance(e, Column) for e in head):
        return values_at(tuple(e.position for e in head if isinstance(e, Column)))
    return compile_row(head)


def run_all(
    plans: Sequence[ProbePlan],
    start: list[Annotated],
    tables: Callable[[int], ItemTable],
    conjoin: Callable[[Any, Any], Any],
) -> list[Annotated]:
    """Return the derivations of several plans that start from the same rows."""
    found: list[Annotated] = []
    for plan in plans:
        found.extend(plan.run(start, tables, conjoin))
    return found


class RulePlans:
    """The compiled rules of a fixpoint.

    Base rules read one leaf and run where its rows arrive; all others are step rules and run where
    rows join. A rule with several recursive atoms has one plan for each: whichever of its rows
    changes last finds the others in their tables.

    Args:
        leaf_count: Number of its leaves, and of copies of the view behind them.

    Attributes:
        base: Per leaf, the plans of base rules.
        step: Per leaf or copy, the plans of step rules that start from its rows.
        recursive: The plans that start from rows of the recursive relation.
        base_heads: Plans that find the derivations of a given row by base rules.
        step_heads: The same by step rules.
    """

    def __init__(self, rules: tuple[Rule, ...], leaf_count: int) -> None:
        base = [rule for rule in rules if is_base(rule)]
        step = [rule for rule in rules if not is_base(rule)]
        self.base = _by_leaf(base, leaf_count)
        self.step = _by_leaf(step, leaf_count)
        self.recursive = [
            plan_from_atom(rule, number)
            for rule in step
            for number, atom in enumerate(rule.atoms)
            if atom == RECURSIVE
        ]
        self.base_heads = [plan_from_head(rule) for rule in base]
        self.step_heads = [plan_from_head(rule) for rule in step]
        heads = self.base_heads + self.step_heads
        atoms = [plan for plans in (*self.base, *self.step, self.recursive) for plan in plans]
        self._orders = {id(plan): _orders(plan) for plan in heads + atoms}

    def orders(self, plan: ProbePlan) -> tuple[ProbePlan, ...]:
        """Return one of these plans, and one that joins in another order if that may be better."""
        return self._orders[id(plan)]


def _by_leaf(rules: list[Rule], leaf_count: int) -> list[list[ProbePlan]]:
    plans: list[list[ProbePlan]] = [[] for _ in range(leaf_count)]
    for rule in rules:
        for atom, leaf in enumerate(rule.atoms):
            if leaf != RECURSIVE:
                plans[leaf].append(plan_from_atom(rule, atom))
    return plans


def _orders(plan: ProbePlan) -> tuple[ProbePlan, ...]:
    if plan.atom is None:
        other = plan_from_head(plan.rule, leaves_first=True)
    else:
        other = plan_from_atom(plan.rule, plan.atom, leaves_first=True)
    same = [step.atom for step in plan.steps] == [step.atom for step in other.steps]
    return (plan,) if same else (plan, other)
