"""Expressions that have equal values where their columns are equal.

Groups and sets keep one of equal values. Of DOUBLE, 0.0 and -0.0 are equal, and yet some functions
tell them apart: `CAST(x AS TEXT)`, `ATAN2(x, y)`. Of all other types equal values are the same.
"""

from streamsql.algebra.expressions import Call, Column, Expression, columns_of, walk
from streamsql.algebra.scalar_functions.scalar_numbers import NUMERIC_FUNCTIONS
from streamsql.data.types import DataType

_BY_VALUE = frozenset(
    {
        *("=", "<>", "<", "<=", ">", ">=", "IN", "IS NULL", "IS NOT NULL", "AND", "OR", "NOT"),
        *("+", "-", "*", "/", "%", "NEGATE", "ABS", "CASE", "COALESCE", "LEAST", "GREATEST"),
        *("ROUND", "FLOOR", "CEIL", "SQRT", "POWER", "DISTANCE", "TO_TIMESTAMP"),
        *(NUMERIC_FUNCTIONS.keys() - {"ATAN2"}),
    }
)
"""Functions that give equal values for equal ones: a quotient by zero is NULL, of either sign."""


def tells_zeros_apart(expression: Expression) -> bool:
    """Return whether a value may differ where columns are equal."""
    if isinstance(expression, Column):
        return False
    return any(_reads_sign(part) for part in walk(expression) if isinstance(part, Call))


def _reads_sign(call: Call) -> bool:
    if call.function in _BY_VALUE:
        return False
    if call.function == "CAST" and call.dtype not in (DataType.TEXT, DataType.NULL):
        return False
    return any(each.dtype == DataType.DOUBLE and columns_of(each) for each in call.arguments)
