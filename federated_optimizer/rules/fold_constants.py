"""Evaluate constant sub-expressions and drop filters that decide nothing.

Precondition: none; runs first, so that later rules see literals.

Sound because every function of the language is total and deterministic: the value computed here is
the value every row would have got. A filter that can never be TRUE, because a conjunct is FALSE or
NULL, becomes an empty `Values`, except around a recursive reference, because a step branch must
keep reading its recursion.

Example: `Filter (1 + 1 = 2) AND a > 3` becomes `Filter a > 3`.
"""

import msgspec

from federated_optimizer.canonical.constant_folding import fold
from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import Expression, Literal, conjuncts
from streamsql.algebra.operators import (
    Filter,
    Join,
    Plan,
    Project,
    RecursiveReference,
    Values,
    transform_up,
    walk_plan,
)


def fold_constants(plan: Plan) -> Plan:
    """Return the plan with constants folded everywhere."""
    return transform_up(plan, _fold_operator)


def _fold_operator(plan: Plan) -> Plan:
    match plan:
        case Filter(input=child, predicate=predicate):
            return _fold_filter(plan, child, fold(predicate))
        case Project(input=child, expressions=expressions, names=names):
            return Project(child, tuple(fold(e) for e in expressions), names)
        case Join(residual=residual) if residual is not None:
            folded: Expression | None = fold(residual)
            if isinstance(folded, Literal) and folded.value is True:
                folded = None
            return msgspec.structs.replace(plan, residual=folded)
        case _:
            return plan


def _fold_filter(plan: Filter, child: Plan, predicate: Expression) -> Plan:
    never = any(isinstance(p, Literal) and p.value is not True for p in conjuncts(predicate))
    if not never and not isinstance(predicate, Literal):
        return msgspec.structs.replace(plan, predicate=predicate)
    if not never:
        return child
    if any(isinstance(node, RecursiveReference) for node in walk_plan(child)):
        return msgspec.structs.replace(plan, predicate=predicate)
    return Values((), child.schema)


FOLD_CONSTANTS = Rule("fold_constants", fold_constants)
