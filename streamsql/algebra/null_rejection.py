"""Which NULLs make an expression NULL, and which keep a predicate from being TRUE.

Every function of the language gives NULL for a NULL argument but for AND, OR, IS NULL, IS NOT NULL,
CASE, COALESCE, the candidates of IN, and functions of users that are called on NULL.
"""

from collections.abc import Set as AbstractSet

from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from streamsql.algebra.user_functions import is_called_on_null

_ANSWERS_NULLS = frozenset({"AND", "OR", "IS NULL", "IS NOT NULL", "CASE"})


def is_null(expression: Expression, columns: AbstractSet[int]) -> bool:
    """Whether an expression is NULL where all of the columns are; False: it may not be."""
    match expression:
        case Column(position=position):
            return position in columns
        case Literal(value=value):
            return value is None
        case Call(function=name) if name in _ANSWERS_NULLS or is_called_on_null(name):
            return False
        case Call(function="COALESCE", arguments=arguments):
            return all(is_null(argument, columns) for argument in arguments)
        case Call(function="IN", arguments=(needle, *_)):
            return is_null(needle, columns)
        case Call(arguments=arguments):
            return any(is_null(argument, columns) for argument in arguments)


def is_rejected(predicate: Expression, columns: AbstractSet[int]) -> bool:
    """Whether a predicate is not TRUE where all of the columns are NULL; False: it may be.

    Examples:
        >>> from streamsql.data.types import DataType
        >>> a, one = Column(0, "a", DataType.INTEGER), Literal(1, DataType.INTEGER)
        >>> is_rejected(Call("<", (a, one), DataType.BOOLEAN), {0})
        True
    """
    match predicate:
        case Literal(value=value):
            return value is not True
        case Call(function="AND", arguments=arguments):
            return any(is_rejected(argument, columns) for argument in arguments)
        case Call(function="OR", arguments=arguments):
            return all(is_rejected(argument, columns) for argument in arguments)
        case Call(function="IS NOT NULL", arguments=(inner,)):
            return is_null(inner, columns)
        case _:
            return is_null(predicate, columns)


def rejected_columns(predicate: Expression) -> frozenset[int]:
    """Return the columns each of which keeps a predicate from being TRUE where it is NULL."""
    return frozenset(c for c in columns_of(predicate) if is_rejected(predicate, {c}))
