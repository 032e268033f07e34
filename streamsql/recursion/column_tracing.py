"""Output columns and predicates of a plan in terms of one relation it reads.

Where a plan reads the relation several times, the columns of each reading (an *occurrence*) get
positions of their own: column c of occurrence k is k * width + c. Every column of any other
relation gets a number from `OUTSIDE` on, which marks it as taken from a finite set.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from streamsql.algebra.expressions import (
    MAX_SIZE,
    Call,
    Column,
    Expression,
    columns_of,
    conjuncts,
    substituted,
)
from streamsql.algebra.operators import Filter, Join, Plan, Project, walk_plan
from streamsql.data.types import DataType
from streamsql.errors import UnsupportedError

OUTSIDE = 1 << 40


@dataclass(frozen=True, slots=True)
class Trace:
    """Output columns and predicates of a plan over the traced relation.

    Attributes:
        columns: One expression per output column.
        predicates: Conjuncts that every output row satisfies.
        width: Number of columns of the traced relation.
        occurrences: How often the plan reads it.
    """

    columns: tuple[Expression, ...]
    predicates: tuple[Expression, ...] = ()
    width: int = 1
    occurrences: int = 0

    def column_of(self, position: int) -> int:
        """Return which column of the relation a position below `OUTSIDE` is."""
        return position % self.width

    def occurrence_of(self, position: int) -> int:
        """Return which reading of the relation a position below `OUTSIDE` belongs to, from 0."""
        return position // self.width

    def columns_read(self, expression: Expression) -> frozenset[int]:
        """Return the columns of the relation that an expression reads, of any occurrence."""
        return frozenset(map(self.column_of, reads(expression)))


def trace(plan: Plan, is_relation: Callable[[Plan], bool]) -> Trace:
    """Trace a plan down to the relation for which `is_relation` holds.

    Operators other than projections, filters and joins above it hide it: their columns count as
    those of another relation.
    """
    tracer = _Tracer(is_relation)
    columns, predicates = tracer.trace(plan)
    return Trace(columns, predicates, max(tracer.width, 1), tracer.occurrences)


_Parts = tuple[tuple[Expression, ...], tuple[Expression, ...]]


@dataclass(slots=True)
class _Tracer:
    """Numbers occurrences and outside columns while a plan is traced from left to right."""

    is_relation: Callable[[Plan], bool]
    width: int = 0
    occurrences: int = 0
    outside: "itertools.count[int]" = field(default_factory=lambda: itertools.count(OUTSIDE))

    def trace(self, plan: Plan) -> _Parts:
        """Return columns and predicates."""
        if self.is_relation(plan):
            return self._occurrence(plan)
        if not any(self.is_relation(node) for node in walk_plan(plan)):
            return self._opaque(plan)
        match plan:
            case Project(input=child, expressions=expressions):
                columns, predicates = self.trace(child)
                return tuple(_over(e, columns) for e in expressions), predicates
            case Filter(input=child, predicate=predicate):
                columns, predicates = self.trace(child)
                added = tuple(_over(p, columns) for p in conjuncts(predicate))
                return columns, predicates + added
            case Join():
                return self._join(plan)
            case _:
                return self._opaque(plan)

    def _occurrence(self, plan: Plan) -> _Parts:
        fields = plan.schema.fields
        self.width = len(fields)
        start = self.occurrences * self.width
        self.occurrences += 1
        return tuple(Column(start + i, f.name, f.dtype) for i, f in enumerate(fields)), ()

    def _join(self, join: Join) -> _Parts:
        left, left_predicates = self.trace(join.left)
        right, right_predicates = self.trace(join.right)
        columns = left + right
        equal = tuple(Call("=", (left[a], right[b]), DataType.BOOLEAN) for a, b in join.keys)
        residual = tuple(_over(p, columns) for p in conjuncts(join.residual))
        return columns, left_predicates + right_predicates + equal + residual

    def _opaque(self, plan: Plan) -> _Parts:
        return tuple(Column(next(self.outside), f.name, f.dtype) for f in plan.schema.fields), ()


def _over(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    found = substituted(expression, columns)
    if found is None:
        raise UnsupportedError(
            f"an expression in this recursion has more than {MAX_SIZE} parts",
            hint="compute it outside the recursion, or in fewer steps",
            code="limit_exceeded",
        )
    return found


def reads(expression: Expression) -> frozenset[int]:
    """Return the positions of the traced relation's columns that an expression reads."""
    return frozenset(position for position in columns_of(expression) if position < OUTSIDE)
