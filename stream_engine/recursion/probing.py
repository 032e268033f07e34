"""Evaluate a rule from one changed atom: pipelined joins in the order in which keys become known.

For every atom of a rule a probe plan is compiled that starts with changed rows of that atom and
joins the other atoms one after the other, by index where an equality binds some of their columns,
by nested loop otherwise (theta joins). No intermediate result is stored. A further plan starts from
a *known head row* and finds all derivations of that row.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

from stream_engine.recursion.rules import Rule
from stream_engine.recursion.tables import Bucket, ItemTable, Key, values_at
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    map_columns,
)
from streamsql.algebra.scalar import compile_predicate, compile_row
from streamsql.data.types import Row

Annotated = tuple[Row, Any]
"""A row (wide or head) and its annotation."""


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """Joins one more atom.

    Attributes:
        atom: Leaf number or RECURSIVE.
        columns: Columns of the atom that the key fixes; empty for a nested loop.
        key_of: The key, from the wide row so far.
        skip_nulls: Whether a NULL in the key rules out a match.
        holds: What must hold once the atom is joined, or None.
    """

    atom: int
    columns: tuple[int, ...]
    key_of: Key
    skip_nulls: bool
    holds: Callable[[Row], bool] | None


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
        """Return all derivations from the starting rows, as (head row, annotation).

        Args:
            start: Rows of the atom with annotations; for a head plan, head rows.
            tables: From leaf number or RECURSIVE to its rows.
            conjoin: AND of two annotations.
        """
        partial = start
        if self.holds is not None:
            holds = self.holds
            partial = [pair for pair in start if holds(pair[0])]
        for step in self.steps:
            if not partial:
                return []
            partial = _probe(step, partial, tables(step.atom), conjoin)
        head_of = self.head_of
        return [(head_of(wide), annotation) for wide, annotation in partial]

    def run_new(
        self,
        start: list[Annotated],
        tables: Callable[[int], ItemTable],
        conjoin: Callable[[Any, Any], Any],
        known: tuple[Container[Row], Container[Row]],
    ) -> tuple[dict[Row, Any], int]:
        """Return one derivation of every head row that is not known, and how many there were.

        Annotations are only made for what is returned.

        Args:
            start: Rows of the atom with annotations.
            tables: From leaf number or RECURSIVE to its rows.
            conjoin: AND of two annotations.
            known: Rows to leave out.
        """
        holds = self.holds
        partial = [(row, part) for row, part in start if holds is None or holds(row)]
        for step in self.steps[:-1]:
            partial = _probe(step, partial, tables(step.atom), _paired)
        found: dict[Row, Any] = {}
        if not partial:
            return found, 0
        if not self.steps:
            return self._new_heads(partial, known), len(partial)
        count = _probe_last(self.steps[-1], partial, tables, self.head_of, known, found)
        depth = len(self.steps)
        return {row: _conjunction(nest, depth, conjoin) for row, nest in found.items()}, count

    def _new_heads(
        self, partial: list[Annotated], known: tuple[Container[Row], Container[Row]]
    ) -> dict[Row, Any]:
        first, second = known
        heads = [(self.head_of(wide), part) for wide, part in reversed(partial)]
        return {row: part for row, part in heads if row not in first and row not in second}

    def searcher(
        self, tables: Callable[[int], ItemTable], conjoin: Callable[[Any, Any], Any], true: Any
    ) -> Callable[[Row, int], list[Any]]:
        """Return a function from a head row to annotations of some of its derivations.

        It searches depth first and stops when it has found as many as its second argument says. It
        is of use until the tables change their indexes; this is a head plan.

        Args:
            tables: From leaf number or RECURSIVE to its rows.
            conjoin: AND of two annotations.
            true: What a derivation from nothing rests on.
        """
        levels = [
            (step.key_of, tables(step.atom).index(step.columns).get, step.holds)
            for step in self.steps
        ]
        start_holds, head_of = self.holds, self.head_of
        last = len(levels) - 1
        nothing: Bucket = {}

        def descend(depth: int, wide: Row, held: Any, head: Row, found: list[Any]) -> int:
            """Join from a level on; return how many more derivations are wanted."""
            key_of, lookup, holds = levels[depth]
            wanted = found[0]
            for item in lookup(key_of(wide), nothing):
                joined = wide + item.row
                if holds is not None and not holds(joined):
                    continue
                annotation = item.sent if held is true else conjoin(held, item.sent)
                if depth < last:
                    wanted = descend(depth + 1, joined, annotation, head, found)
                elif head_of(joined) == head:
                    found.append(annotation)
                    wanted = found[0] = wanted - 1
                if wanted <= 0:
                    break
            return int(wanted)

        def search(head: Row, most: int) -> list[Any]:
            if start_holds is not None and not start_holds(head):
                return []
            found: list[Any] = [most]
            descend(0, head, true, head, found)
            return found[1:]

        return search


def _probe(
    step: ProbeStep,
    partial: list[Annotated],
    table: ItemTable,
    conjoin: Callable[[Any, Any], Any],
) -> list[Annotated]:
    found: list[Annotated] = []
    append = found.append
    lookup = table.index(step.columns).get
    key_of, holds = step.key_of, step.holds
    single = len(step.columns) == 1
    for wide, annotation in partial:
        key = key_of(wide)
        if step.skip_nulls and (key is None if single else None in key):
            continue
        for item in lookup(key, ()):
            joined = wide + item.row
            if holds is None or holds(joined):
                append((joined, conjoin(annotation, item.sent)))
    return found


def _paired(nest: Any, annotation: Any) -> Any:
    """Put off a conjunction: most derivations turn out to be known."""
    return (nest, annotation)


def _conjunction(nest: Any, depth: int, conjoin: Callable[[Any, Any], Any]) -> Any:
    """Return the conjunction that was put off `depth` times."""
    parts = []
    for _ in range(depth):
        nest, part = nest
        parts.append(part)
    for part in reversed(parts):
        nest = conjoin(nest, part)
    return nest


def _probe_last(  # noqa: PLR0913, PLR0917  (the inner loop of everything)
    step: ProbeStep,
    partial: list[Annotated],
    tables: Callable[[int], ItemTable],
    head_of: Callable[[Row], Row],
    known: tuple[Container[Row], Container[Row]],
    found: dict[Row, Any],
) -> int:
    """Join the last atom; note one derivation of every unknown head; return how many there were."""
    lookup = tables(step.atom).index(step.columns).get
    key_of, holds = step.key_of, step.holds
    single = len(step.columns) == 1
    first, second = known
    count = 0
    for wide, nest in partial:
        key = key_of(wide)
        if step.skip_nulls and (key is None if single else None in key):
            continue
        bucket = lookup(key)
        if bucket is None:
            continue
        for item in bucket:
            joined = wide + item.row
            if holds is None or holds(joined):
                count += 1
                head = head_of(joined)
                if head not in first and head not in second and head not in found:
                    found[head] = (nest, item.sent)
    return count


def plan_from_atom(rule: Rule, atom: int) -> ProbePlan:
    """Return the plan that starts with rows of the rule's atom number `atom`."""
    return _Planner(rule, head_width=0).plan(atom)


def plan_from_head(rule: Rule) -> ProbePlan:
    """Return the plan that starts with head rows and finds their derivations."""
    return _Planner(rule, head_width=len(rule.head)).plan(None)


class _Planner:
    """Orders the atoms and places every predicate as early as its columns are known.

    The working row of a plan is: head values (head plans only), then the atoms in joining order.
    """

    def __init__(self, rule: Rule, head_width: int) -> None:
        self.rule = rule
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
        holds = self._ready()
        steps = []
        while atoms:
            atom = max(atoms, key=lambda a: (len(self._bound(a)), -a))
            atoms.remove(atom)
            steps.append(self._step(atom))
        head = tuple(self._placed(e) for e in self.rule.head)
        number = None if first is None else self.rule.atoms[first]
        return ProbePlan(self.rule, number, holds, tuple(steps), _row(head))

    def _step(self, atom: int) -> ProbeStep:
        bound = self._bound(atom)
        columns = tuple(sorted(bound))
        sources = tuple(bound[c] for c in columns)
        offset = self.rule.offsets[atom]
        if not self.is_head_plan:
            self.pending = [p for p in self.pending if not self._is_covered(p, offset, bound)]
        self._join(atom)
        return ProbeStep(
            atom=self.rule.atoms[atom],
            columns=columns,
            key_of=_key(sources),
            skip_nulls=bool(columns) and not self.is_head_plan,
            holds=self._ready(),
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

    def _ready(self) -> Callable[[Row], bool] | None:
        """Take out and compile the predicates whose columns are all known."""
        ready = [p for p in self.pending if columns_of(p) <= self.place.keys()]
        self.pending = [p for p in self.pending if p not in ready]
        predicate = conjunction([self._placed(p) for p in ready])
        return None if predicate is None else compile_predicate(predicate)


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
