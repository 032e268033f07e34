"""Conditions of our language as a database evaluates them.

Only those of which a database lets through at least the rows that we would: whoever reads the rows
evaluates them again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, or_
from sqlalchemy import column as sql_column

from static_engine.sources.conditions.partial_conditions import COMPARISONS, translated
from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from streamsql.data.types import DataType


def pushed(
    condition: Expression, columns: Mapping[int, ColumnElement[Any]]
) -> ColumnElement[bool] | None:
    """Return a condition for the database's WHERE, or None.

    Args:
        condition: Over the rows of the table.
        columns: By position: those that hold whole numbers, or texts, just as we read them.
    """
    return translated(
        condition, lambda one: _one(one, columns), lambda all_: and_(*all_), lambda any_: or_(*any_)
    )


def pushed_exactly(
    condition: Expression, columns: Mapping[int, ColumnElement[Any]]
) -> ColumnElement[bool] | None:
    """Return a condition that just those rows pass which pass ours, or None.

    Args:
        condition: Over the rows of the table.
        columns: By position: those that the database compares exactly as we do.
    """
    match condition:
        case Call(function="AND" | "OR" as name, arguments=parts):
            made = [pushed_exactly(part, columns) for part in parts]
            found = [part for part in made if part is not None]
            if len(found) < len(made):
                return None
            return and_(*found) if name == "AND" else or_(*found)
        case Column(position=p, dtype=DataType.BOOLEAN):
            return columns.get(p)
        case _:
            return _one(condition, columns)


def _one(
    condition: Expression, columns: Mapping[int, ColumnElement[Any]]
) -> ColumnElement[bool] | None:
    match condition:
        case Call(function="IS NULL" | "IS NOT NULL" as test, arguments=(Column(position=p),)):
            if p not in columns:
                return None
            return columns[p].is_(None) if test == "IS NULL" else columns[p].is_not(None)
        case Call(function="IN", arguments=(Column(position=p, dtype=dtype), *listed)):
            return (
                columns[p].in_(found)
                if p in columns and (found := _listed(listed, dtype))
                else None
            )
        case Call(function=name, arguments=(left, right)) if name in COMPARISONS:
            return _comparison(name, left, right, columns)
        case _:
            return None


def may_be_pushed(condition: Expression) -> bool:
    """Whether some database may evaluate a condition, or a part of it."""
    columns: dict[int, ColumnElement[Any]] = {p: sql_column(f"c{p}") for p in columns_of(condition)}
    return pushed(condition, columns) is not None


def _comparison(
    name: str, left: Expression, right: Expression, columns: Mapping[int, ColumnElement[Any]]
) -> ColumnElement[bool] | None:
    # Databases order texts by collations of their own, and may call different ones equal.
    if left.dtype != right.dtype or not (
        left.dtype == DataType.INTEGER or (left.dtype == DataType.TEXT and name == "=")
    ):
        return None
    sides = [_operand(side, columns) for side in (left, right)]
    if any(side is None for side in sides) or not any(isinstance(s, Column) for s in (left, right)):
        return None
    clause: ColumnElement[bool] = COMPARISONS[name](*sides)
    return clause


def _listed(listed: Sequence[Expression], dtype: DataType) -> list[Any]:
    """Return the constants of a list that are not NULL; none if not all of it are constants."""
    if dtype not in (DataType.INTEGER, DataType.TEXT):
        return []
    values = []
    for part in listed:
        if not isinstance(part, Literal) or part.dtype not in (dtype, DataType.NULL):
            return []
        if isinstance(part.value, str) and "\0" in part.value:
            return []
        if part.value is not None:
            values.append(part.value)
    return values


def _operand(side: Expression, columns: Mapping[int, ColumnElement[Any]]) -> Any:
    match side:
        case Column(position=p):
            return columns.get(p)
        case Literal(value=str() as text) if "\0" in text:
            return None
        case Literal(value=value):
            return value  # None: not pushed, no row passes
        case _:
            return None
