"""Move filters towards the sources, so that rows are dropped where they are produced.

| below              | which conjuncts                           | why sound                      |
|--------------------|-------------------------------------------|--------------------------------|
| Project            | all, with the expressions put in          | same value, computed earlier   |
| inner Join         | those that read one side only             | a pair fails if its part fails |
| left Join, filter  | those that read the left side only        | unmatched left rows stay or go |
| left Join, ON part | those that read the right side only       | only decides who matches       |
| UnionAll           | all, into every branch                    | bag sum, row by row            |
| Distinct           | all                                       | equal rows agree               |
| Aggregate          | those that read group columns only        | whole groups stay or go        |

Never: into the nullable side of a left join, below a Window (a ROWS window would count other
rows; windows stand on scans anyway), below a Fixpoint (rows that fail may lead to rows that pass),
below an Aggregate without groups (it has a row even of nothing).

Example: `Filter ss.w < 5` over `InnerJoin(ss, sr)` becomes `InnerJoin(Filter ss.w < 5 (ss), sr)`.
"""

import msgspec

from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import (
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
    shifted,
)
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    UnionAll,
    with_inputs,
)


def push_filters(plan: Plan) -> Plan:
    """Return the plan with every filter as far down as it may go."""
    return _push(plan, [])


def _push(plan: Plan, predicates: list[Expression]) -> Plan:
    """Return the plan under the predicates, each of them as deep as possible."""
    match plan:
        case Filter(input=child, predicate=predicate):
            return _push(child, conjuncts(predicate) + predicates)
        case Project(input=child):
            inner = [substituted(p, plan.expressions) for p in predicates]
            return with_inputs(plan, (_push(child, inner),))
        case Join():
            return _push_join(plan, predicates)
        case UnionAll(branches=branches):
            return UnionAll(tuple(_push(branch, predicates) for branch in branches))
        case Distinct(input=child):
            return Distinct(_push(child, predicates))
        case Aggregate():
            return _push_aggregate(plan, predicates)
        case _:
            inputs = tuple(_push(child, []) for child in plan.inputs)
            below = plan if inputs == plan.inputs else with_inputs(plan, inputs)
            return filtered(below, predicates)


def substituted(expression: Expression, replacements: tuple[Expression, ...]) -> Expression:
    """Return the expression with column i replaced by the i-th expression."""
    return map_columns(expression, lambda column: replacements[column.position])


def _push_join(join: Join, predicates: list[Expression]) -> Plan:
    """Split predicates and the residual between the sides, the join and above it."""
    width = len(join.left.schema)
    inner = join.kind == JoinKind.INNER
    left: list[Expression] = []
    right: list[Expression] = []
    above: list[Expression] = []
    residual: list[Expression] = []
    for predicate in predicates:
        side = _side(predicate, width)
        if side == "left":
            left.append(predicate)
        elif side == "right" and inner:
            right.append(predicate)
        else:
            above.append(predicate)
    for predicate in conjuncts(join.residual):
        side = _side(predicate, width)
        if side == "left" and inner:
            left.append(predicate)
        elif side == "right":
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


def _push_aggregate(aggregate: Aggregate, predicates: list[Expression]) -> Plan:
    groups = len(aggregate.group)
    names = aggregate.input.schema.fields
    below: list[Expression] = []
    above: list[Expression] = []
    for predicate in predicates:
        columns = columns_of(predicate)
        (below if columns and max(columns) < groups else above).append(predicate)

    def source(column: Column) -> Expression:
        position = aggregate.group[column.position]
        return Column(position, names[position].name, column.dtype)

    child = _push(aggregate.input, [map_columns(p, source) for p in below])
    return filtered(with_inputs(aggregate, (child,)), above)


PUSH_FILTERS = Rule("push_filters", push_filters)
