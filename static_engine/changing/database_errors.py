"""What a database says when it refuses a change, as an error of ours."""

from sqlalchemy.exc import DBAPIError

from static_engine.changing.refusals import failed
from static_engine.sources.table_errors import TableError

_LOST = ("08", "57P", "40003", "XX", "58")
"""SQLSTATEs after which a COMMIT may have been done or not: connection, shutdown, defects."""
_AGAIN = ("40001", "40P01")
"""Somebody else changed the same rows, or waits for us as we for them."""


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


_HINTS = (
    (("42501",), "GRANT SELECT, INSERT, DELETE on the table to the user of the address"),
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


def _state(error: DBAPIError) -> str:
    said = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return str(said or "")


def _sqlite_name(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlite_errorname", None) or "")


def _said(error: DBAPIError) -> str:
    lines = [line.strip() for line in str(error.orig or error).strip().splitlines()]
    return "; ".join(line for line in lines[:2] if line)[:400]
