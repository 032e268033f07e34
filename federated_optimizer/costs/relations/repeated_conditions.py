"""Conditions that one side of a join repeats of the other one: they drop rows, but no pairs.

Of `Filter a > 5 (r)` joined along a = x with `Filter x > 5 (s)`, each filter follows from the other
one. Rows that the second one drops would find no partner. An estimate that multiplies the shares
of both has too few pairs, so a join is estimated over sides that have such a condition once.
"""

import msgspec

from federated_optimizer.canonical.constant_folding import fold
from federated_optimizer.canonical.implications import Implications, named
from federated_optimizer.canonical.row_facts import (
    Facts,
    facts_above,
    facts_of_pairs,
    ways_down,
)
from streamsql.algebra.expressions import (
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    shifted,
)
from streamsql.algebra.operators import Filter, Join, JoinKind, Plan, UnionAll, with_inputs


class RepeatedConditions:
    """Joins without them; the facts of each plan are collected once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Plan, Facts]] = {}  # by id: the plan keeps it from reuse

    def without(self, plan: Join) -> Join:
        """Return a join whose sides have each condition once.

        Conditions of a left side go only where it may be filtered as well: its rows without
        partner count, unless the join is an inner or a semi join.
        """
        if plan.kind in (JoinKind.FULL, JoinKind.ANTI):
            return plan
        width = len(plan.left.schema)
        pairs = facts_of_pairs(plan, ((), ()))
        lefts, rights = self._facts(plan.left), self._facts(plan.right)
        if not pairs or not (lefts or rights):
            return plan
        known = Implications((*pairs, *lefts))
        right, kept = plan.right, list(pairs)
        for fact in rights:
            moved = shifted(fact, width)
            below = _without(right, fact) if moved in known else right
            if below is right:
                kept.append(moved)
            right = below
        left = plan.left
        if plan.kind in (JoinKind.INNER, JoinKind.SEMI):
            known = Implications(kept)
            for fact in lefts:
                left = _without(left, fact) if fact in known else left
        if left is plan.left and right is plan.right:
            return plan
        return msgspec.structs.replace(plan, left=left, right=right)

    def _facts(self, plan: Plan) -> Facts:
        known = self._known.get(id(plan))
        if known is None:
            known = self._known[id(plan)] = (plan, self._collected(plan))
        return known[1]

    def _collected(self, plan: Plan) -> Facts:
        below = [self._facts(child) for child in plan.inputs]
        if not isinstance(plan, UnionAll):
            return facts_above(plan, below) if below else ()
        others = [{named(fact, {}) for fact in facts} for facts in below[1:]]
        return tuple(f for f in below[0] if all(named(f, {}) in facts for facts in others))


def _without(plan: Plan, predicate: Expression) -> Plan:
    """Return a plan without a condition, where a filter pushed into it stands; else itself."""
    ways = ways_down(plan, predicate)
    if not ways:
        return plan
    if len(ways) == len(plan.inputs):
        inputs = tuple(_without(child, pushed) for child, pushed in ways)
    else:  # a join, of which the predicate reads one side
        inner, outer = plan.inputs
        ((child, pushed),) = ways
        is_left = max(columns_of(predicate)) < len(inner.schema)
        below = _without(child, pushed)
        inputs = (below, outer) if is_left else (inner, below)
    if any(new is not old for new, old in zip(inputs, plan.inputs, strict=True)):
        plan = with_inputs(plan, inputs)
    if not isinstance(plan, Filter):
        return plan
    asked = named(fold(predicate), {})
    parts = conjuncts(plan.predicate)
    kept = [part for part in parts if named(fold(part), {}) != asked]
    if len(kept) == len(parts):
        return plan
    rest = conjunction(kept)
    return plan.input if rest is None else msgspec.structs.replace(plan, predicate=rest)
