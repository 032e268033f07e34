"""Take away what has no rows, and what joins, unions and sets do with it.

Precondition: conditions that are never TRUE have become empty `Values` (`fold_constants`,
`transitive_predicates`).

| operator                      | of nothing                   | becomes           |
|-------------------------------|------------------------------|-------------------|
| Filter, Project, groups, …    | its input                    | nothing           |
| inner, semi, inner as-of join | either side                  | nothing           |
| left join, left as-of join    | right side                   | padded left side  |
| full join                     | one side                     | the other, padded |
| anti join                     | right side                   | left side         |
| left, anti join               | left side                    | nothing           |
| UnionAll                      | some branches                | the other ones    |
| INTERSECT, EXCEPT             | either side; the left one    | nothing           |
| EXCEPT                        | right side                   | left side         |

Never: groups without columns (they have a row even of nothing), and what reads a recursion that is
not complete (its branches must keep reading it).

Example: `InnerJoin(Values 0 rows, Scan s)` becomes `Values 0 rows`: nothing of s is shipped.
"""

from federated_optimizer.rules.join_shapes import padded
from federated_optimizer.rules.rule import Rule
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    SessionWindow,
    SetKind,
    SetOperation,
    TopN,
    UnionAll,
    Values,
    identity_columns,
    is_open,
    walk_plan,
    with_inputs,
)


def empty_relations(plan: Plan) -> Plan:
    """Return the plan without parts that have no rows."""
    if any(_is_empty(node) for node in walk_plan(plan)):
        return _without(plan)
    return plan


def _without(plan: Plan) -> Plan:
    if isinstance(plan, OnClose):  # it stands on an aggregate, whatever that is over
        return plan
    inputs = tuple(map(_without, plan.inputs))
    rebuilt = plan if inputs == plan.inputs else with_inputs(plan, inputs)
    if not any(map(_is_empty, inputs)) or is_open(rebuilt):
        return rebuilt
    return _over_nothing(rebuilt)


def _is_empty(plan: Plan) -> bool:
    return isinstance(plan, Values) and not plan.rows


def _over_nothing(plan: Plan) -> Plan:
    """Return an operator at least one of whose inputs has no rows."""
    nothing = Values((), plan.schema)
    match plan:
        case Aggregate(group=()):
            return plan
        case (
            Filter()
            | Project()
            | Aggregate()
            | Distinct()
            | TopN()
            | OverWindow()
            | HopWindow()
            | SessionWindow()
            | Materialize()
        ):
            return nothing
        case Join(kind=JoinKind.INNER | JoinKind.SEMI) | AsOfJoin(kind=JoinKind.INNER):
            return nothing
        case Join(kind=JoinKind.ANTI, left=left):
            return nothing if _is_empty(left) else left
        case Join(kind=JoinKind.LEFT, left=left) | AsOfJoin(left=left):
            return nothing if _is_empty(left) else padded(left, plan, 0)
        case Join(kind=JoinKind.FULL, left=left, right=right):
            if _is_empty(left):
                return nothing if _is_empty(right) else padded(right, plan, len(left.schema))
            return padded(left, plan, 0)
        case UnionAll(branches=branches):
            return _union(plan, [branch for branch in branches if not _is_empty(branch)])
        case SetOperation(left=left, kind=kind):
            if kind == SetKind.INTERSECT or _is_empty(left):
                return nothing
            return left if plan.all else Distinct(left)
        case _:
            return plan


def _union(plan: UnionAll, branches: list[Plan]) -> Plan:
    """Return the union of what is left, under the names of the first branch."""
    if not branches:
        return Values((), plan.schema)
    first = branches[0]
    if first.schema != plan.schema:
        first = Project(first, identity_columns(first.schema), plan.schema.names)
    return first if len(branches) == 1 else UnionAll((first, *branches[1:]))


EMPTY_RELATIONS = Rule("empty_relations", empty_relations)
