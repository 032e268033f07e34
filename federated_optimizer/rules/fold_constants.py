"""Evaluate constant sub-expressions and drop filters that decide nothing.

Precondition: none; runs first, so that later rules see literals.

Sound because every function of the language is total and deterministic: the value computed here is
the value every row would have got. A filter that can never be TRUE becomes an empty `Values`,
except around a recursive reference, because a step branch must keep reading its recursion.

Example: `Filter (1 + 1 = 2) AND a > 3` becomes `Filter a > 3`.
"""

import msgspec

from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import Call, Expression, Literal
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
from streamsql.algebra.scalar import compile_expression
from streamsql.data.types import DataType, conforms


def fold_constants(plan: Plan) -> Plan:
    """Return the plan with constants folded everywhere."""
    return transform_up(plan, _fold_operator)


def fold(expression: Expression) -> Expression:
    """Return the expression with constant parts evaluated.

    Examples:
        >>> one = Literal(1, DataType.INTEGER)
        >>> fold(Call("+", (one, one), DataType.INTEGER))
        Literal(value=2, dtype=<DataType.INTEGER: 'INTEGER'>)
    """
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(fold(argument) for argument in expression.arguments)
    folded = msgspec.structs.replace(expression, arguments=arguments)
    if expression.function == "AND":
        return _fold_and(folded)
    if all(isinstance(argument, Literal) for argument in arguments):
        return _evaluated(folded)
    return folded


def _evaluated(call: Call) -> Expression:
    value = compile_expression(call)(())
    if value is None:
        return Literal(None, call.dtype)
    # A value outside its type's range (an overflow) is left to the engine's own rules.
    return Literal(value, call.dtype) if conforms(value, call.dtype) else call


def _fold_and(call: Call) -> Expression:
    kept = tuple(a for a in call.arguments if not (isinstance(a, Literal) and a.value is True))
    if any(isinstance(a, Literal) and a.value is False for a in kept):
        return Literal(False, DataType.BOOLEAN)
    if not kept:
        return Literal(True, DataType.BOOLEAN)
    if len(kept) == 1:
        return kept[0]
    if all(isinstance(a, Literal) for a in kept):
        return _evaluated(msgspec.structs.replace(call, arguments=kept))
    return msgspec.structs.replace(call, arguments=kept)


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
    if not isinstance(predicate, Literal):
        return msgspec.structs.replace(plan, predicate=predicate)
    if predicate.value is True:
        return child
    if any(isinstance(node, RecursiveReference) for node in walk_plan(child)):
        return msgspec.structs.replace(plan, predicate=predicate)
    return Values((), child.schema)


FOLD_CONSTANTS = Rule("fold_constants", fold_constants)
