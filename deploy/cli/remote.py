"""`pando run` and `pando shell` against the federation that is up."""

import contextlib
import csv
import sys
import time
from typing import Any, TypeGuard

import typer

from deploy.cli.line_editor import converse
from streamsql.errors import DeploymentError, FederationError
from streamsql.script_progress import newest, undo_hint
from streamsql.syntax import ExplainConfidence, ExplainWhatIf, ExplainWhy, parse_script
from streamsql.syntax.statement_parsers.run_statements import RunOnHistory
from streamsql.syntax.statements import Query, Statement, Subscribe
from ui.cli.client import QUESTION_SECONDS, SECONDS, ConsoleClient
from ui.cli.commands.history_commands import follow_trial
from ui.cli.commands.run_command import Until, run_query
from ui.cli.federations import console_address
from ui.cli.printing import print_json, print_list

SETTLE_SECONDS = 120.0
POLL_SECONDS = 0.15


def run_script(text: str, form: str, address: str | None = None) -> None:
    """Run a script on the federation.

    A SELECT prints its settled answer and ends; a SUBSCRIBE starts a continuous query.

    Args:
        text: The script.
        form: table, json or csv.
        address: The console's; else the one that is found.

    Raises:
        FederationError: A statement is wrong, or there is no console.
    """
    statements = parse_script(text)
    hints: list[str] = []
    with contextlib.closing(ConsoleClient(console_address(address))) as client:
        for statement in statements:
            try:
                hints.append(_run_statement(client, statement, form))
            except FederationError as error:
                error.carried_out = newest(hints)
                raise


def _run_statement(client: ConsoleClient, statement: Statement, form: str) -> str:
    """Run and print one statement; return what stays of it, if anything."""
    if _is_read_here(statement):
        _print_settled(client, statement, form)
        return ""
    if isinstance(statement, RunOnHistory):
        _follow_history(client, statement, form)
        return ""
    is_question = isinstance(statement, ExplainWhy | ExplainWhatIf | ExplainConfidence)
    seconds = QUESTION_SECONDS if is_question else SECONDS
    (result,) = client.post("/api/statements", {"text": in_place(statement)}, seconds=seconds)
    print_statement(result, form)
    query = result["query"]["id"] if result["kind"] == "query" else None
    return undo_hint(statement, result["message"], query)


def _follow_history(client: ConsoleClient, statement: RunOnHistory, form: str) -> None:
    """Begin a trial on the past and print what it gives; it ends with this command."""
    (result,) = client.post(
        "/api/statements", {"text": in_place(statement)}, seconds=QUESTION_SECONDS
    )
    for warning in result["warnings"]:
        typer.secho(f"warning: {warning}", fg="yellow", err=True)
    trial = result["data"]["trial"]
    try:
        follow_trial(client, trial, form)
    except KeyboardInterrupt:
        client.delete(f"/api/history/trials/{trial}")
        raise


def in_place(statement: Statement) -> str:
    """Return a statement's text moved to its line and column, so that errors name the script's."""
    span = statement.span
    return "\n" * (span.line - 1) + " " * (span.column - 1) + statement.text


def _is_read_here(statement: Statement) -> TypeGuard[Query]:
    """Whether a statement is a query whose only reader is this command: no display shows it."""
    return isinstance(statement, Query) and statement.display is None


def _print_settled(client: ConsoleClient, statement: Query, form: str) -> None:
    body = {"text": in_place(statement), "origin": "session"}
    for result in client.post("/api/statements", body):
        query = result["query"]["id"]
        try:
            rows = _settled_rows(client, query)
        finally:
            with contextlib.suppress(FederationError):  # it may have ended by itself
                client.delete(f"/api/queries/{query}")
        columns = [column["name"] for column in result["query"]["columns"]]
        values = [[row[name] for name in columns] for row in rows]
        print_statement({**result, "kind": "rows", "columns": columns, "rows": values}, form)


def _settled_rows(client: ConsoleClient, query: str) -> list[dict[str, Any]]:
    """Return a query's rows once every site has answered.

    Raises:
        DeploymentError: It fails, or does not settle in two minutes.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    settled = 0
    while settled < 2:
        time.sleep(POLL_SECONDS)
        shown = client.get(f"/api/queries/{query}")
        if shown["status"] == "failed":
            raise DeploymentError(f"the query failed: {shown['error']}")
        settled = settled + 1 if shown["settled"] else 0
        if time.monotonic() > deadline:
            waits = ", ".join(shown["waiting_for"]) or "sites that never stop sending"
            raise DeploymentError(
                f"no settled answer within {SETTLE_SECONDS:.0f} s; it waits for {waits}",
                hint="pando gateway list shows the sites",
            )
    rows: list[dict[str, Any]] = client.get(f"/api/queries/{query}/rows")["rows"]
    return rows


def shell(address: str | None = None) -> None:
    """Read statements and run them; a query prints its changes until Ctrl-C.

    Raises:
        FederationError: There is no console.
    """
    with contextlib.closing(ConsoleClient(console_address(address))) as client:
        client.get("/api/health")

        def suggest(text: str, place: int) -> list[str]:
            found = client.post("/api/complete", {"text": text, "offset": place})
            return [each["label"] for each in found]

        def greet() -> None:
            typer.echo(f"Connected to {client.address}. Statements end with ';'.")
            typer.echo("A query prints its changes until Ctrl-C. help shows help, \\q quits.")

        converse(suggest, greet, lambda text: _execute(client, text))


def _execute(client: ConsoleClient, text: str) -> None:
    """Follow a single query; run anything else as a script."""
    statements = parse_script(text)
    if len(statements) == 1 and (
        isinstance(statements[0], Subscribe) or _is_read_here(statements[0])
    ):
        # A pipe has nobody who could press Ctrl-C.
        until = Until(settled=not sys.stdin.isatty())
        run_query(client, statements[0].text, "", until, "table")
        return
    if len(statements) == 1 and isinstance(statements[0], RunOnHistory):
        _follow_history(client, statements[0], "table")
        return
    for result in client.post("/api/statements", {"text": text}, seconds=QUESTION_SECONDS):
        print_statement(result, "table")


def print_statement(result: dict[str, Any], form: str) -> None:
    """Print what one statement gave, as the console sends it.

    With json every statement is one line: an array of row objects, the query that was started, the
    plan, or an object with a message. With csv only rows are printed.
    """
    for warning in result["warnings"]:
        typer.secho(f"warning: {warning}", fg="yellow", err=True)
    if form == "json":
        print_json(_json_of(result))
    elif result["kind"] == "rows":
        if form == "csv":
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerows([result["columns"], *result["rows"]])
        else:
            print_list(_objects(result), result["columns"], "table")
    elif form == "table":
        typer.echo(_sentence(result))


def _objects(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]


def _json_of(result: dict[str, Any]) -> Any:
    match result["kind"]:
        case "rows":
            return _objects(result)
        case "query":
            return result["query"]
        case _ if result["data"] is not None:
            return result["data"]
        case _:
            return {"message": result["text"] or result["message"]}


def _sentence(result: dict[str, Any]) -> str:
    if result["kind"] == "query":
        query = result["query"]["id"]
        return f"query {query} runs; follow it with: pando query tail {query}"
    return str(result["text"] or result["message"])
