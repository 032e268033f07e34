"""Read a keyed source once where it is joined with itself along its key.

Precondition: filters are pushed and keys extracted.

An inner or semi join of a source with itself, each side perhaps filtered and projected, whose keys
contain the pairs (k, k) for every column k of the source's key, pairs each row with itself only. It
becomes the source under both filters, the join's other conditions, and a filter that the key is not
NULL (NULL matches nothing).

Sound because no two rows share a key (`canonical.row_keys`). A left join would keep rows that fail
the right filter, so it stays; windows stay, because they hold several rows of a key.

Example: `InnerJoin [mid = mid](Filter a > 3 (s), Filter b < 5 (s))` becomes one filter over s.
"""

from dataclasses import dataclass, replace

from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    conjuncts,
    substituted,
)
from streamsql.algebra.operators import (
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    identity_columns,
    transform_up,
    walk_plan,
)
from streamsql.algebra.row_keys import unique_keys
from streamsql.data.types import DataType

_KINDS = (JoinKind.INNER, JoinKind.SEMI)


def self_joins(plan: Plan) -> Plan:
    """Return the plan without joins of a source with itself along its key."""
    if any(isinstance(node, Join) and node.kind in _KINDS for node in walk_plan(plan)):
        return transform_up(plan, _once)
    return plan


def _once(plan: Plan) -> Plan:
    if not (isinstance(plan, Join) and plan.kind in _KINDS):
        return plan
    left, right = _reading(plan.left), _reading(plan.right)
    if left is None or right is None or left.source != right.source:
        return plan
    source, both = left.source, (*left.columns, *right.columns)
    pairs = [(left.columns[a], right.columns[b]) for a, b in plan.keys]
    keys = unique_keys(source)
    same = {a.position for a, b in pairs if isinstance(a, Column) and a == b}
    if not any(key <= same for key in keys):
        return plan
    residual = [substituted(part, both) for part in conjuncts(plan.residual)]
    predicates: list[Expression] = [*left.predicates, *right.predicates]
    for a, b in pairs:
        function, arguments = ("IS NOT NULL", (a,)) if a == b else ("=", (a, b))
        predicates.append(Call(function, arguments, DataType.BOOLEAN))
    if None in residual:
        return plan
    predicates.extend(part for part in residual if part is not None)
    shown = left.columns if plan.kind == JoinKind.SEMI else both
    return Project(filtered(source, predicates), shown, plan.schema.names)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A source under filters and projections.

    Attributes:
        predicates: Over the source.
        columns: What is shown of it.
    """

    source: Scan
    predicates: tuple[Expression, ...]
    columns: tuple[Expression, ...]


def _reading(plan: Plan) -> _Reading | None:
    """Return a side as a reading of one source; None for others."""
    match plan:
        case Scan():
            return _Reading(plan, (), identity_columns(plan.schema))
        case Filter(input=child, predicate=predicate):
            below, over = _reading(child), conjuncts(predicate)
        case Project(input=child, expressions=expressions):
            below, over = _reading(child), list(expressions)
        case _:
            return None
    put = [substituted(e, below.columns) for e in over] if below is not None else []
    found = tuple(e for e in put if e is not None)
    if below is None or len(found) < len(put):
        return None
    if isinstance(plan, Filter):
        return replace(below, predicates=(*below.predicates, *found))
    return replace(below, columns=found)


SELF_JOINS = Rule("self_joins", self_joins)
