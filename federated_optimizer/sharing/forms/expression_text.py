"""Texts that name expressions whatever their columns are called."""

from collections.abc import Callable

from streamsql.algebra.expressions import Call, Column, Expression

COMMUTATIVE = frozenset({"AND", "OR", "=", "<>", "+", "*"})
"""Functions of two arguments, or of any number, whose order says nothing of the value."""

MIRRORED = {">": "<", ">=": "<="}


def text_of(expression: Expression, column: Callable[[int], str]) -> str:
    """Return the same text for expressions that are the same but for the order of operands.

    Args:
        expression: Any.
        column: Returns the name of a position.
    """
    match expression:
        case Column(position=position):
            return column(position)
        case Call(function=function, arguments=arguments, dtype=dtype):
            parts = [text_of(each, column) for each in arguments]
            if function in COMMUTATIVE:
                parts.sort()
            elif function in MIRRORED and len(parts) == 2:
                function, parts = MIRRORED[function], parts[::-1]
            return f"{function}:{dtype}({','.join(parts)})"
        case _:
            return f"{expression.dtype}:{expression.value!r}"
