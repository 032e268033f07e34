"""Read-only queries of a database: one page of rows above a watermark at a time.

Everything here blocks and belongs into a thread of its own, but for `interrupt`.
"""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnClause,
    Connection,
    Engine,
    Select,
    column,
    create_engine,
    event,
    func,
    select,
    table,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.sql.expression import FromClause

from gateway.connectors.sql.row_watermark import Row
from gateway.connectors.sql.sql_options import SqlEndpoint, SqlSource

T = TypeVar("T")

PAGE = 1_000
"""Rows that are read at a time."""


_READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
}
"""What makes a new session read-only; PostgreSQL is told when it is connected to."""


class QueryError(Exception):
    """A query of one source went wrong; the text says how."""


class Database:
    """One connection, opened when it is needed.

    Args:
        endpoint: Address, password, time limit.

    Raises:
        ValueError: The address is none, or its driver is not installed.
    """

    def __init__(self, endpoint: SqlEndpoint) -> None:
        try:
            url = make_url(endpoint.url)
        except (SQLAlchemyError, ValueError):  # their texts hold parts of it
            raise ValueError("url: it is no address of a database") from None
        if endpoint.password:
            url = url.set(password=endpoint.password)
        try:
            self._file = _file(url)
            self._engine = _engine(url, endpoint.timeout)
        except ModuleNotFoundError as error:
            raise ValueError(f"its driver {error.name} is not installed here") from None
        except SQLAlchemyError as error:
            raise ValueError(f"url: {_words(error)}") from None
        self._connection: Any = None

    def page(
        self, source: SqlSource, names: tuple[str, ...], above: object, limit: int
    ) -> list[Row]:
        """Return rows in the order of the watermark, which is put behind their values.

        Args:
            source: Its table or query, and its watermark.
            names: Of the columns to read.
            above: Rows from this watermark on, itself included; None: all.
            limit: How many at most.

        Raises:
            ConnectionError: The database cannot be reached.
            QueryError: It does not take the query.
        """
        mark: ColumnClause[Any] = column(source.watermark)
        columns: list[ColumnClause[Any]] = [*(column(name) for name in names), mark]
        wanted = mark.is_not(None) if above is None else mark >= above
        found = select(*columns).select_from(_relation(source)).where(wanted)
        return [tuple(row) for row in self._rows(found.order_by(mark).limit(limit))]

    def greatest(self, source: SqlSource) -> object:
        """Return the greatest watermark of all rows, or None; raises as `page` does."""
        mark: ColumnClause[Any] = column(source.watermark)
        return self._rows(select(func.max(mark)).select_from(_relation(source)))[0][0]

    def interrupt(self) -> None:
        """End the query that runs, if one does; from any thread."""
        connection = self._connection
        end = getattr(connection, "interrupt", None) or getattr(connection, "cancel", None)
        if end is not None:
            with contextlib.suppress(Exception):  # whatever a driver raises: it has ended
                end()

    def close(self) -> None:
        """Close the connection."""
        self._engine.dispose()

    def asked(self, ask: Callable[[Connection], T]) -> T:
        """Return what a question to the database gives; raises as `page` does."""
        if self._file is not None and not self._file.is_file():
            raise ConnectionError(f"there is no file {self._file}")
        try:
            connection = self._engine.connect()
        except SQLAlchemyError as error:
            raise ConnectionError(f"no connection: {_words(error)}") from None
        # Its end is a rollback: no transaction stays open until the next poll.
        with connection:
            self._connection = connection.connection.dbapi_connection
            try:
                return ask(connection)
            except DBAPIError as error:
                if error.connection_invalidated:
                    raise ConnectionError(f"connection lost: {_words(error)}") from None
                raise QueryError(_words(error)) from None
            except (SQLAlchemyError, ValueError, OverflowError) as error:
                raise QueryError(_words(error)) from None
            finally:
                self._connection = None

    def _rows(self, statement: Select[*tuple[Any, ...]]) -> list[Any]:
        return self.asked(lambda connection: list(connection.execute(statement)))


def _engine(url: URL, seconds: float) -> Engine:
    """Return the engine of a database, which it only reads."""
    arguments: Mapping[str, object] = {}
    if url.get_backend_name() == "postgresql":
        milliseconds = int(seconds * 1_000)
        arguments = {
            "connect_timeout": max(int(seconds), 1),
            "options": f"-c statement_timeout={milliseconds} -c default_transaction_read_only=on",
        }
    engine = create_engine(
        url, pool_size=1, max_overflow=0, pool_pre_ping=True, connect_args=dict(arguments)
    )
    statement = _READ_ONLY.get(url.get_backend_name())
    if statement is not None:
        event.listen(engine, "connect", partial(_begin_read_only, statement))
    return engine


def _begin_read_only(statement: str, connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute(statement)
    cursor.close()


def _file(url: URL) -> Path | None:
    """Return the file of a SQLite database: opening it would make an empty one."""
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return Path(url.database)


def _relation(source: SqlSource) -> FromClause:
    if source.query:
        # A colon is the query's own, in a text or a cast, and begins no parameter of ours.
        query = source.query.rstrip("; \n").replace(":", "\\:")
        return text(query).columns().subquery("pando_source")
    schema, _, name = source.table.rpartition(".")
    return table(name, schema=schema or None)


def _words(error: Exception) -> str:
    reason = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    return " ".join(reason.split("\n[SQL:", maxsplit=1)[0].split())[:300]
