"""What a script had done when one of its statements failed, and how to take it back."""

import re

from streamsql.syntax.statements import (
    AlterSite,
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSource,
    CreateView,
    Delete,
    Drop,
    Insert,
    Name,
    Refresh,
    Statement,
)

MOST_TOLD = 20
"""Of a long script the newest statements are told, and how many more there are."""


def deed(statement: Statement, message: str, query: str | None = None) -> str:
    """Return what a statement has changed and how to undo it; empty if it only asked.

    Args:
        statement: It has been carried out.
        message: What it answered.
        query: Id of the query that it started and that goes on.
    """
    if query is not None:
        told = f"query {query} runs; DROP QUERY {query} stops it"
    elif isinstance(statement, CreateSource | CreateView | CreateDisplay | CreateAlarm):
        kind = "view" if isinstance(statement, CreateView) else _kind(statement)
        told = f"{message}; DROP {kind.upper()} {_written(statement.name)} removes it"
    elif isinstance(statement, CreateFunction):
        kind = "AGGREGATE" if statement.aggregate else "FUNCTION"
        told = f"{message}; DROP {kind} {_written(statement.name)} removes it"
    elif isinstance(statement, AlterSite):
        told = f"settings of site {statement.site.text} changed"
    elif isinstance(statement, Drop | Insert | Delete | Refresh):
        told = message
    else:
        return ""
    return f"line {statement.span.line}: {told}"


def _written(name: Name) -> str:
    if re.fullmatch("[a-z_][a-z0-9_]*", name.text):
        return name.text
    escaped = name.text.replace('"', '""')
    return f'"{escaped}"'


def _kind(statement: CreateSource | CreateDisplay | CreateAlarm) -> str:
    if isinstance(statement, CreateSource):
        return "table" if statement.kind == "table" else "source"
    return "display" if isinstance(statement, CreateDisplay) else "alarm"


def newest(deeds: list[str]) -> tuple[str, ...]:
    """Return what has been done, oldest first; of very much the newest.

    Examples:
        >>> newest(["line 1: source s created; DROP SOURCE s removes it", ""])
        ('line 1: source s created; DROP SOURCE s removes it',)
    """
    told = [one for one in deeds if one]
    left_out = len(told) - MOST_TOLD
    if left_out <= 0:
        return tuple(told)
    return (f"{left_out} earlier statements omitted", *told[-MOST_TOLD:])
