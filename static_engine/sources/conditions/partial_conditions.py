"""Conditions that something else may judge in part: what it passes is judged again.

Of several conditions that must all hold, some are enough; of alternatives, each is needed.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.data.types import DataType

T = TypeVar("T")

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """A condition on one column of whole numbers or of texts, which files judge as we do.

    Attributes:
        sign: One of `COMPARISONS`, IN, IS NULL or IS NOT NULL.
        values: What the column is compared with, of its type and not NULL: one for a comparison,
            one or more for IN, none for the others. Whole numbers have 64 bits.
    """

    column: Column
    sign: str
    values: tuple[int | str, ...] = ()


def column_test(condition: Expression) -> ColumnTest | None:
    """Return a condition as a test of one column, or None.

    Texts are only compared for equality.
    """
    match condition:
        case Call(function="IS NULL" | "IS NOT NULL" as sign, arguments=(Column() as column,)):
            return ColumnTest(column, sign) if column.dtype in _COMPARED else None
        case Call(function="IN", arguments=(Column() as column, *listed)):
            return _tested(column, "IN", *listed)
        case Call(function=sign, arguments=(Column() as column, value)) if sign in COMPARISONS:
            return _tested(column, sign, value)
        case Call(function=sign, arguments=(value, Column() as column)) if sign in COMPARISONS:
            return _tested(column, _TURNED[sign], value)
        case _:
            return None


_COMPARED = (DataType.INTEGER, DataType.TEXT)


def _tested(column: Column, sign: str, *others: Expression) -> ColumnTest | None:
    if column.dtype not in _COMPARED or (column.dtype == DataType.TEXT and sign not in ("=", "IN")):
        return None
    values = [_constant(other, column.dtype) for other in others]
    found = tuple(value for value in values if value is not None)
    return ColumnTest(column, sign, found) if 0 < len(found) == len(values) else None


def _constant(other: Expression, dtype: DataType) -> int | str | None:
    match other:
        case Literal(value=str() as text) if other.dtype == dtype == DataType.TEXT:
            return text
        case Literal(value=int() as number) if other.dtype == dtype == DataType.INTEGER:
            return number if -_LARGEST <= number < _LARGEST else None
        case _:
            return None


def translated(
    condition: Expression,
    one: Callable[[Expression], T | None],
    every: Callable[[list[T]], T],
    some: Callable[[list[T]], T],
) -> T | None:
    """Return a condition that every row passes which passes this one; None: there is none.

    Args:
        condition: Of our language.
        one: Translates what is neither AND nor OR, or returns None.
        every: Joins by AND; of at least one.
        some: Joins by OR; of at least one.
    """
    match condition:
        case Call(function="AND" | "OR" as name, arguments=parts):
            made = [translated(part, one, every, some) for part in parts]
            found = [part for part in made if part is not None]
            if name == "OR" and len(found) < len(parts):
                return None
            return (every if name == "AND" else some)(found) if found else None
        case _:
            return one(condition)
