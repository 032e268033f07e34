"""Leave out sides of joins of which no column is read, or ask them only for partners.

| join  | read   | if                                                | becomes              |
|-------|--------|---------------------------------------------------|----------------------|
| left  | left   | the join's keys contain a key of the right side   | the left side        |
| left  | left   | copies do not count above                         | the left side        |
| inner | one    | copies do not count above, and it is no part of a | semi join, that side |
|       |        | larger block of inner joins                       | first                |

Copies do not count below DISTINCT and set operations, on the right side of semi and anti joins, and
below groups whose aggregates are MIN, MAX or of DISTINCT values. In a block of inner joins the
order is chosen later (`search.joins.joins_by_place`), and a semi join would stand in its way.

Sound because a left join keeps each left row once for each match, and once without any: with a key
on the right side at most once. Columns that nobody reads are NULL afterwards, so that the schema
stays; `prune_columns` takes them away. Joins that read a recursion stay as they are.

Inner joins with a key stay: whether a row has a partner still counts, and no foreign key says so.

Example: `Project s.mid` over `LeftJoin [mid = mid](s, Machines)` becomes `Project s.mid` over s.
"""

from collections.abc import Iterable

import msgspec

from federated_optimizer.rules.join_shapes import exchanged, padded
from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import (
    Expression,
    columns_of,
)
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    SetOperation,
    UnionAll,
    is_open,
    walk_plan,
    with_inputs,
)
from streamsql.algebra.row_keys import is_matched_once

Columns = frozenset[int]

_EXTREMES = (AggregateFunction.MIN, AggregateFunction.MAX)


def unread_sides(plan: Plan) -> Plan:
    """Return the plan without sides of joins that nobody reads."""
    if any(isinstance(node, Join) for node in walk_plan(plan)):
        return _read(plan, _all(plan), copies=True)
    return plan


def _all(plan: Plan) -> Columns:
    return frozenset(range(len(plan.schema)))


def _read(plan: Plan, needed: Columns, *, copies: bool, in_block: bool = False) -> Plan:
    """Return a plan that agrees with this one in the needed columns.

    Args:
        plan: To be rewritten.
        needed: Its columns that are read.
        copies: Whether it matters how often a row is there.
        in_block: Whether it stands right below an inner join.
    """
    match plan:
        case Filter(input=child, predicate=predicate):
            below = needed | columns_of(predicate)
            return _with(plan, _read(child, below, copies=copies, in_block=in_block))
        case Project(input=child, expressions=expressions):
            below = _columns(expressions[position] for position in needed)
            return _with(plan, _read(child, below, copies=copies, in_block=in_block))
        case Join():
            return _read_join(plan, needed, copies=copies, in_block=in_block)
        case UnionAll(branches=branches):
            return _with(plan, *(_read(b, needed, copies=copies) for b in branches))
        case Distinct(input=child):
            return _with(plan, _read(child, _all(child), copies=False))
        case SetOperation(all=with_copies):
            sides = (_read(side, _all(side), copies=with_copies) for side in plan.inputs)
            return _with(plan, *sides)
        case Aggregate(input=child, group=group, aggregates=calls):
            below = _columns(argument for call in calls for argument in call.arguments)
            counted = not all(map(ignores_copies, calls))
            return _with(plan, _read(child, below | set(group), copies=counted))
        case _:
            return _with(plan, *(_read(child, _all(child), copies=True) for child in plan.inputs))


def _with(plan: Plan, *inputs: Plan) -> Plan:
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)


def _columns(expressions: Iterable[Expression]) -> Columns:
    return frozenset[int]().union(*map(columns_of, expressions))


def ignores_copies(call: AggregateCall) -> bool:
    """Return whether an aggregate is the same however often a row is there."""
    return call.distinct or call.function in _EXTREMES


def _read_join(join: Join, needed: Columns, *, copies: bool, in_block: bool) -> Plan:
    width = len(join.left.schema)
    reads_left = any(c < width for c in needed)
    reads_right = any(c >= width for c in needed)
    if not (reads_left and reads_right) and not is_open(join):
        if join.kind == JoinKind.LEFT and not reads_right:
            if not copies or is_matched_once(join):
                left = _read(join.left, needed, copies=copies, in_block=in_block)
                return padded(left, join, 0)
        elif join.kind == JoinKind.INNER and not (copies or in_block or _has_blocks(join)):
            if not reads_right:
                semi = msgspec.structs.replace(join, kind=JoinKind.SEMI)
                return padded(_read_sides(semi, needed, copies=False), join, 0)
            semi = exchanged(join, JoinKind.SEMI)
            moved = frozenset(c - width for c in needed)
            return padded(_read_sides(semi, moved, copies=False), join, width)
    return _read_sides(join, needed, copies=copies)


def _read_sides(join: Join, needed: Columns, *, copies: bool) -> Plan:
    """Return a join that stays, with sides of which only some columns are read."""
    width = len(join.left.schema)
    read = needed | (columns_of(join.residual) if join.residual is not None else frozenset())
    left = frozenset(c for c in read if c < width) | {a for a, _ in join.keys}
    right = frozenset(c - width for c in read if c >= width) | {b for _, b in join.keys}
    inner = join.kind == JoinKind.INNER
    counted = copies and not join.kind.is_filter
    return _with(
        join,
        _read(join.left, left, copies=copies, in_block=inner),
        _read(join.right, right, copies=counted, in_block=inner),
    )


def _has_blocks(join: Join) -> bool:
    """Whether a side is a block of inner joins itself."""
    return any(_is_inner(side) for side in join.inputs)


def _is_inner(plan: Plan) -> bool:
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, Join) and plan.kind == JoinKind.INNER


UNREAD_SIDES = Rule("unread_sides", unread_sides)
