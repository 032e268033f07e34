"""Output columns and predicates of a plan in terms of one relation it reads.

The columns of the traced relation keep their positions; every column of any other relation gets a
number from `OUTSIDE` on, which marks it as taken from a finite set.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjuncts,
    map_columns,
)
from streamsql.algebra.operators import Filter, Join, Plan, Project, walk_plan
from streamsql.data.types import DataType

OUTSIDE = 1_000_000


@dataclass(frozen=True, slots=True)
class Trace:
    """What a plan computes from the traced relation.

    Attributes:
        columns: One expression per output column.
        predicates: Conjuncts that every output row satisfies.
    """

    columns: tuple[Expression, ...]
    predicates: tuple[Expression, ...] = field(default=())


def trace(plan: Plan, is_relation: Callable[[Plan], bool]) -> Trace:
    """Trace a plan down to the relation for which `is_relation` holds.

    Operators other than projections, filters and joins above it hide it: their columns count as
    those of another relation.
    """
    return _trace(plan, is_relation, itertools.count(OUTSIDE))


def _trace(plan: Plan, is_relation: Callable[[Plan], bool], numbers: Iterator[int]) -> Trace:
    if is_relation(plan):
        fields = plan.schema.fields
        return Trace(tuple(Column(i, f.name, f.dtype) for i, f in enumerate(fields)))
    if not any(is_relation(node) for node in walk_plan(plan)):
        return _opaque(plan, numbers)
    match plan:
        case Project(input=child, expressions=expressions):
            below = _trace(child, is_relation, numbers)
            return Trace(tuple(_over(e, below.columns) for e in expressions), below.predicates)
        case Filter(input=child, predicate=predicate):
            below = _trace(child, is_relation, numbers)
            added = tuple(_over(p, below.columns) for p in conjuncts(predicate))
            return Trace(below.columns, below.predicates + added)
        case Join():
            return _trace_join(plan, is_relation, numbers)
        case _:
            return _opaque(plan, numbers)


def _trace_join(join: Join, is_relation: Callable[[Plan], bool], numbers: Iterator[int]) -> Trace:
    left = _trace(join.left, is_relation, numbers)
    right = _trace(join.right, is_relation, numbers)
    columns = left.columns + right.columns
    equal = tuple(
        Call("=", (left.columns[a], right.columns[b]), DataType.BOOLEAN) for a, b in join.keys
    )
    residual = tuple(_over(p, columns) for p in conjuncts(join.residual))
    return Trace(columns, left.predicates + right.predicates + equal + residual)


def _opaque(plan: Plan, numbers: Iterator[int]) -> Trace:
    return Trace(tuple(Column(next(numbers), f.name, f.dtype) for f in plan.schema.fields))


def _over(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    return map_columns(expression, lambda column: columns[column.position])


def reads(expression: Expression) -> frozenset[int]:
    """Return the columns of the traced relation that an expression reads."""
    return frozenset(position for position in columns_of(expression) if position < OUTSIDE)
