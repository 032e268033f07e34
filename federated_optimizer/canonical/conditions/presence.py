"""Expressions that are not NULL because others are not."""

from collections.abc import Iterable

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.user_functions import is_called_on_null

_ANSWERS_NULLS = frozenset({"AND", "OR", "IS NULL", "IS NOT NULL", "CASE", "COALESCE"})
_TOTAL = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "NOT", "LOWER", "UPPER", "TRIM", "LENGTH", "REVERSE"}
    | {"STARTS_WITH", "ENDS_WITH", "POSITION", "LEAST", "GREATEST", "IS NULL", "IS NOT NULL"}
)
"""Functions that have a value for all arguments but NULL."""


def needed_by(expressions: Iterable[Expression]) -> set[Expression]:
    """Return all that is not NULL where some expressions are not NULL, themselves included."""
    found: set[Expression] = set()
    waiting = list(expressions)
    while waiting:
        each = waiting.pop()
        if each in found:
            continue
        found.add(each)
        match each:
            case Call(function=name) if name in _ANSWERS_NULLS or is_called_on_null(name):
                pass
            case Call(function="IN", arguments=(needle, *_)):
                waiting.append(needle)
            case Call(arguments=arguments):
                waiting.extend(arguments)
            case _:
                pass
    return found


def is_surely_present(expression: Expression, present: set[Expression]) -> bool:
    """Return whether an expression is not NULL where some others are not; False: perhaps not."""
    if expression in present:
        return True
    match expression:
        case Column():
            return False
        case Literal(value=value):
            return value is not None
        case Call(function="IS NULL" | "IS NOT NULL"):
            return True
        case Call(function=name, arguments=arguments) if name in _TOTAL:
            return all(is_surely_present(each, present) for each in arguments)
        case _:
            return False
