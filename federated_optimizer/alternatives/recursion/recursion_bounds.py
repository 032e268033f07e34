"""Recursions that derive only what is asked for: bounds in their base branches.

| above the recursion                         | in its base branches                        |
|---------------------------------------------|---------------------------------------------|
| a filter on columns that become stable      | the filter                                  |
| a join that keeps only rows with a partner  | a semi join with the other side (magic set) |

A derivation keeps stable columns (`rules.stable_columns`), so that a row has a partner if, and only
if, the base row has one at the start of its derivation. Rows without a partner are not asked for by
an inner or semi join, and by the nullable side of a left or anti join. A column that a derivation
does not keep may be kept by the same relation grown at its other end (`turned_recursions`).

The semi join is a part of the plan as others are: when an asked key comes or goes, base rows come
or go, and what is derived from them. Filters on columns that are stable as the query is written
stand in the base branches anyway (`rules.push_filters`).

Only of a recursion that the query reads once: else there would be several to maintain. And no
recursion bounds another one: it would be computed twice.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.recursion.turned_recursions import Turned, turned
from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.rules.push_filters import bounded_base
from federated_optimizer.rules.stable_columns import stable_columns
from streamsql.algebra.choices import OnMoreRounds
from streamsql.algebra.explain import describe
from streamsql.algebra.expressions import Column, columns_of, conjunction, conjuncts
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    walk_plan,
    with_inputs,
)

_ASKED_SIDES = {
    JoinKind.INNER: (0, 1),
    JoinKind.SEMI: (0, 1),
    JoinKind.LEFT: (1,),
    JoinKind.ANTI: (1,),
}
"""Sides of a join whose rows without a partner are not asked for."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """An equal plan whose recursion is bounded.

    Attributes:
        plan: With the same schema and rows.
        words: For the list of plans.
        whole: The recursion.
        recursion: What it becomes.
    """

    plan: Plan
    words: str
    whole: Fixpoint
    recursion: Fixpoint


def bounded_recursions(plan: Plan, own: Counter[Plan]) -> Iterator[Bounded | Refused]:
    """Yield equal plans of an operator with a bounded recursion below it, or why there are none.

    Args:
        plan: An operator of a query.
        own: How often the query has each of its operators.
    """
    match plan:
        case Filter(input=Fixpoint() as node):
            asked = frozenset[int]().union(*map(columns_of, conjuncts(plan.predicate)))
            yield from _by_filter(plan, node, asked, own)
        case Join():
            for side in _ASKED_SIDES.get(plan.kind, ()):
                yield from _by_join(plan, side, own)
        case _:
            pass


def is_bounded(plan: Plan) -> bool:
    """Return whether a side of a join bounds a recursion in the other side by a semi-join."""
    if not isinstance(plan, Join):
        return False
    return any(
        isinstance(branch, Join) and branch.kind == JoinKind.SEMI and branch.right == other
        for side, other in (plan.inputs, plan.inputs[::-1])
        for node in walk_plan(side)
        if isinstance(node, Fixpoint)
        for branch in node.base
    )


def _by_filter(
    plan: Filter, node: Fixpoint, asked: frozenset[int], own: Counter[Plan]
) -> Iterator[Bounded | Refused]:
    found = _keeping(plan, node, asked - stable_columns(node), own)
    if isinstance(found, Refused):
        yield found
    elif found is not None:
        predicate = conjunction([*conjuncts(plan.predicate), *conjuncts(found.condition)])
        made = bounded_base(found.recursion, predicate or plan.predicate)
        if made is not None:
            named = asked & stable_columns(found.recursion)
            begun = made.input if isinstance(made, Filter) else made
            if isinstance(begun, Fixpoint):
                yield Bounded(made, _words(node, named), node, begun)


def _by_join(join: Join, side: int, own: Counter[Plan]) -> Iterator[Bounded | Refused]:
    target, other = join.inputs[side], join.inputs[1 - side]
    pairs: dict[Fixpoint, dict[int, int]] = {}
    for pair in join.keys:
        origin = _origin(target, pair[side])
        if origin is not None:
            pairs.setdefault(origin[0], {})[origin[1]] = pair[1 - side]
    asks = any(isinstance(each, Fixpoint) for each in walk_plan(other))
    for node, keys in pairs.items():
        if asks:
            yield Refused(f"{_words(node, keys)}: a recursion asks")
            continue
        stable = stable_columns(node) & keys.keys()
        found = _keeping(join, node, frozenset(keys), own, stable)
        if isinstance(found, Refused):
            yield found
        elif found is not None:
            kept = sorted(stable_columns(found.recursion) & keys.keys())
            semi = tuple((column, keys[column]) for column in kept)
            begins = (Join(each, other, JoinKind.SEMI, semi) for each in found.recursion.base)
            begun = msgspec.structs.replace(found.recursion, base=tuple(begins))
            bounded = filtered(begun, conjuncts(found.condition))
            inputs = (_replaced(target, node, bounded), other)
            made = with_inputs(join, inputs if side == 0 else inputs[::-1])
            yield Bounded(made, f"{_words(node, kept)} ({describe(join)})", node, begun)


def _keeping(
    plan: Plan,
    node: Fixpoint,
    asked: frozenset[int],
    own: Counter[Plan],
    stable: frozenset[int] = frozenset(),
) -> Turned | Refused | None:
    """Return the relation so that derivations keep some asked columns; None: none is asked for."""
    if not asked:
        return None
    words = _words(node, asked)
    if own[node] > own[plan] or sum(each == node for each in walk_plan(plan)) > 1:
        return Refused(f"{words}: the query reads it more than once")
    if node.rounds is not None and node.rounds.on_more == OnMoreRounds.ERROR:
        return Refused(f"{words}: the query stops for all rows that need more rounds")
    if stable:
        return Turned(node)
    other = turned(node)
    if isinstance(other, Refused):
        return Refused(f"{words}: a derivation does not keep it; {other.reason}")
    return other if asked & stable_columns(other.recursion) else None


def _words(node: Fixpoint, columns: Iterable[int]) -> str:
    names = " and ".join(node.schema.names[column] for column in sorted(columns))
    return f"recursion {node.name} only from the {names} asked for"


def _origin(plan: Plan, column: int) -> tuple[Fixpoint, int] | None:
    """Return the recursion of which a column is one, if all rows with a value come of its rows.

    So no operator on the way has other rows when rows with other values in this column are left
    out below it.
    """
    match plan:
        case Fixpoint():
            return plan, column
        case Project(input=child, expressions=expressions):
            expression = expressions[column]
            return _origin(child, expression.position) if isinstance(expression, Column) else None
        case Filter(input=child) | Distinct(input=child):
            return _origin(child, column)
        case Aggregate(input=child, group=group):
            return _origin(child, group[column]) if column < len(group) else None
        case Join(left=left, right=right, kind=kind):
            width = len(left.schema)
            if column < width:
                return None if kind == JoinKind.FULL else _origin(left, column)
            return _origin(right, column - width) if kind == JoinKind.INNER else None
        case _:
            return None


def _replaced(plan: Plan, old: Fixpoint, new: Plan) -> Plan:
    if plan == old:
        return new
    if isinstance(plan, Fixpoint):
        return plan
    inputs = tuple(_replaced(child, old, new) for child in plan.inputs)
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)
