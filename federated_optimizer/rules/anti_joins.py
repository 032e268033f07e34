"""Ask for rows without partner directly, where a left join is filtered for its padded rows.

Precondition: filters are pushed, so that those on padded columns stand on the join.

Sound where the filter says IS NULL of a right column that is not NULL in any row that matches: a
key of the join, or a column whose NULL keeps the join's condition from being TRUE. Then exactly the
padded rows pass, each left row without partner once, which is what an anti join gives. A column
that may be NULL in a row that matches decides nothing, and the left join stays.

An anti join keeps no pairs, reads only keys of the right side, and may run where a left join may
not (see `cutting.keyed_joins`).

Example: `Filter r.rid IS NULL` over `LeftJoin [rid = rid](s, r)` becomes `AntiJoin [rid = rid]`.
"""

import msgspec

from federated_optimizer.rules.join_shapes import padded
from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import Call, Column, Expression, conjuncts
from streamsql.algebra.null_rejection import rejected_columns
from streamsql.algebra.operators import (
    Filter,
    Join,
    JoinKind,
    Plan,
    is_open,
    transform_up,
    walk_plan,
)


def anti_joins(plan: Plan) -> Plan:
    """Return the plan with anti joins where left joins are asked for rows without partner."""
    if any(isinstance(node, Join) and node.kind == JoinKind.LEFT for node in walk_plan(plan)):
        return transform_up(plan, _without_partner)
    return plan


def _without_partner(plan: Plan) -> Plan:
    match plan:
        case Filter(input=Join(kind=JoinKind.LEFT) as join, predicate=predicate):
            parts = conjuncts(predicate)
            matching = _never_null(join)
            others = [part for part in parts if not _is_absent(part, matching)]
            if len(others) == len(parts) or is_open(join):
                return plan
            anti = msgspec.structs.replace(join, kind=JoinKind.ANTI)
            return filtered(padded(anti, join, 0), others)
        case _:
            return plan


def _never_null(join: Join) -> frozenset[int]:
    """Return the right columns that are not NULL in any pair that matches."""
    width = len(join.left.schema)
    matching = frozenset(width + b for _, b in join.keys)
    matching = matching.union(*map(rejected_columns, conjuncts(join.residual)))
    return frozenset(column for column in matching if column >= width)


def _is_absent(predicate: Expression, columns: frozenset[int]) -> bool:
    """Whether a predicate says that one of the columns is NULL."""
    match predicate:
        case Call(function="IS NULL", arguments=(Column(position=position),)):
            return position in columns
        case _:
            return False


ANTI_JOINS = Rule("anti_joins", anti_joins)
