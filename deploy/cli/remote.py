"""`pando run` and `pando shell` against the federation that is up."""

import typer

from deploy.cli.local import read_statements
from streamsql.errors import FederationError
from ui.cli.client import ConsoleClient, console_address
from ui.cli.printing import print_list
from ui.cli.running import Until, run_query


def run_script(text: str, form: str) -> None:
    """Run a script on the federation; a query in it starts and goes on.

    Raises:
        FederationError: A statement is wrong, or there is no console.
    """
    client = ConsoleClient(console_address(None))
    for result in client.post("/api/statements", {"text": text}):
        _print_result(result, form)


def shell() -> None:
    """Read statements and run them; a query prints its changes until Ctrl-C."""
    client = ConsoleClient(console_address(None))
    client.get("/api/health")
    typer.echo(f"Connected to {client.address}. Statements end with ';', Ctrl-C ends a query.")
    for text in read_statements():
        try:
            if text.split(None, 1)[0].upper() in ("SELECT", "WITH", "SUBSCRIBE", "ISTREAM"):
                run_query(client, text, "", Until(), "table")
            else:
                run_script(text, "table")
        except KeyboardInterrupt:
            typer.echo("")
        except FederationError as error:
            typer.echo(f"error: {error}", err=True)


def _print_result(result: dict, form: str) -> None:  # type: ignore[type-arg]
    if result["kind"] == "rows":
        rows = [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]
        print_list(rows, result["columns"], "json" if form == "json" else "table")
    elif result["kind"] == "query":
        query = result["query"]
        typer.echo(f"query {query['id']} runs; follow it with: pando query tail {query['id']}")
    else:
        typer.echo(result["text"] or result["message"])
