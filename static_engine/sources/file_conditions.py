"""Conditions of our language as Arrow judges them, for files that tell what their parts hold.

Only whole numbers and equality of texts: they mean the same there. Whoever reads the rows evaluates
the conditions again, so a part is left out only if none of its rows can pass.
"""

import operator
from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from static_engine.sources.partial_conditions import COMPARISONS, column_test, translated
from streamsql.algebra.expressions import Column, Expression
from streamsql.data.types import DataType


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
    test = column_test(condition)
    field = _field(test.column, fields) if test is not None else None
    if test is None or field is None:
        return None
    values = [pc.scalar(v if isinstance(v, str) else pa.scalar(v, pa.int64())) for v in test.values]
    match test.sign:
        case "IS NULL":
            return field.is_null()
        case "IS NOT NULL":
            return field.is_valid()
        case "IN":
            return _any_of([field == value for value in values])
        case sign:
            return COMPARISONS[sign](field, values[0])


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


def _all_of(parts: list[pc.Expression]) -> pc.Expression:
    return reduce(operator.and_, parts)


def _any_of(parts: list[pc.Expression]) -> pc.Expression:
    return reduce(operator.or_, parts)
