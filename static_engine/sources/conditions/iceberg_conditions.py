"""Conditions of our language as Iceberg judges them, by partitions, statistics and rows.

The rule of `file_conditions.py` holds: whoever reads the rows evaluates the conditions again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotNull,
    Or,
)
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

from static_engine.sources.conditions.partial_conditions import column_test, translated
from streamsql.algebra.expressions import Column, Expression
from streamsql.data.types import DataType

# Untyped: the library's classes take names, which their types do not say.
_TESTS: dict[str, Any] = {
    "=": EqualTo,
    "<>": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
    "IN": In,
    "IS NULL": IsNull,
    "IS NOT NULL": NotNull,
}
_KINDS = {DataType.INTEGER: (IntegerType, LongType), DataType.TEXT: (StringType,)}


def iceberg_condition(
    conditions: Sequence[Expression], fields: Mapping[int, NestedField]
) -> BooleanExpression:
    """Return what all rows fulfil that may pass the conditions.

    Args:
        conditions: Over the rows of the table.
        fields: Of the Iceberg table, not within others, by the position of the declared column.
    """
    made = [translated(one, lambda c: _one(c, fields), _all_of, _any_of) for one in conditions]
    found = [each for each in made if each is not None]
    return _all_of(found) if found else AlwaysTrue()


def _one(condition: Expression, fields: Mapping[int, NestedField]) -> BooleanExpression | None:
    test = column_test(condition)
    name = _name(test.column, fields) if test is not None else None
    if test is None or name is None:
        return None
    given = (test.values,) if test.sign == "IN" else test.values
    made: BooleanExpression = _TESTS[test.sign](name, *given)
    return made


def _name(column: Column, fields: Mapping[int, NestedField]) -> str | None:
    """Return the name of a column that holds just what we read from it, or None."""
    field = fields.get(column.position)
    # A name with a dot may mean a field within another.
    if field is None or "." in field.name:
        return None
    return field.name if isinstance(field.field_type, _KINDS.get(column.dtype, ())) else None


def _all_of(parts: list[BooleanExpression]) -> BooleanExpression:
    return parts[0] if len(parts) == 1 else And(*parts)


def _any_of(parts: list[BooleanExpression]) -> BooleanExpression:
    return parts[0] if len(parts) == 1 else Or(*parts)
