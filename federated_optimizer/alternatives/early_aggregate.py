"""Aggregates of one side of a join before the join: a row per key and group travels, not each row.

| aggregate of side L | part, by keys and groups of L | whole, over parts with the rows they meet |
|---|---|---|
| COUNT(*), COUNT(x) | n = COUNT | SUM(n) |
| SUM, AVG of INTEGER, MIN, MAX and others | as in two phases | as in two phases |

A part meets the rows of R that each of its rows would meet, so it counts once for each of them, as
its rows would. What the parts are is said in `partial_aggregate`.
"""

from collections.abc import Iterator

import msgspec

from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.partial_aggregate import Phases, phases_of
from streamsql.algebra.explain import describe
from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns, shifted
from streamsql.algebra.operators import Aggregate, AggregateCall, Join, JoinKind, Plan, Project


def early_aggregates(plan: Aggregate) -> Iterator[tuple[int, Plan] | Refused]:
    """Yield equal plans that aggregate a side of the join below first, or why there is none.

    Each comes with the side, 0 for the left one.
    """
    over = _over_join(plan)
    if over is None:
        yield _refused(plan, "one of its groups is computed, and not a column of the join")
        return
    join = over.input
    if not isinstance(join, Join) or not join.keys:
        return
    if join.kind != JoinKind.INNER or join.residual is not None:
        yield _refused(plan, "only of joins by equal columns alone a part meets what its rows meet")
        return
    phases = phases_of(over)
    if isinstance(phases, Refused):
        yield _refused(plan, phases.reason)
        return
    width = len(join.left.schema)
    read = {c for part in phases.parts for e in part.arguments for c in columns_of(e)}
    sides = [s for s in (0, 1) if all((c >= width) == bool(s) for c in read)]
    if not sides:
        yield _refused(plan, "it reads columns of both sides")
    for side in sides:
        yield side, _early(over, join, phases, side)


def _refused(plan: Aggregate, reason: str) -> Refused:
    return Refused(f"{describe(plan)} before the join: {reason}")


def _over_join(plan: Aggregate) -> Aggregate | None:
    """Return an aggregate right above its join; None where a computed column is a group."""
    if not isinstance(plan.input, Project):
        return plan
    expressions = plan.input.expressions
    groups = [expressions[g] for g in plan.group]
    if not all(isinstance(e, Column) for e in groups):
        return None

    def below(expression: Expression) -> Expression:
        return map_columns(expression, lambda c: expressions[c.position])

    calls = tuple(_with(call, tuple(map(below, call.arguments))) for call in plan.aggregates)
    group = tuple(e.position for e in groups if isinstance(e, Column))
    return Aggregate(plan.input.input, group, calls)


def _with(call: AggregateCall, arguments: tuple[Expression, ...]) -> AggregateCall:
    return msgspec.structs.replace(call, arguments=arguments)


def _early(over: Aggregate, join: Join, phases: Phases, side: int) -> Plan:
    inner, outer = (join.left, join.right) if side == 0 else (join.right, join.left)
    width = len(join.left.schema)
    first, end = (0, width) if side == 0 else (width, len(join.schema))
    keys = [(pair[side], pair[1 - side]) for pair in join.keys]
    mine = [g - first for g in over.group if first <= g < end]
    by = tuple(sorted({*mine, *(key for key, _ in keys)}))
    parts = tuple(
        _with(part, tuple(shifted(e, -first) for e in part.arguments)) for part in phases.parts
    )
    part = Aggregate(inner, by, parts)
    pairs = tuple((by.index(key), other) for key, other in keys)
    met = Join(part, outer, JoinKind.INNER, pairs)
    beyond = len(part.schema)
    outer_first = width if side == 0 else 0
    places = [
        by.index(g - first) if first <= g < end else beyond + g - outer_first for g in over.group
    ]
    places += range(len(by), beyond)
    fields = met.schema.fields
    names = [*over.schema.names[: len(over.group)], *(call.name for call in parts)]
    columns = tuple(Column(p, fields[p].name, fields[p].dtype) for p in places)
    return phases.whole(Project(met, columns, tuple(names)))
