"""Make outer joins inner, or full ones left, where their padded rows are dropped above.

Precondition: filters are pushed, so that those on padded columns stand on the join.

A row that a join has padded with NULLs is dropped by a predicate that is never TRUE for NULLs, and
by an inner join whose key is NULL. What is dropped above is looked for through all operators that
hand rows or whole groups of rows on (see `rules.push_filters`).

| join  | dropped above             | becomes                          |
|-------|---------------------------|----------------------------------|
| left  | NULLs of the right side   | inner                            |
| full  | NULLs of both sides       | inner                            |
| full  | NULLs of the left side    | left                             |
| full  | NULLs of the right side   | left, with exchanged sides       |
| as-of | NULLs of the right side   | inner, if it was left            |

Sound because such a join differs from the other one only by padded rows, and these are dropped. An
inner join can be filtered on both sides and regrouped, and runs at gateways where an outer one may
not.

Example: `Filter r.status = 'open'` over `LeftJoin(s, r)` becomes the same over `InnerJoin(s, r)`.
"""

import msgspec

from federated_optimizer.rules.join_shapes import exchanged, exchanged_position
from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import Column, Expression, columns_of, conjuncts
from streamsql.algebra.null_rejection import is_null, is_rejected, rejected_columns
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    OverWindow,
    Plan,
    Project,
    SessionWindow,
    SetOperation,
    TopN,
    UnionAll,
    walk_plan,
    with_inputs,
)

Columns = frozenset[int]

_NONE: Columns = frozenset()
_OUTER = (JoinKind.LEFT, JoinKind.FULL)


def outer_to_inner(plan: Plan) -> Plan:
    """Return the plan without outer joins whose padded rows are dropped."""
    if any(isinstance(n, Join | AsOfJoin) and n.kind in _OUTER for n in walk_plan(plan)):
        return _narrowed(plan, _NONE, [])
    return plan


def _narrowed(plan: Plan, present: Columns, above: list[Expression]) -> Plan:
    """Return a plan with fewer padded rows.

    Args:
        plan: To be rewritten.
        present: Columns of it; rows that are NULL in any of them are dropped above.
        above: Predicates right above it, whose columns are in `present` where one decides alone.
    """
    match plan:
        case Filter(input=child, predicate=predicate):
            parts = conjuncts(predicate)
            needed = present.union(*map(rejected_columns, parts))
            return _with(plan, _narrowed(child, needed, parts))
        case Project(input=child, expressions=expressions):
            return _with(plan, _narrowed(child, _read(expressions, present), []))
        case Join():
            return _narrowed_join(plan, present, above)
        case AsOfJoin():
            return _narrowed_as_of(plan, present)
        case UnionAll() | Distinct() | SetOperation():
            return _with(plan, *(_narrowed(child, present, []) for child in plan.inputs))
        case HopWindow(input=child):
            passed = frozenset(c for c in present if c < len(child.schema))
            return _with(plan, _narrowed(child, passed, []))
        case (
            TopN(input=child, partition=partition)
            | OverWindow(input=child, partition=partition)
            | SessionWindow(input=child, partition=partition)
        ):
            return _with(plan, _narrowed(child, present & set(partition), []))
        case Aggregate(input=child, group=group):
            passed = frozenset(group[c] for c in present if c < len(group))
            return _with(plan, _narrowed(child, passed, []))
        case _:
            return _with(plan, *(_narrowed(child, _NONE, []) for child in plan.inputs))


def _with(plan: Plan, *inputs: Plan) -> Plan:
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)


def _read(expressions: tuple[Expression, ...], present: Columns) -> Columns:
    """Return the columns that make one of the expressions to be present NULL."""
    found = (expressions[position] for position in present)
    return frozenset(c for e in found for c in columns_of(e) if is_null(e, {c}))


def _narrowed_join(join: Join, present: Columns, above: list[Expression]) -> Plan:
    width = len(join.left.schema)
    kind = join.kind
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        left = _dropped(range(width), present, above)
        right = _dropped(range(width, len(join.schema)), present, above)
        if kind == JoinKind.FULL and right and not left:
            return _narrowed(_exchanged(join), present, [])
        if right and (left or kind == JoinKind.LEFT):
            kind = JoinKind.INNER
        elif left and kind == JoinKind.FULL:
            kind = JoinKind.LEFT
    matching = frozenset().union(*map(rejected_columns, conjuncts(join.residual)))
    left_keys = {a for a, _ in join.keys} | {c for c in matching if c < width}
    right_keys = {b for _, b in join.keys} | {c - width for c in matching if c >= width}
    mine, other = _split(present, width)
    match kind:
        case JoinKind.INNER:
            needed = (mine | left_keys, other | right_keys)
        case JoinKind.SEMI:
            needed = (mine | left_keys, frozenset(right_keys))
        case JoinKind.LEFT | JoinKind.ANTI:
            needed = (mine, frozenset(right_keys))
        case _:
            needed = (_NONE, _NONE)
    inputs = (_narrowed(join.left, needed[0], []), _narrowed(join.right, needed[1], []))
    if kind == join.kind and inputs == join.inputs:
        return join
    return msgspec.structs.replace(join, left=inputs[0], right=inputs[1], kind=kind)


def _dropped(side: range, present: Columns, above: list[Expression]) -> bool:
    """Whether rows are dropped that are NULL in all columns of a side."""
    columns = frozenset(side)
    return bool(present & columns) or any(is_rejected(part, columns) for part in above)


def _split(present: Columns, width: int) -> tuple[Columns, Columns]:
    """Return the columns of the left side and those of the right, as positions in it."""
    left = frozenset(c for c in present if c < width)
    return left, frozenset(c - width for c in present - left)


def _exchanged(join: Join) -> Plan:
    """Return a full join whose right NULLs are dropped: a left one of exchanged sides."""
    fields = join.schema.fields
    places = [exchanged_position(join, position) for position in range(len(fields))]
    columns = tuple(Column(p, f.name, f.dtype) for p, f in zip(places, fields, strict=True))
    return Project(exchanged(join, JoinKind.LEFT), columns, join.schema.names)


def _narrowed_as_of(join: AsOfJoin, present: Columns) -> Plan:
    left, right = _split(present, len(join.left.schema))
    kind = JoinKind.INNER if right else join.kind
    if kind == JoinKind.INNER:
        left |= {join.left_time, *(a for a, _ in join.keys)}
    # Right rows without key or time match nothing.
    needed = frozenset((join.right_time, *(b for _, b in join.keys)))
    inputs = (_narrowed(join.left, left, []), _narrowed(join.right, needed, []))
    if kind == join.kind and inputs == join.inputs:
        return join
    return msgspec.structs.replace(join, left=inputs[0], right=inputs[1], kind=kind)


OUTER_TO_INNER = Rule("outer_to_inner", outer_to_inner)
