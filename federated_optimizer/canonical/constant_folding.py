"""Constant parts of expressions, evaluated."""

import msgspec

from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import DataType, conforms


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
        made = evaluated(folded)
        # To Python a constant -0.0 equals 0.0, so plans with one would be taken for the other.
        is_zero = isinstance(made, Literal) and made.dtype == DataType.DOUBLE and made.value == 0
        return folded if is_zero and str(getattr(made, "value", "")) == "-0.0" else made
    return folded


def evaluated(call: Call) -> Expression:
    """Return a call of constants as its value; as it is where that is none of its type."""
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
        return evaluated(msgspec.structs.replace(call, arguments=kept))
    return msgspec.structs.replace(call, arguments=kept)
