"""Conditions of our language as Arrow judges them, for files that tell what their parts hold.

Only whole numbers and equality of texts: they mean the same there. Whoever reads the rows evaluates
the conditions again, so a part is left out only if none of its rows can pass.
"""

import operator
from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from static_engine.sources.partial_conditions import COMPARISONS, translated
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.data.types import DataType

_LARGEST = 2**63


def arrow_condition(
    conditions: Sequence[Expression], fields: Mapping[int, pa.Field]
) -> pc.Expression | None:
    """Return what all rows fulfil that may pass the conditions; None if that is every row.

    Args:
        conditions: Over the rows of the table.
        fields: Of the file, by the position of the declared column.
    """
    made = [translated(one, lambda c: _one(c, fields), _all_of, _any_of) for one in conditions]
    found = [each for each in made if each is not None]
    return _all_of(found) if found else None


def _one(condition: Expression, fields: Mapping[int, pa.Field]) -> pc.Expression | None:
    match condition:
        case Call(function="IS NULL" | "IS NOT NULL" as test, arguments=(Column() as column,)):
            field = _field(column, fields)
            if field is None:
                return None
            return field.is_null() if test == "IS NULL" else field.is_valid()
        case Call(function="IN", arguments=(Column() as column, *listed)):
            equal = [_comparison("=", column, one, fields) for one in listed]
            found = [c for c in equal if c is not None]
            return _any_of(found) if found and len(found) == len(equal) else None
        case Call(function=name, arguments=(left, right)) if name in COMPARISONS:
            return _comparison(name, left, right, fields)
        case _:
            return None


def _comparison(
    name: str, left: Expression, right: Expression, fields: Mapping[int, pa.Field]
) -> pc.Expression | None:
    if left.dtype != right.dtype or (left.dtype == DataType.TEXT and name != "="):
        return None
    match left, right:
        case (Column() as column, Literal(value=value)):
            sides = _field(column, fields), _constant(value)
        case (Literal(value=value), Column() as column):
            sides = _constant(value), _field(column, fields)
        case _:
            return None
    if sides[0] is None or sides[1] is None:
        return None
    return COMPARISONS[name](*sides)


def _field(column: Column, fields: Mapping[int, pa.Field]) -> pc.Expression | None:
    """Return a column of the file that holds just what we read from it, or None."""
    field = fields.get(column.position)
    if field is None:
        return None
    kind = field.type
    if column.dtype == DataType.INTEGER:
        same = pa.types.is_integer(kind) and kind != pa.uint64()
    else:
        same = column.dtype == DataType.TEXT and (
            pa.types.is_string(kind) or pa.types.is_large_string(kind)
        )
    return pc.field(field.name) if same else None


def _constant(value: object) -> pc.Expression | None:
    if isinstance(value, str):
        return pc.scalar(value)
    if isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST:
        return pc.scalar(pa.scalar(value, pa.int64()))
    return None


def _all_of(parts: list[pc.Expression]) -> pc.Expression:
    return reduce(operator.and_, parts)


def _any_of(parts: list[pc.Expression]) -> pc.Expression:
    return reduce(operator.or_, parts)
