"""Move filters towards the sources, so that rows are dropped where they are produced.

| below              | which conjuncts                           | why sound                      |
|--------------------|-------------------------------------------|--------------------------------|
| Project            | all, with the expressions put in          | same value, computed earlier   |
| inner Join         | those that read one side only             | a pair fails if its part fails |
| left Join, filter  | those that read the left side only        | unmatched left rows stay or go |
| left Join, ON part | those that read the right side only       | only decides who matches       |
| semi, anti Join    | all (they read left columns)              | left rows stay or go           |
| semi Join, ON part | those that read one side only             | a pair fails if its part fails |
| anti Join, ON part | those that read the right side only       | only decides who matches       |
| as-of Join         | those that read the left side only        | each left row by itself        |
| UnionAll           | all, into every branch                    | bag sum, row by row            |
| SetOperation       | all, into both sides                      | equal rows agree               |
| Distinct           | all                                       | equal rows agree               |
| HopWindow          | those that read no window bound           | row by row                     |
| Aggregate          | those that read group columns only        | whole groups stay or go        |
| SessionWindow      | those that read partition columns only    | whole partitions stay or go    |
| Fixpoint, its base | on stable columns, if all readings agree  | a derivation keeps their value |
| TopN, OverWindow   | those that read partition columns only    | whole partitions stay or go    |

Never: into the nullable side of a left join or any side of a full one (rows without partner are
padded, not dropped), from the ON part of an anti join to its left side (the row would go, not
stay), to the right side of an as-of join (an older row would be found instead), below a Window (a
ROWS window would count other rows; windows stand on scans anyway), into a step branch of a
Fixpoint, or by other columns into its base (rows that fail may lead to rows that pass), below an
Aggregate without groups (it has a row even of nothing), below Materialize (its other readings need
the rows).

Example: `Filter ss.w < 5` over `InnerJoin(ss, sr)` becomes `InnerJoin(Filter ss.w < 5 (ss), sr)`.
"""

from collections.abc import Iterable, Mapping, Set

import msgspec

from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.rules.rule import Rule
from federated_optimizer.rules.stable_columns import stable_columns
from streamsql.algebra.expressions import (
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
    shifted,
    substituted,
)
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
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
    with_inputs,
)


def push_filters(plan: Plan) -> Plan:
    """Return the plan with every filter as far down as it may go."""
    pushed = _push(plan, [])
    restricted = _restricted(pushed, _readings(pushed))
    # What a base branch reads may be a recursion, too.
    return pushed if restricted == pushed else push_filters(restricted)


def _push(plan: Plan, predicates: list[Expression]) -> Plan:
    """Return the plan under the predicates, each of them as deep as possible."""
    match plan:
        case Filter(input=child, predicate=predicate):
            return _push(child, conjuncts(predicate) + predicates)
        case Project(input=child):
            inner = [(p, substituted(p, plan.expressions)) for p in predicates]
            below = with_inputs(plan, (_push(child, [new for _, new in inner if new is not None]),))
            return filtered(below, [old for old, new in inner if new is None])
        case Join():
            return _push_join(plan, predicates)
        case UnionAll() | Distinct() | SetOperation():
            return with_inputs(plan, tuple(_push(child, predicates) for child in plan.inputs))
        case AsOfJoin(left=left, right=right):
            kept, above = _parted(predicates, frozenset(range(len(left.schema))))
            return filtered(with_inputs(plan, (_push(left, kept), _push(right, []))), above)
        case HopWindow(input=child):
            return _push_unary(plan, predicates, range(len(child.schema)))
        case (
            TopN(partition=partition)
            | OverWindow(partition=partition)
            | SessionWindow(partition=partition)
        ):
            return _push_unary(plan, predicates, partition)
        case Aggregate():
            return _push_aggregate(plan, predicates)
        case _:
            inputs = tuple(_push(child, []) for child in plan.inputs)
            changed = plan if inputs == plan.inputs else with_inputs(plan, inputs)
            return filtered(changed, predicates)


def _push_join(join: Join, predicates: list[Expression]) -> Plan:
    """Split predicates and the residual between the sides, the join and above it."""
    width = len(join.left.schema)
    inner = join.kind == JoinKind.INNER
    outer = join.kind == JoinKind.FULL
    left: list[Expression] = []
    right: list[Expression] = []
    above: list[Expression] = []
    residual: list[Expression] = []
    for predicate in predicates:
        side = _side(predicate, width)
        if side == "left" and not outer:
            left.append(predicate)
        elif side == "right" and inner:
            right.append(predicate)
        else:
            above.append(predicate)
    for predicate in conjuncts(join.residual):
        side = _side(predicate, width)
        if side == "left" and (inner or join.kind == JoinKind.SEMI):
            left.append(predicate)
        elif side == "right" and not outer:
            right.append(predicate)
        else:
            residual.append(predicate)
    pushed = msgspec.structs.replace(
        join,
        left=_push(join.left, left),
        right=_push(join.right, [shifted(p, -width) for p in right]),
        residual=conjunction(residual),
    )
    return filtered(pushed, above)


def _side(predicate: Expression, width: int) -> str:
    """Return which side a predicate reads; one without columns stays where it is."""
    columns = columns_of(predicate)
    if not columns:
        return "none"
    if max(columns) < width:
        return "left"
    return "right" if min(columns) >= width else "both"


def _push_unary(
    plan: HopWindow | SessionWindow | TopN | OverWindow,
    predicates: list[Expression],
    columns: Iterable[int],
) -> Plan:
    """Push the predicates that read some of the columns and no others."""
    below, above = _parted(predicates, frozenset(columns))
    return filtered(with_inputs(plan, (_push(plan.input, below),)), above)


def _parted(
    predicates: list[Expression], columns: frozenset[int]
) -> tuple[list[Expression], list[Expression]]:
    """Return the predicates that read some of the columns and no others, and the rest."""
    below: list[Expression] = []
    above: list[Expression] = []
    for predicate in predicates:
        read = columns_of(predicate)
        (below if read and read <= columns else above).append(predicate)
    return (below, above)


Readings = Mapping[Fixpoint, Set[frozenset[Expression]]]
"""By recursion: the conditions on stable columns of each of its readings."""


def _readings(plan: Plan) -> Readings:
    found: dict[Fixpoint, set[frozenset[Expression]]] = {}
    todo = [plan]
    while todo:
        node = todo.pop()
        if isinstance(node, Filter) and isinstance(node.input, Fixpoint):
            below, _ = _parted(conjuncts(node.predicate), stable_columns(node.input))
            node = node.input
            found.setdefault(node, set()).add(frozenset(below))
        elif isinstance(node, Fixpoint):
            found.setdefault(node, set()).add(frozenset())
        todo.extend(node.inputs)
    return found


def _restricted(plan: Plan, readings: Readings) -> Plan:
    """Return a plan with filters in the base branches of recursions below them.

    Only if all readings of a recursion have the same ones: else it would become several, each of
    which would have to be maintained.
    """
    if isinstance(plan, Filter) and isinstance(plan.input, Fixpoint):
        bounded = bounded_base(plan.input, plan.predicate)
        if bounded is not None and len(readings[plan.input]) == 1:
            return bounded
    inputs = tuple(_restricted(child, readings) for child in plan.inputs)
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)


def bounded_base(fixpoint: Fixpoint, predicate: Expression) -> Plan | None:
    """Return a filtered recursion with the conditions on stable columns in its base branches.

    None if there are none.
    """
    below, above = _parted(conjuncts(predicate), stable_columns(fixpoint))
    if not below:
        return None
    base = tuple(_push(branch, below) for branch in fixpoint.base)
    return filtered(msgspec.structs.replace(fixpoint, base=base), above)


def _push_aggregate(aggregate: Aggregate, predicates: list[Expression]) -> Plan:
    groups = len(aggregate.group)
    names = aggregate.input.schema.fields
    below, above = _parted(predicates, frozenset(range(groups)))

    def source(column: Column) -> Expression:
        position = aggregate.group[column.position]
        return Column(position, names[position].name, column.dtype)

    child = _push(aggregate.input, [map_columns(p, source) for p in below])
    return filtered(with_inputs(aggregate, (child,)), above)


PUSH_FILTERS = Rule("push_filters", push_filters)
