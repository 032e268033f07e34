"""Changes of a script before one of its statements failed, and how to undo them."""

import re

from streamsql.algebra.operators import SourceKind
from streamsql.syntax.statement_parsers.change_statements import Merge, Update
from streamsql.syntax.statement_parsers.grant_statements import AlterUser, Grant, Revoke
from streamsql.syntax.statements import (
    AlterSite,
    AlterSource,
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSink,
    CreateSource,
    CreateView,
    Delete,
    Drop,
    Insert,
    Name,
    Refresh,
    Statement,
)

MAX_REPORTED = 20
"""Statements of a script that are reported; of earlier ones only the number."""


def undo_hint(statement: Statement, message: str, query: str | None = None) -> str:
    """Return what a statement has changed and how to undo it; empty if it changed nothing.

    Args:
        statement: The one that was executed.
        message: Its answer.
        query: Id of the query that it started and that still runs.
    """
    if query is not None:
        change = f"query {query} runs; DROP QUERY {query} stops it"
    else:
        match statement:
            case AlterSource() | CreateSource(replace=True):
                change = message
            case (
                CreateSource()
                | CreateView()
                | CreateFunction()
                | CreateDisplay()
                | CreateAlarm()
                | CreateSink()
            ):
                undo = f"DROP {_kind(statement)} {_written(statement.name)}"
                change = f"{message}; {undo} removes it"
            case AlterSite(site=site):
                change = f"settings of site {site.text} changed"
            case AlterUser(user=user):
                change = f"quotas of {user.text} changed"
            case Drop() | Insert() | Delete() | Refresh() | Grant() | Revoke():
                change = message
            case Update() | Merge():
                change = message
            case _:
                return ""
    return f"line {statement.span.line}: {change}"


def _written(name: Name) -> str:
    if re.fullmatch("[a-z_][a-z0-9_]*", name.text):
        return name.text
    escaped = name.text.replace('"', '""')
    return f'"{escaped}"'


def _kind(
    statement: CreateSource
    | CreateView
    | CreateFunction
    | CreateDisplay
    | CreateAlarm
    | CreateSink,
) -> str:
    match statement:
        case CreateSource(kind=kind):
            return "TABLE" if kind == SourceKind.TABLE else "SOURCE"
        case CreateFunction(aggregate=aggregate):
            return "AGGREGATE" if aggregate else "FUNCTION"
        case _:
            return type(statement).__name__.removeprefix("Create").upper()


def newest(hints: list[str]) -> tuple[str, ...]:
    """Return the hints that are not empty, oldest first; of very many the newest.

    Examples:
        >>> newest(["line 1: source s created; DROP SOURCE s removes it", ""])
        ('line 1: source s created; DROP SOURCE s removes it',)
    """
    changes = [hint for hint in hints if hint]
    left_out = len(changes) - MAX_REPORTED
    if left_out <= 0:
        return tuple(changes)
    return (f"{left_out} earlier statements omitted", *changes[-MAX_REPORTED:])
