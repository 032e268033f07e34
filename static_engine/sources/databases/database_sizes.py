"""Estimates of how many rows tables of databases have, without counting them."""

from contextlib import suppress

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from static_engine.sources.databases.database_reader import connect_arguments
from static_engine.sources.time_limit import TimeLimit

_SECONDS = 10.0
_BYTES_PER_ROW = 60
"""Of a PostgreSQL table that was never analyzed: what is in a row, and 36 bytes around it."""

_POSTGRESQL = text(
    "SELECT reltuples, pg_relation_size(oid) FROM pg_class "
    "WHERE oid = to_regclass(:name) AND relkind IN ('r', 'm', 'p')"
)


def estimated_rows(url: URL, name: str) -> int | None:
    """Return about how many rows a table has; None if the database does not say.

    Args:
        url: The database.
        name: Of the table there, `table` or `schema.table`.
    """
    limit = TimeLimit(_SECONDS)
    with suppress(SQLAlchemyError, ImportError):
        engine = create_engine(url, poolclass=NullPool, connect_args=connect_arguments(url))
        limit.watch(engine)
        with engine.connect() as connection:
            quote = engine.dialect.identifier_preparer.quote_identifier
            schema, _, plain = name.rpartition(".")
            full = f"{quote(schema)}.{quote(plain)}" if schema else quote(plain)
            if engine.dialect.name == "postgresql":
                return _of_postgresql(connection, full)
            if engine.dialect.name == "sqlite":
                # At least as many rows were there once, and the last one is found at once.
                found = connection.execute(text(f"SELECT max(rowid) FROM {full}")).scalar()  # noqa: S608
                return max(int(found or 0), 0)
    return None


def _of_postgresql(connection: Connection, name: str) -> int | None:
    found = connection.execute(_POSTGRESQL, {"name": name}).first()
    if found is None:
        return None
    rows, size = int(found[0]), int(found[1])
    return rows if rows > 0 else size // _BYTES_PER_ROW
