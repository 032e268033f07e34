"""Read tables and views of SQL databases through SQLAlchemy."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    column,
    create_engine,
    func,
    inspect,
    select,
    table,
)
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.exc import NoSuchModuleError, NoSuchTableError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql import quoted_name, sqltypes

from static_engine.sources.conditions.pushed_conditions import pushed
from static_engine.sources.table_errors import TableError, TableMissingError
from static_engine.sources.table_locations import sqlite_file
from static_engine.sources.time_limit import TimeLimit
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import batch_of_values
from streamsql.algebra.expressions import Expression
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType

BATCH_ROWS = 20_000
_CONNECT_SECONDS = 10
IDLE_SECONDS = 60.0
"""A database that has sent nothing for so long is given up: nothing else is read meanwhile."""
_SHOWN = 20


def read_database(
    definition: SourceDefinition, url: URL, name: str, conditions: tuple[Expression, ...] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table or view in the declared types, by one SELECT.

    Args:
        definition: The table as declared.
        url: The database.
        name: Its name there, `table` or `schema.table`.
        conditions: Over the declared columns; rows that fail one may be left out, where the
            database judges as we do.

    Raises:
        TableMissingError: The database has no such table.
        TableError: It does not answer, lacks a column, or holds a value of another type.
    """
    where = f"table {definition.name}: database {shown(url)}"
    limit = TimeLimit(IDLE_SECONDS)
    with database_errors(where, url, limit):
        engine = create_engine(url, poolclass=NullPool, connect_args=connect_arguments(url))
        limit.watch(engine)
        with engine.connect() as connection:
            for batch in _rows(definition, connection, name, where, conditions):
                limit.extend()
                yield batch
                limit.extend()


@contextmanager
def database_errors(where: str, url: URL, limit: TimeLimit) -> Iterator[None]:
    """Turn errors of a database and its driver into those of tables.

    Raises:
        TableError: The database does not answer.
    """
    try:
        yield
    except (NoSuchModuleError, ImportError) as error:
        raise TableError(
            f"{where}: no driver for {url.drivername}", hint='pip install "pando[postgres]"'
        ) from error
    except SQLAlchemyError as error:
        if limit.is_over:
            raise TableError(
                f"{where} has not answered for {limit.seconds:g} s",
                hint="check the database for locks and long queries; Pando retries from time to "
                "time",
            ) from error
        reason = str(getattr(error, "orig", None) or error).strip().splitlines() or [""]
        raise TableError(f"{where} does not answer: {reason[0][:300]}") from error


def _rows(
    definition: SourceDefinition,
    connection: Connection,
    name: str,
    where: str,
    conditions: tuple[Expression, ...],
) -> Iterator[pa.RecordBatch]:
    prepare_session(connection)
    schema, _, plain_name = name.rpartition(".")
    found = columns_of(connection, plain_name, schema or None, where)
    places = match_columns(definition, [str(c["name"]) for c in found], name)
    chosen = [str(found[p]["name"]) for p in places]
    safe = comparable_columns([found[p] for p in places], definition.schema.dtypes)
    source = table(quoted_name(plain_name, quote=True), schema=schema or None)
    wanted: list[Any] = [column(quoted_name(name, quote=True)) for name in chosen]
    query: Select[Any] = select(*wanted).select_from(source)
    clauses = [pushed(condition, safe) for condition in conditions]
    query = query.where(*(clause for clause in clauses if clause is not None))
    streaming = connection.execution_options(yield_per=BATCH_ROWS)
    row = 1
    with streaming.execute(query) as result:
        for rows in result.partitions():
            yield batch_of_values(definition, rows, row, f"table {definition.name}: {name}")
            row += len(rows)


def comparable_columns(
    found: Sequence[ReflectedColumn], dtypes: Sequence[DataType]
) -> dict[int, ColumnElement[Any]]:
    """Return by position the columns that a database compares as we do; see `compares_alike`."""
    return {
        # As large as our whole numbers: a constant may be larger than the column's type.
        position: column(
            quoted_name(str(c["name"]), quote=True),
            BigInteger() if dtype == DataType.INTEGER else c["type"],
        )
        for position, (c, dtype) in enumerate(zip(found, dtypes, strict=True))
        if compares_alike(c, dtype)
    }


def compares_alike(found: ReflectedColumn, dtype: DataType) -> bool:
    """Whether a column holds just what is read of it: whole numbers, or text without padding.

    A database may call more texts equal than we do, but no fewer.
    """
    kind = found["type"]
    if dtype == DataType.INTEGER:
        return isinstance(kind, sqltypes.Integer)
    if dtype == DataType.TEXT:
        return isinstance(kind, sqltypes.String) and not isinstance(
            kind, sqltypes.CHAR | sqltypes.NCHAR | sqltypes.Enum
        )
    return False


def prepare_session(connection: Connection) -> None:
    """Have times written as the driver reads them, whatever server, user or database prefer."""
    if connection.dialect.name == "postgresql":
        chosen = (("datestyle", "ISO"), ("intervalstyle", "postgres"), ("timezone", "UTC"))
        connection.execute(select(*(func.set_config(name, value, True) for name, value in chosen)))


def columns_of(
    connection: Connection, name: str, schema: str | None, where: str
) -> list[ReflectedColumn]:
    """Return the columns of a table or view, with their types there.

    Args:
        connection: To the database.
        name: Of the table or view.
        schema: It is in; None for those that need no name.
        where: The database, for errors.

    Raises:
        TableMissingError: There is none.
    """
    inspector = inspect(connection)
    try:
        return inspector.get_columns(name, schema)
    except NoSuchTableError:
        known = sorted(inspector.get_table_names(schema) + inspector.get_view_names(schema))
        shown = ", ".join(known[:_SHOWN]) or "none"
        raise TableMissingError(
            f"{where} has no table or view {name!r:.80}", hint=f"it has {shown}"
        ) from None


def shown(url: URL) -> str:
    """Return an address for messages: what follows a question mark may be a password, too."""
    if url.get_backend_name() == "sqlite":
        return sqlite_file(url).name
    return url.set(query={}).render_as_string(hide_password=True)


def connect_arguments(url: URL) -> dict[str, object]:
    """Return what a database's driver is told on connecting."""
    match url.get_backend_name():
        case "sqlite":
            return {"timeout": _CONNECT_SECONDS}
        case "postgresql":
            return {"connect_timeout": _CONNECT_SECONDS, "application_name": "pando"}
        case _:
            return {}
