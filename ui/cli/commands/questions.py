"""Commands that ask questions about rows."""

from typing import Annotated, Any

import typer

from ui.cli.client import QUESTION_SECONDS
from ui.cli.commands.console_command import LISTS, Address, ListFormat, connected
from ui.cli.printing import check_format, print_json


def query_why(  # noqa: PLR0913, PLR0917  (the command line contract)
    query: Annotated[str, typer.Argument(help="Id or name of a running query")],
    values: Annotated[list[str], typer.Argument(help="The row: one value per column, or NULL")],
    limit: Annotated[int, typer.Option(min=1, help="Max combinations to show")] = 10,
    confidence: Annotated[
        str, typer.Option(help="Column with probabilities of base rows, e.g. link.pdr")
    ] = "",
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Show the base rows from which a row of a running query is derived.

    Examples:
      pando query why q3 a d
      pando query why q3 a d --confidence link.pdr --format json
    """
    with connected(console) as client:
        check_format(form, LISTS)
        body = {"row": list(map(value_of, values)), "limit": limit, "confidence": confidence}
        path = f"/api/queries/{query}/why"
        print_answer(client.post(path, body, seconds=QUESTION_SECONDS), form)


def query_confidence(
    query: Annotated[str, typer.Argument(help="Id or name of a running query")],
    column: Annotated[
        str, typer.Argument(help="Column with probabilities of base rows, e.g. link.pdr")
    ],
    limit: Annotated[int | None, typer.Option(min=1, help="Max rows to show")] = None,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Show the probability of the rows of a running query.

    Example:
      pando query confidence q3 link.pdr --limit 20
    """
    with connected(console) as client:
        check_format(form, LISTS)
        body = {"column": column, "limit": limit}
        path = f"/api/queries/{query}/confidence"
        print_answer(client.post(path, body, seconds=QUESTION_SECONDS), form)


def query_what_if(  # noqa: PLR0913, PLR0917  (the command line contract)
    source: Annotated[str, typer.Argument(help="A source or table")] = "",
    values: Annotated[
        list[str] | None,
        typer.Argument(help="Values of its key, or of its first columns; NULL: any value"),
    ] = None,
    gateway: Annotated[
        list[str] | None,
        typer.Option(help="Base rows of this gateway; repeatable"),
    ] = None,
    node: Annotated[list[str] | None, typer.Option(help="Links of this node; repeatable")] = None,
    query: Annotated[
        str | None, typer.Option(help="Ask about this query; default: all queries")
    ] = None,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Show which rows would disappear and appear if base rows were deleted; nothing changes.

    Examples:
      pando query what-if link a b
      pando query what-if link a b --query q3
      pando query what-if --gateway gw-2
      pando query what-if --node n17
    """
    with connected(console) as client:
        check_format(form, LISTS)
        rows = {"source": source, "values": list(map(value_of, values or ()))}
        body = {
            "delete": [rows] if source else [],
            "gateways": gateway or [],
            "nodes": node or [],
            "query": query,
        }
        print_answer(client.post("/api/what-if", body, seconds=QUESTION_SECONDS), form)


def value_of(text: str) -> str | None:
    """Return a value as typed on the command line; the word NULL stands for no value.

    Examples:
        >>> value_of("a"), value_of("NULL")
        ('a', None)
    """
    return None if text == "NULL" else text


def print_answer(answer: dict[str, Any], form: str) -> None:
    """Print an answer: its text as a table, or its data as JSON."""
    if form == "json":
        print_json(answer["data"])
    else:
        typer.echo(answer["text"])
