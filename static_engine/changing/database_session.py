"""One transaction in a database that is changed: done, not done, or honestly not known."""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from static_engine.changing.change_checks import failed
from static_engine.sources.databases.database_reader import prepare_session
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import sqlite_file
from static_engine.sources.time_limit import TimeLimit

CONNECT_SECONDS = 5
LOCK_SECONDS = 5
CHANGE_SECONDS = 12
"""All tries together: with `_ASK_SECONDS` no more than the coordinator waits for an answer
(`coordinator.tables.table_change_requests`)."""
_TRIES = 3
_ASK_SECONDS = 8.0
_ASK_PAUSE = 0.5

T = TypeVar("T")
_LOST = ("08", "57P", "40003", "XX", "58")
"""SQLSTATEs after which a COMMIT may have been done or not: connection, shutdown, defects."""
_AGAIN = ("40001", "40P01")
"""Somebody else changed the same rows, or waits for us as we for them."""
_HINTS = (
    (("42501",), "GRANT SELECT, INSERT, UPDATE, DELETE on the table to the user of the address"),
    (("25006", "SQLITE_READONLY"), "make it writable, or change it in the database"),
    (("SQLITE_CANTOPEN",), "make the file and its folder writable for the static engine's user"),
    (("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"), "another session is changing it; retry"),
    (("57014",), "it took too long: change fewer rows at a time, or change it in the database"),
    (_AGAIN, "another session is changing the same rows; retry"),
    (("53", "SQLITE_FULL"), "check the free space of the database"),
    (("22", "42804"), "write a value that the database column can hold"),
    (("428C9",), "omit that column: the database fills it"),
    (("28",), "check the user and the password in the address"),
)


def in_transaction(url: URL, where: str, work: Callable[[Connection], T]) -> T:
    """Do some work in one transaction, commit it, and return what the work returns.

    PostgreSQL knows the outcome of a transaction by its number. It is asked when the connection is
    lost before the COMMIT was confirmed.

    Args:
        url: The database, `sqlite` or `postgresql`.
        where: It and the table, for errors.
        work: Repeated if another session changed the same rows at the same time.

    Raises:
        TableError: It failed, and nothing has changed; only with code `no_answer` that is not
            known.
    """
    limit = TimeLimit(CHANGE_SECONDS)
    try:
        engine = _engine(url, where)
        limit.watch(engine)
    except (NoSuchModuleError, ImportError) as error:
        raise failed(f"{where}: no driver for {url.drivername}", str(error)) from error
    for attempt in range(1, _TRIES + 1):
        try:
            return _once(engine, where, work, limit)
        except DBAPIError as error:
            if limit.is_over:
                raise _too_slow(where) from error
            if attempt == _TRIES or not is_retried(error):
                raise refusal_of(error, where) from error
        except SQLAlchemyError as error:
            raise failed(f"{where}: {str(error).splitlines()[0]:.300}") from error
        except UnicodeEncodeError as error:
            raise failed(f"{where}: a text cannot be written: {error.reason}") from None
    raise AssertionError("the last try returns or raises")


def _once(engine: Engine, where: str, work: Callable[[Connection], T], limit: TimeLimit) -> T:
    number: int | None = None
    with engine.connect() as connection:
        transaction = connection.begin()
        try:
            prepare_session(connection)
            if engine.dialect.name == "postgresql":
                connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
                connection.execute(text(f"SET LOCAL statement_timeout = '{CHANGE_SECONDS}s'"))
            result = work(connection)
            if engine.dialect.name == "postgresql":
                number = connection.execute(text("SELECT txid_current()")).scalar_one()
            _check_time(limit, where)
        except BaseException:
            _roll_back(transaction)
            raise
        try:
            transaction.commit()
        except DBAPIError as error:
            _roll_back(transaction)
            if is_final(error):
                raise
            limit.give(_ASK_SECONDS)
            _find_out(engine, number, where, error)
    return result


def _check_time(limit: TimeLimit, where: str) -> None:
    """Check that the coordinator cannot have reported the outcome of a change as unknown.

    Raises:
        TableError: It may be so.
    """
    if limit.is_over:
        raise _too_slow(where)


def _too_slow(where: str) -> TableError:
    return failed(
        f"{where} was not finished within {CHANGE_SECONDS} s; nothing has changed",
        "change fewer rows at a time, change them in the database, or check for locks",
    )


def _roll_back(transaction: Any) -> None:
    """End a failed transaction; where the connection is lost, the database does."""
    try:
        transaction.rollback()
    except SQLAlchemyError:
        transaction.connection.invalidate()


def _find_out(engine: Engine, number: int | None, where: str, lost: DBAPIError) -> None:
    """Return if a transaction was committed although its end was not received.

    Raises:
        TableError: It was not, or nobody knows.
    """
    end = time.monotonic() + _ASK_SECONDS
    while number is not None:
        try:
            with engine.connect() as connection:
                asked = text("SELECT txid_status(:number)")
                status = connection.execute(asked, {"number": number}).scalar_one()
        except SQLAlchemyError:
            status = "unreachable"
        if status == "committed":
            return
        if status == "aborted":
            raise failed(
                f"{where} disconnected before it finished; nothing has changed", "try again"
            )
        if status is None or time.monotonic() > end:
            break
        time.sleep(_ASK_PAUSE)
    raise TableError(
        f"{where} disconnected before it confirmed; it is unknown whether the table has changed",
        hint="check with SELECT before you retry",
        code="no_answer",
    ) from lost


def _engine(url: URL, where: str) -> Engine:
    if url.get_backend_name() == "postgresql":
        # Nobody else's change comes between what a statement reads and what it changes.
        return create_engine(
            url,
            poolclass=NullPool,
            isolation_level="REPEATABLE READ",
            connect_args={"connect_timeout": CONNECT_SECONDS, "application_name": "pando"},
        )
    _check_may_write(sqlite_file(url), where)
    writable = url.update_query_dict({"mode": "rw"})
    engine = create_engine(writable, poolclass=NullPool, connect_args={"timeout": LOCK_SECONDS})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # the driver's own BEGIN would come too late
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _check_may_write(file: Path, where: str) -> None:
    """Check that the file of a database may be written.

    The permissions count for the superuser, too: a removed permission is meant.

    Raises:
        TableError: It may not.
    """
    try:
        status = file.stat()
    except OSError as error:
        raise failed(f"{where} cannot be read: {error.strerror or error}") from error
    if not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(
        file, os.W_OK
    ):
        raise failed(f"{where} is read-only", "make it writable for the static engine's user")


def is_retried(error: DBAPIError) -> bool:
    """Whether a transaction failed only because of another one, and is done again."""
    return _state(error) in _AGAIN


def is_final(error: DBAPIError) -> bool:
    """Whether a COMMIT that failed has certainly changed nothing."""
    name = _sqlite_name(error)
    if name:
        return not name.startswith("SQLITE_IOERR")
    state = _state(error)
    return bool(state) and not error.connection_invalidated and not state.startswith(_LOST)


def refusal_of(error: DBAPIError, where: str) -> TableError:
    """Return the error of a change that a database has refused.

    Args:
        error: What it said.
        where: Table and database.
    """
    said = _said(error)
    code = _state(error) or _sqlite_name(error)
    if code in ("23505", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY",
                "SQLITE_CONSTRAINT_ROWID"):  # fmt: skip
        return TableError(
            f"{where}: {said}",
            hint="DELETE the existing row first, or give this row other values",
            code="duplicate_key",
        )
    if code.startswith(("23", "44", "SQLITE_CONSTRAINT")):
        return TableError(
            f"{where}: {said}",
            hint="the database has a constraint on this table; see its definition there",
            code="constraint_violated",
        )
    for prefixes, hint in _HINTS:
        if code.startswith(prefixes):
            return failed(f"{where}: {said}; nothing has changed", hint)
    return failed(f"{where}: {said}; nothing has changed", "retry, or check the database")


def _state(error: DBAPIError) -> str:
    said = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return str(said or "")


def _sqlite_name(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlite_errorname", None) or "")


def _said(error: DBAPIError) -> str:
    lines = [line.strip() for line in str(error.orig or error).strip().splitlines()]
    return "; ".join(line for line in lines[:2] if line)[:400]
