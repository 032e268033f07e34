"""Keep only the columns somebody reads, so that sites ship and store no others.

Precondition: filters are pushed and keys extracted, so that what an operator reads is visible.

A projection to the needed columns is put on every input of a join, aggregate, union, TopN or time
window; unneeded expressions and aggregates are dropped. Of the right side of a semi or anti join
only keys and residual are needed. Nothing is pruned below Distinct and set operations (fewer
columns would merge rows that differ) or below Materialize (its readings would differ), no group
column is dropped (groups would merge), the columns of a recursion stay (its rows are a set), and no
projection is put between a join and a recursive reference. A leaf of a recursion may lose columns:
that only gives equal rows, and a set counts them once. At least one column stays everywhere,
because engines disagree about rows without columns.

TopN and the right side of an as-of join order equal rows as whole rows, column by column. So what
is dropped there stands behind every needed column: an order by more columns only refines the order
by the first ones, and the rows chosen agree in those. Columns that are equal among the rows to be
told apart (keys, partition) decide nothing and are kept wherever they stand.

Window functions that nobody reads are not computed. Where those that are look at the place of a
row among its peers, which whole rows decide, every column below stays.

Sound because a projection keeps duplicates and what is left out is read by nobody.

Example: `Aggregate [rid] COUNT(*)` over `Scan(mid, rid, weight, ts)` gets `Project rid` between.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    SessionWindow,
    SetOperation,
    StreamWindow,
    TopN,
    UnionAll,
    walk_plan,
    with_inputs,
)
from streamsql.data.types import DataType

_WIDTHS = {
    DataType.NULL: 0,
    DataType.BOOLEAN: 1,
    DataType.INTEGER: 2,
    DataType.DOUBLE: 3,
    DataType.TIMESTAMP: 3,
    DataType.INTERVAL: 3,
    DataType.TEXT: 4,
}


@dataclass(frozen=True, slots=True)
class _Pruned:
    """A narrower plan and where the old columns are in it."""

    plan: Plan
    position: dict[int, int]

    def rewrite(self, expression: Expression) -> Expression:
        """Return an expression over the old columns as one over the new."""
        return map_columns(expression, lambda c: Column(self.position[c.position], c.name, c.dtype))


def prune_columns(plan: Plan) -> Plan:
    """Return the plan with the same schema that carries only needed columns inside."""
    return _exactly(plan, range(len(plan.schema)), force=True).plan


def _exactly(plan: Plan, needed: Iterable[int], *, force: bool = False) -> _Pruned:
    """Return the plan with just the needed columns in their old order.

    Without `force`, a plan that reads a recursion keeps what it has.
    """
    columns = tuple(sorted(set(needed))) or _narrowest(plan)
    pruned = _prune(plan, frozenset(columns))
    wanted = tuple(pruned.position[c] for c in columns)
    if wanted == tuple(range(len(pruned.plan.schema))):
        return pruned
    if not force and _is_recursive(plan):
        return pruned
    fields = pruned.plan.schema.fields
    expressions = tuple(Column(p, fields[p].name, fields[p].dtype) for p in wanted)
    project = Project(pruned.plan, expressions, tuple(fields[p].name for p in wanted))
    return _Pruned(project, {column: i for i, column in enumerate(columns)})


def _narrowest(plan: Plan) -> tuple[int, ...]:
    fields = plan.schema.fields
    if not fields:
        return ()
    return (min(range(len(fields)), key=lambda i: (_WIDTHS[fields[i].dtype], i)),)


def _is_recursive(plan: Plan) -> bool:
    return any(isinstance(node, RecursiveReference) for node in walk_plan(plan))


def _prune(plan: Plan, needed: frozenset[int]) -> _Pruned:
    """Return a plan that has at least the needed columns."""
    match plan:
        case Filter(input=child, predicate=predicate):
            below = _prune(child, needed | columns_of(predicate))
            return _Pruned(Filter(below.plan, below.rewrite(predicate)), below.position)
        case Project():
            return _prune_project(plan, needed)
        case Join():
            return _prune_join(plan, needed)
        case Aggregate():
            return _prune_aggregate(plan, needed)
        case UnionAll(branches=branches):
            columns = tuple(sorted(needed))
            parts = tuple(_exactly(b, columns, force=True).plan for b in branches)
            return _Pruned(UnionAll(parts), {c: i for i, c in enumerate(columns)})
        case AsOfJoin():
            return _prune_as_of_join(plan, needed)
        case TopN():
            return _prune_top(plan, needed)
        case OverWindow():
            return _prune_over(plan, needed)
        case HopWindow() | SessionWindow():
            return _prune_time_window(plan, needed)
        case Distinct() | SetOperation() | OnClose() | StreamWindow() | Fixpoint() | Materialize():
            inputs = tuple(
                _exactly(child, range(len(child.schema)), force=True).plan for child in plan.inputs
            )
            return _unchanged(with_inputs(plan, inputs))
        case _:
            return _unchanged(plan)


def _unchanged(plan: Plan) -> _Pruned:
    return _Pruned(plan, {i: i for i in range(len(plan.schema))})


def _prune_project(project: Project, needed: frozenset[int]) -> _Pruned:
    kept = tuple(sorted(needed)) or _narrowest(project)
    expressions = tuple(project.expressions[k] for k in kept)
    read = frozenset[int]().union(*(columns_of(e) for e in expressions))
    below = _prune(project.input, read or frozenset(_narrowest(project.input)))
    narrowed = Project(
        below.plan,
        tuple(below.rewrite(e) for e in expressions),
        tuple(project.names[k] for k in kept),
    )
    return _Pruned(narrowed, {k: i for i, k in enumerate(kept)})


def _prune_join(join: Join, needed: frozenset[int]) -> _Pruned:
    width = len(join.left.schema)
    read = needed | (columns_of(join.residual) if join.residual is not None else frozenset())
    left = _exactly(join.left, {c for c in read if c < width} | {a for a, _ in join.keys})
    right = _exactly(
        join.right, {c - width for c in read if c >= width} | {b for _, b in join.keys}
    )
    position = _joined(left, right, width)
    both = _Pruned(join, position)
    narrowed = msgspec.structs.replace(
        join,
        left=left.plan,
        right=right.plan,
        keys=tuple((left.position[a], right.position[b]) for a, b in join.keys),
        residual=both.rewrite(join.residual) if join.residual is not None else None,
    )
    return _Pruned(narrowed, left.position if join.kind.is_filter else position)


def _joined(left: _Pruned, right: _Pruned, width: int) -> dict[int, int]:
    """Return where the columns of both sides are; the left side had `width` columns."""
    offset = len(left.plan.schema)
    position = dict(left.position)
    position.update({old + width: new + offset for old, new in right.position.items()})
    return position


def _prune_as_of_join(join: AsOfJoin, needed: frozenset[int]) -> _Pruned:
    width = len(join.left.schema)
    fixed = {join.right_time, *(b for _, b in join.keys)}
    left = _exactly(
        join.left, {c for c in needed if c < width} | {join.left_time, *(a for a, _ in join.keys)}
    )
    right = _exactly(join.right, _leading({c - width for c in needed if c >= width}, fixed))
    narrowed = msgspec.structs.replace(
        join,
        left=left.plan,
        right=right.plan,
        left_time=left.position[join.left_time],
        right_time=right.position[join.right_time],
        keys=tuple((left.position[a], right.position[b]) for a, b in join.keys),
    )
    return _Pruned(narrowed, _joined(left, right, width))


def _leading(needed: set[int], fixed: set[int]) -> set[int]:
    """Return the columns to keep where rows that agree in `fixed` are ordered as whole rows."""
    last = max(needed - fixed, default=-1)
    return set(range(last + 1)) | fixed


def _prune_top(top: TopN, needed: frozenset[int]) -> _Pruned:
    fixed = {*(key.position for key in top.order), *top.partition}
    below = _exactly(top.input, _leading(set(needed), fixed))
    narrowed = msgspec.structs.replace(
        top,
        input=below.plan,
        order=tuple(
            msgspec.structs.replace(key, position=below.position[key.position]) for key in top.order
        ),
        partition=tuple(below.position[p] for p in top.partition),
    )
    return _Pruned(narrowed, below.position)


def _prune_over(plan: OverWindow, needed: frozenset[int]) -> _Pruned:
    width = len(plan.input.schema)
    kept = [n for n in range(len(plan.calls)) if width + n in needed]
    if not kept:
        return _prune(plan.input, needed or frozenset(_narrowest(plan.input)))
    calls = [plan.calls[n] for n in kept]
    read = {*(key.position for key in plan.order), *plan.partition}
    read.update(c for c in needed if c < width)
    for call in calls:
        read = read.union(*map(columns_of, call.arguments))
    if any(call.sees_ties for call in calls):
        read = set(range(width))
    below = _exactly(plan.input, read)
    narrowed = OverWindow(
        below.plan,
        tuple(below.position[p] for p in plan.partition),
        tuple(
            msgspec.structs.replace(key, position=below.position[key.position])
            for key in plan.order
        ),
        tuple(
            msgspec.structs.replace(c, arguments=tuple(map(below.rewrite, c.arguments)))
            for c in calls
        ),
    )
    values = {width + old: len(below.plan.schema) + new for new, old in enumerate(kept)}
    return _Pruned(narrowed, {**below.position, **values})


def _prune_time_window(plan: HopWindow | SessionWindow, needed: frozenset[int]) -> _Pruned:
    width = len(plan.input.schema)
    partition = plan.partition if isinstance(plan, SessionWindow) else ()
    below = _exactly(plan.input, {c for c in needed if c < width} | {plan.time, *partition})
    time = below.position[plan.time]
    if isinstance(plan, SessionWindow):
        moved = tuple(below.position[p] for p in partition)
        narrowed: Plan = SessionWindow(below.plan, time, plan.gap, moved)
    else:
        narrowed = msgspec.structs.replace(plan, input=below.plan, time=time)
    bounds = {width + n: len(below.plan.schema) + n for n in range(len(plan.schema) - width)}
    return _Pruned(narrowed, {**below.position, **bounds})


def _prune_aggregate(aggregate: Aggregate, needed: frozenset[int]) -> _Pruned:
    groups = len(aggregate.group)
    kept = [i for i in range(len(aggregate.aggregates)) if groups + i in needed]
    if not groups and not kept:
        kept = [0] if aggregate.aggregates else []
    calls = tuple(aggregate.aggregates[i] for i in kept)
    read = set(aggregate.group)
    for call in calls:
        for argument in call.arguments:
            read |= columns_of(argument)
    below = _exactly(aggregate.input, read)
    narrowed = Aggregate(
        below.plan,
        tuple(below.position[g] for g in aggregate.group),
        tuple(
            msgspec.structs.replace(c, arguments=tuple(below.rewrite(a) for a in c.arguments))
            for c in calls
        ),
    )
    position = {i: i for i in range(groups)}
    position.update({groups + old: groups + new for new, old in enumerate(kept)})
    return _Pruned(narrowed, position)


PRUNE_COLUMNS = Rule("prune_columns", prune_columns)
