"""Groups that a database computes exactly as we do, so that they travel instead of its rows."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    and_,
    case,
    cast,
    collate,
    column,
    create_engine,
    distinct,
    func,
    literal,
    not_,
    or_,
    select,
    table,
)
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql import quoted_name, sqltypes

from static_engine.sources.conditions.pushed_conditions import pushed_exactly
from static_engine.sources.databases.database_reader import (
    BATCH_ROWS,
    IDLE_SECONDS,
    columns_of,
    connect_arguments,
    database_errors,
    prepare_session,
    shown,
)
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_parts import Groups, Narrowed
from static_engine.sources.time_limit import TimeLimit
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import batch_of_values
from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.expressions import Column, Expression, walk
from streamsql.algebra.scalar_functions.scalar import in_range
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType, Value

_COLLATIONS = {"postgresql": "C", "sqlite": "BINARY"}
"""By which texts are equal only if they have the same characters."""
_TEXTS = (sqltypes.TEXT, sqltypes.VARCHAR)
"""Exactly these: classes derived from them ignore case, or fill up with spaces."""

Columns = Mapping[int, ColumnElement[Any]]


class NoGroupsError(TableError):
    """The database might compute other groups than we do: rows are read instead."""


def read_groups(part: Narrowed, groups: Groups, url: URL, name: str) -> Iterator[pa.RecordBatch]:
    """Yield groups in the types of the part's definition, by one SELECT.

    Args:
        part: Of a table.
        groups: Of the part.
        url: The database.
        name: The table's name there, `table` or `schema.table`.

    Raises:
        NoGroupsError: The database cannot compute them as we do, or takes too long.
        TableMissingError: It has no such table.
        TableError: It does not answer, or lacks a column.
    """
    where = f"table {part.definition.name}: database {shown(url)}"
    limit = TimeLimit(IDLE_SECONDS)
    try:
        with database_errors(where, url, limit):
            engine = create_engine(url, poolclass=NullPool, connect_args=connect_arguments(url))
            limit.watch(engine)
            row = 1
            with engine.connect() as connection:
                for rows in _found(part, groups, connection, name, where):
                    limit.extend()
                    yield batch_of_values(part.definition, rows, row, where)
                    limit.extend()
                    row += len(rows)
    except TableError as error:
        # Rows come one after the other; the first group comes when all rows were read.
        if limit.is_over:
            raise NoGroupsError(error.message) from error
        raise


def compared_columns(definition: SourceDefinition, url: URL, name: str) -> frozenset[int]:
    """Return the columns, by position, that a database compares exactly as we do.

    Raises:
        TableMissingError: The database has no such table.
        TableError: It does not answer, or lacks a column.
    """
    where = f"table {definition.name}: database {shown(url)}"
    limit = TimeLimit(IDLE_SECONDS)
    with database_errors(where, url, limit):
        engine = create_engine(url, poolclass=NullPool, connect_args=connect_arguments(url))
        limit.watch(engine)
        with engine.connect() as connection:
            found = _matched(definition, connection, name, where)
            return frozenset(_exact(found, definition, connection.dialect.name))


def _matched(
    definition: SourceDefinition, connection: Connection, name: str, where: str
) -> list[ReflectedColumn]:
    """Return the database's columns for the declared ones."""
    schema, _, plain = name.rpartition(".")
    found = columns_of(connection, plain, schema or None, where)
    return [found[p] for p in match_columns(definition, [str(c["name"]) for c in found], name)]


def _exact(
    found: Sequence[ReflectedColumn], definition: SourceDefinition, dialect: str
) -> dict[int, ColumnElement[Any]]:
    """Return by position what the database compares exactly as we do."""
    made: dict[int, ColumnElement[Any]] = {}
    if dialect not in _COLLATIONS:
        return made
    for position, (one, dtype) in enumerate(zip(found, definition.schema.dtypes, strict=True)):
        name, kind = quoted_name(str(one["name"]), quote=True), one["type"]
        if dtype == DataType.INTEGER and isinstance(kind, sqltypes.Integer):
            # As large as our whole numbers, which conditions compare it with.
            made[position] = column(name, BigInteger())
        elif dtype == DataType.BOOLEAN and isinstance(kind, sqltypes.Boolean):
            made[position] = column(name, sqltypes.Boolean())
        elif dtype == DataType.TEXT and type(kind) in _TEXTS:
            made[position] = collate(column(name, sqltypes.Text()), _COLLATIONS[dialect])
    return made


def _found(
    part: Narrowed, groups: Groups, connection: Connection, name: str, where: str
) -> Iterator[list[list[Value]]]:
    """Yield the groups, some at a time."""
    prepare_session(connection)
    dialect = connection.dialect.name
    found = _matched(groups.rows, connection, name, where)
    columns = _exact(found, groups.rows, dialect)
    if len(columns) < len(found):
        raise NoGroupsError(f"{where}: it may compare a column in another way")
    clauses = [pushed_exactly(condition, columns) for condition in part.conditions]
    known = [clause for clause in clauses if clause is not None]
    if len(known) < len(clauses):
        raise NoGroupsError(f"{where}: it may judge a condition in another way")
    schema, _, plain = name.rpartition(".")
    keys = [columns[position] for position in groups.group]
    sums = [value for call in groups.calls for value in _aggregates(call, columns)]
    typed = _typed(columns, groups.rows, dialect)
    strays = literal(0) if typed is None else func.max(case((typed, 0), else_=1))
    wanted = [*keys, *sums, strays]
    query = select(*(one.label(f"v{n}") for n, one in enumerate(wanted)))
    query = query.select_from(table(quoted_name(plain, quote=True), schema=schema or None))
    if typed is not None and known and any(map(_reads_truth, part.conditions)):
        # Whoever reads the rows judges truth values itself, so that none of another type is left
        # out unseen: 'true' in a column of SQLite is true.
        known = [or_(and_(*known), not_(typed))]
    query = query.where(*known).group_by(*keys)
    try:
        with connection.execution_options(yield_per=BATCH_ROWS).execute(query) as result:
            for rows in result.partitions():
                if any(row[-1] for row in rows):
                    raise NoGroupsError(f"{where}: it holds values that are not of their column")
                yield [_row(groups, row) for row in rows]
    except DBAPIError as error:
        if "overflow" in str(error.orig):
            raise NoGroupsError(f"{where}: a sum is too large for it") from error
        raise


def _aggregates(call: AggregateCall, columns: Columns) -> list[ColumnElement[Any]]:
    """Return what an aggregate is made of: of AVG the sum and the number of values."""
    if call.function == AggregateFunction.COUNT_ALL:
        return [func.count()]
    (argument,) = call.arguments
    assert isinstance(argument, Column)  # noqa: S101 - `source_groups` has seen to it
    value = columns[argument.position]
    given: Any = distinct(value) if call.distinct else value
    match call.function:
        case AggregateFunction.COUNT:
            return [func.count(given)]
        case AggregateFunction.MIN:
            return [func.min(value)]
        case AggregateFunction.MAX:
            return [func.max(value)]
        case _:
            # PostgreSQL sums up 64 bits as NUMERIC, smaller ones in 64 bits.
            whole = cast(value, BigInteger())
            total = func.sum(distinct(whole) if call.distinct else whole)
            return [total, func.count(given)] if call.function == AggregateFunction.AVG else [total]


def _reads_truth(condition: Expression) -> bool:
    return any(
        isinstance(each, Column) and each.dtype == DataType.BOOLEAN for each in walk(condition)
    )


def _typed(columns: Columns, rows: SourceDefinition, dialect: str) -> ColumnElement[bool] | None:
    """Return whether the values of a row are of their columns' types; None: they always are.

    SQLite keeps any value in any column.
    """
    if dialect != "sqlite" or not columns:
        return None
    good: list[ColumnElement[bool]] = []
    for position, value in columns.items():
        dtype, kind = rows.schema.dtypes[position], func.typeof(value)
        if dtype == DataType.BOOLEAN:
            truth = cast(value, sqltypes.Integer()).in_((0, 1))
            good.append(or_(kind == "null", and_(kind == "integer", truth)))
        else:
            good.append(kind.in_(("null", "integer" if dtype == DataType.INTEGER else "text")))
    return and_(*good)


def _row(groups: Groups, found: Sequence[Any]) -> list[Value]:
    """Return a group in our types."""
    row: list[Value] = list(found[: len(groups.group)])
    rest = iter(found[len(groups.group) :])
    for call in groups.calls:
        value = next(rest)
        match call.function:
            case AggregateFunction.AVG:
                count = next(rest)
                row.append(float(Fraction(int(value), count)) if count else None)
            case AggregateFunction.SUM:
                row.append(None if value is None else in_range(int(value)))
            case _:
                row.append(value)
    return row
