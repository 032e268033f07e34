"""GROUPING SETS, ROLLUP and CUBE: the values that each level groups by, and the union of levels.

    GROUP BY GROUPING SETS ((a, b), a, ())   the three groupings listed
    GROUP BY ROLLUP (a, b)                   (a, b), (a), ()
    GROUP BY CUBE (a, b)                     (a, b), (a), (b), ()
    GROUP BY a, ROLLUP (b)                   every combination: (a, b), (a)

A value that a level does not group by is NULL there; GROUPING(a, b) distinguishes such a NULL from
one of the data: bit n from the right is 1 where the n-th argument from the right is not grouped by.
"""

from itertools import chain, combinations, product

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import Aggregate, AggregateCall, Plan, Project, UnionAll
from streamsql.binder.names.environment import Environment
from streamsql.data.types import DataType

MAX_LEVELS = 64

Level = tuple[exp.Expr, ...]
"""The values that one level groups by, as written."""

Bits = dict[int, tuple[int, ...]]
"""Per call that stands for a GROUPING(…): the positions of its arguments in the group."""


def levels_of(clause: exp.Expr | None, environment: Environment) -> list[Level] | None:
    """Return the levels of a GROUP BY, or None where it is a plain one."""
    if clause is None or not any(map(_is_levels, clause.expressions)):
        return None
    found: list[Level] = [()]
    for node in clause.expressions:
        added = _levels(node, environment)
        if len(found) * len(added) > MAX_LEVELS:
            raise _too_many(node, environment)
        found = [tuple(dict.fromkeys((*a, *b))) for a, b in product(found, added)]
    return found


def _is_levels(node: exp.Expr) -> bool:
    if isinstance(node, exp.Tuple):
        return not node.expressions
    return isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets)


def _levels(node: exp.Expr, environment: Environment) -> list[Level]:
    match node:
        case exp.Rollup():
            parts = [together(part) for part in node.expressions]
            counts = range(len(parts), -1, -1)
            return [tuple(chain(*parts[:count])) for count in counts]
        case exp.Cube():
            parts = [together(part) for part in node.expressions]
            if 2 ** len(parts) > MAX_LEVELS:
                raise _too_many(node, environment)
            counts = range(len(parts), -1, -1)
            return [tuple(chain(*some)) for n in counts for some in combinations(parts, n)]
        case exp.GroupingSets():
            return [level for part in node.expressions for level in _levels(part, environment)]
        case _:
            return [together(node)]


def together(node: exp.Expr) -> Level:
    """Return `(a, b)` as two values, which come and go together."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)


def _too_many(node: exp.Expr, environment: Environment) -> Exception:
    return environment.unsupported(
        node,
        f"the query has more than {MAX_LEVELS} groupings",
        hint="list only the needed ones: GROUPING SETS ((a, b), a, ())",
        code="limit_exceeded",
    )


def united(
    plan: Plan,
    group: tuple[int, ...],
    calls: tuple[AggregateCall, ...],
    levels: tuple[tuple[int, ...], ...],
    bits: Bits,
) -> Plan:
    """Return all levels as one relation with the columns of the finest: the group, then the calls.

    Args:
        plan: The input.
        group: Positions in it that some level groups by.
        calls: The aggregates; those in `bits` stand for GROUPING and are not computed.
        levels: Per level the places in `group` it groups by.
        bits: See `Bits`.
    """
    names = Aggregate(plan, group, calls).schema.names
    computed = [number for number in range(len(calls)) if number not in bits]
    branches: list[Plan] = []
    for level in levels:
        kept = [place for place in range(len(group)) if place in level]
        own = Aggregate(
            plan, tuple(group[place] for place in kept), tuple(calls[n] for n in computed)
        )
        columns = [Column(n, f.name, f.dtype) for n, f in enumerate(own.schema.fields)]
        values: list[Expression] = [
            columns[kept.index(place)]
            if place in kept
            else Literal(None, plan.schema.dtypes[group[place]])
            for place in range(len(group))
        ]
        for number in range(len(calls)):
            if number in bits:
                values.append(_grouping(bits[number], level))
            else:
                values.append(columns[len(kept) + computed.index(number)])
        branches.append(Project(own, tuple(values), names))
    return UnionAll(tuple(branches))


def _grouping(places: tuple[int, ...], level: tuple[int, ...]) -> Literal:
    value = 0
    for place in places:
        value = value * 2 + (place not in level)
    return Literal(value, DataType.INTEGER)
