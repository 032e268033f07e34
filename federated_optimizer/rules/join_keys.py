"""Turn equalities over a product into join keys, and other two-sided predicates into a residual.

Precondition: filters are merged and pushed, so what stands on an inner join reads both sides.

Sound because an inner join keeps exactly the pairs that agree on the keys and satisfy the residual;
a key that is NULL matches nothing, as `=` with NULL is not TRUE. In the other joins only equalities
of the ON part may become keys: they decide who matches, a filter above decides who stays.

Example: `Filter a.k = b.k` over `InnerJoin [theta]` becomes `InnerJoin [k = k]`.
"""

import msgspec

from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import Call, Column, Expression, conjunction, conjuncts
from streamsql.algebra.operators import Filter, Join, JoinKind, Plan, transform_up


def join_keys(plan: Plan) -> Plan:
    """Return the plan with equi-joins where there were products under equalities."""
    return transform_up(plan, _absorb)


def _absorb(plan: Plan) -> Plan:
    match plan:
        case Filter(input=Join(kind=JoinKind.INNER) as join, predicate=predicate):
            return _with_keys(join, conjuncts(join.residual) + conjuncts(predicate))
        case Join(residual=residual) if residual is not None:
            return _with_keys(plan, conjuncts(residual))
        case _:
            return plan


def _with_keys(join: Join, predicates: list[Expression]) -> Join:
    width = len(join.left.schema)
    keys = list(join.keys)
    rest: list[Expression] = []
    for predicate in dict.fromkeys(predicates):
        key = equality(predicate, width)
        if key is None:
            rest.append(predicate)
        elif key not in keys:
            keys.append(key)
    return msgspec.structs.replace(join, keys=tuple(keys), residual=conjunction(rest))


def equality(predicate: Expression, width: int) -> tuple[int, int] | None:
    """Return (left position, right position) when a predicate equates a column of each side."""
    match predicate:
        case Call(function="=", arguments=(Column() as first, Column() as second)):
            if not _comparable(first, second):
                return None
            low, high = sorted((first.position, second.position))
            return (low, high - width) if low < width <= high else None
        case _:
            return None


def _comparable(first: Column, second: Column) -> bool:
    same = first.dtype == second.dtype
    return same or (first.dtype.is_numeric and second.dtype.is_numeric)


JOIN_KEYS = Rule("join_keys", join_keys)
