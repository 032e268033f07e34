"""Conditions of our language as Arrow judges them, for files that tell what their parts hold.

Only whole numbers and equality of texts: they mean the same there. Whoever reads the rows evaluates
the conditions again, so a part is left out only if none of its rows can pass.
"""

import operator
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from static_engine.sources.conditions.partial_conditions import COMPARISONS, column_test, translated
from streamsql.algebra.expressions import Column, Expression
from streamsql.data.types import DataType

MOST_LISTED = 200
"""Of more values of an IN their least and greatest are compared: each costs time per row group."""


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
    if len(test.values) > MOST_LISTED:
        return _between(field, test.values)
    values = [_constant(value) for value in test.values]
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


def _constant(value: object) -> pc.Expression:
    return pc.scalar(value if isinstance(value, str) else pa.scalar(value, pa.int64()))


def _between(field: pc.Expression, values: Sequence[object]) -> pc.Expression | None:
    """Return what many listed numbers have in common; None of texts."""
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) < len(values):
        return None
    return (field >= _constant(min(numbers))) & (field <= _constant(max(numbers)))


def _all_of(parts: list[pc.Expression]) -> pc.Expression:
    return _balanced(parts, operator.and_)


def _any_of(parts: list[pc.Expression]) -> pc.Expression:
    return _balanced(parts, operator.or_)


def _balanced(
    parts: list[pc.Expression], join: Callable[[pc.Expression, pc.Expression], pc.Expression]
) -> pc.Expression:
    """Join parts as a tree of little depth: Arrow descends it, and its stack is small."""
    while len(parts) > 1:
        pairs = [join(*pair) for pair in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]
