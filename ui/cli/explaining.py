"""Ask for a statement's plan without running anything."""

from typing import Any

from streamsql.errors import DeploymentError, QueryError, Span
from streamsql.syntax.parse import parse_statement
from ui.cli.client import ConsoleClient

TYPES = ("federated", "logical", "validate")


def explained(client: ConsoleClient, sql: str, kind: str, form: str) -> dict[str, Any]:
    """Return what EXPLAIN says of one statement.

    Raises:
        FederationError: The type is unknown, or the statement is wrong (errors name its own lines),
            or it is more than one, of which the later ones would be carried out.
    """
    if kind not in TYPES:
        raise DeploymentError(f"--type {kind!r}?", hint=f"use {', '.join(TYPES)}")
    parse_statement(sql)
    text = f"EXPLAIN (TYPE {kind}, FORMAT {form})\n{sql}"
    try:
        result: dict[str, Any] = client.post("/api/statements", {"text": text})[0]
    except QueryError as error:
        if error.span is None:
            raise
        # What stands before the statement was not typed here: an error there has no place.
        line = error.span.line - 1
        place = Span(line, error.span.column, error.span.text) if line else None
        raise type(error)(error.message, span=place, hint=error.hint, code=error.code) from error
    return result
