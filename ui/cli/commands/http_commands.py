"""Commands over HTTP; `deploy.cli.main` adds the local ones to the same `app`."""

import sys
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import quote

import typer

from streamsql.errors import DeploymentError, FederationError, QueryError, Span
from ui.cli.client import ConsoleClient
from ui.cli.commands import questions
from ui.cli.commands.console_command import LISTS, Address, Format, ListFormat, connected
from ui.cli.commands.past_command import make_past
from ui.cli.commands.run_command import Until, follow, run_query, seconds_of
from ui.cli.commands.site_settings_commands import (
    QueueRows,
    ReportSeconds,
    Scheduler,
    ShareSynopses,
    Slice,
    changes_of,
    show_or_change,
)
from ui.cli.commands.source_commands import add_commands
from ui.cli.printing import check_format, clock_words, print_json, print_list, short_time
from ui.cli.source_list import print_sources

app = typer.Typer(
    help="Pando: sensor federation. Start with: pando up",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
query_app = typer.Typer(help="Run, list, follow and stop continuous queries", no_args_is_help=True)
gateway_app = typer.Typer(help="Gateways, base sites and the static engine", no_args_is_help=True)
app.add_typer(query_app, name="query")
app.add_typer(gateway_app, name="gateway")
site_app = typer.Typer(help="Settings of engine sites", no_args_is_help=True)
app.add_typer(site_app, name="site")

QueryName = Annotated[str, typer.Argument(metavar="QUERY", help="Id or name of a running query")]
ExplainedAs = Annotated[str, typer.Option("--format", help="text, json or dot")]
SiteName = Annotated[str, typer.Argument(metavar="SITE", help="Id from `pando gateway list`")]
EXPLAIN_TYPES = ("federated", "alternatives", "logical", "validate")


@query_app.command("run")
def query_run(  # noqa: PLR0913, PLR0917  (the command line contract)
    sql: Annotated[str, typer.Argument(help="The query")],
    seconds: Annotated[str | None, typer.Option("--for", help="Stop after, e.g. 5s")] = None,
    until_settled: Annotated[
        bool, typer.Option("--until-settled", help="Stop when every site has answered")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Stop after this number of changes")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the query")] = "",
    form: Format = "table",
    console: Address = None,
) -> None:
    """Run a query and print its changes.

    Examples:
      pando query run "SELECT mid, weightLevel FROM SeatSensor WHERE weightLevel > 5.0"
      pando query run "SELECT * FROM reachable" --until-settled --format json
    """
    with connected(console) as client:
        duration = seconds_of(seconds) if seconds is not None else None
        until = Until(duration, limit, until_settled)
        run_query(client, sql, name, until, check_format(form))


@query_app.command("list")
def query_list(
    words: Annotated[
        str, typer.Option(help="Only those with all these words in id, name or text")
    ] = "",
    most: Annotated[int | None, typer.Option(min=1, help="Only so many, the newest")] = None,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """List running queries, newest last.

    Examples:
      pando query list

      pando query list --words "SeatSensor mid" --most 20
    """
    with connected(console) as client:
        asked = {"words": words, "most": "" if most is None else str(most)}
        given = {name: value for name, value in asked.items() if value}
        queries = client.get("/api/queries", **given)
        if check_format(form, LISTS) == "table":
            queries = [{**query, "text": " ".join(query["text"].split())} for query in queries]
        print_list(queries, ("id", "name", "status", "rows", "changes", "text"), form)


@query_app.command("show")
def query_show(query: QueryName, form: ListFormat = "table", console: Address = None) -> None:
    """Show a query and its current rows."""
    with connected(console) as client:
        check_format(form, LISTS)
        shown = client.get(f"/api/queries/{query}/rows")
        if form == "json":
            print_json(shown)
            return
        _print_facts({**shown["query"], "columns": _columns_text(shown["query"])})
        columns = [column["name"] for column in shown["query"]["columns"]]
        print_list(shown["rows"], columns, form)


@query_app.command("tail")
def query_tail(
    query: QueryName,
    seconds: Annotated[str | None, typer.Option("--for", help="Stop after, e.g. 5s")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Stop after this number of changes")
    ] = None,
    form: Format = "table",
    console: Address = None,
) -> None:
    """Follow a running query's changes; the query continues afterwards."""
    with connected(console) as client:
        duration = seconds_of(seconds) if seconds is not None else None
        follow(client, client.get(f"/api/queries/{query}"), Until(duration, limit), form)


@query_app.command("stop")
def query_stop(query: QueryName, form: ListFormat = "table", console: Address = None) -> None:
    """Stop a query."""
    with connected(console) as client:
        stopped = client.delete(f"/api/queries/{query}")
        if check_format(form, LISTS) == "json":
            print_json(stopped)
        else:
            typer.echo(f"query {stopped['id']} stopped")


@query_app.command("explain")
def query_explain(query: QueryName, form: ExplainedAs = "text", console: Address = None) -> None:
    """Show the fragments of a running query, and the plans that were not taken."""
    with connected(console) as client:
        wanted = check_format(form, ("text", "json", "dot"))
        asked = "dot" if wanted == "dot" else "text"
        shown = client.get(f"/api/queries/{query}/explain", format=asked)
        print_json(shown["data"]) if wanted == "json" else typer.echo(shown["text"])


query_app.command("why")(questions.query_why)
query_app.command("confidence")(questions.query_confidence)
query_app.command("what-if")(questions.query_what_if)


@app.command()
def explain(
    sql: Annotated[str, typer.Argument(help="The query")],
    kind: Annotated[
        str, typer.Option("--type", help="federated, alternatives, logical or validate")
    ] = "federated",
    form: ExplainedAs = "text",
    console: Address = None,
) -> None:
    """Show how a query would be cut into fragments, and why.

    Example:
      pando explain "SELECT * FROM reachable" --type federated
    """
    with connected(console) as client:
        check_format(form, ("text", "json", "dot"))
        result = _explained(client, sql, kind, form)
        for warning in result["warnings"]:
            sys.stderr.write(f"warning: {warning}\n")
        if form == "json" and result["data"] is not None:
            print_json(result["data"])
        else:
            typer.echo(result["text"])


@gateway_app.command("list")
def gateway_list(form: ListFormat = "table", console: Address = None) -> None:
    """List all sites: gateways, base sites, static engine."""
    with connected(console) as client:
        sites = client.get("/api/sites")
        if check_format(form, LISTS) == "table":
            sites = [
                {
                    **site,
                    "since": short_time(site["since"]),
                    "clock": clock_words(site["clock_offset_ms"], site["last_known"]),
                }
                for site in sites
            ]
        columns = ("site", "role", "freshness", "since", "clock", "detail")
        print_list(sites, columns, form)


DECLARED_COLUMNS = ("source", "version", "endpoint", "rows", "bad", "problem", "last_bad")


@gateway_app.command("show")
def gateway_show(gateway: SiteName, form: ListFormat = "table", console: Address = None) -> None:
    """Show one site: state, buffer, connectors."""
    with connected(console) as client:
        found = next((s for s in client.get("/api/sites") if s["site"] == gateway), None)
        if found is None:
            raise FederationError(f"there is no site {gateway!r}", hint="pando gateway list")
        if check_format(form, LISTS) == "json":
            print_json(found)
            return
        lists = ("connectors", "declared", "endpoints")
        _print_facts({k: v for k, v in found.items() if k not in lists})
        columns = ("kind", "streams", "readings", "errors", "last_error", "note")
        print_list(found["connectors"], columns, form)
        print_list(found["declared"], DECLARED_COLUMNS, form)


@gateway_app.command("remove")
def gateway_remove(gateway: SiteName, form: ListFormat = "table", console: Address = None) -> None:
    """Remove a gateway permanently: queries are planned without it.

    If it starts again, it is a new gateway.
    """
    with connected(console) as client:
        removed = client.delete(f"/api/sites/{quote(gateway, safe='')}")
        if check_format(form, LISTS) == "json":
            print_json(removed)
        else:
            typer.echo(f"gateway {removed['site']} removed")


@site_app.command("settings")
def site_settings(  # noqa: PLR0913, PLR0917  (one option a setting)
    site: SiteName,
    scheduler: Scheduler = None,
    slice_ms: Slice = None,
    queue_rows: QueueRows = None,
    share_synopses: ShareSynopses = None,
    report_seconds: ReportSeconds = None,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Show the settings of a gateway or base site, or change some while it runs.

    Examples:
      pando site settings gw-1

      pando site settings gw-1 --scheduler chain --slice-ms 5
    """
    with connected(console) as client:
        check_format(form, LISTS)
        changes = changes_of(scheduler, slice_ms, queue_rows, share_synopses, report_seconds)
        show_or_change(client, site, changes, form)


def _definitions(kind: str, show: Callable[[ConsoleClient, str], None]) -> typer.Typer:
    commands = typer.Typer(help=f"List and describe {kind}s", no_args_is_help=True)

    @commands.command("list", help=f"List all {kind}s.")
    def list_all(form: ListFormat = "table", console: Address = None) -> None:
        """List the definitions of one kind."""
        with connected(console) as client:
            show(client, check_format(form, LISTS))

    @commands.command("describe")
    def describe(
        name: Annotated[str, typer.Argument(help="Its name, as listed by `list`")],
        form: ListFormat = "table",
        console: Address = None,
    ) -> None:
        """Show its columns and the statement that created it."""
        with connected(console) as client:
            found = client.get(f"/api/definitions/{name}")
            if check_format(form, LISTS) == "json":
                print_json(found)
                return
            has_units = any("unit" in column for column in found["columns"])
            shown = ("name", "type", "unit") if has_units else ("name", "type")
            print_list(found["columns"], shown, form)
            typer.echo(found["text"])

    return commands


def _listed_with_columns(kind: str) -> Callable[[ConsoleClient, str], None]:
    def show(client: ConsoleClient, form: str) -> None:
        found = client.get("/api/definitions", kind=kind)
        if form != "json":
            found = [{**d, "columns": _columns_text(d)} for d in found]
        print_list(found, ("name", "columns"), form)

    return show


source_app = _definitions("source", print_sources)
add_commands(source_app)
app.add_typer(source_app, name="source")
table_app = _definitions("table", _listed_with_columns("table"))
app.add_typer(table_app, name="table")
app.add_typer(_definitions("view", _listed_with_columns("view")), name="view")


@app.command()
def simulate(  # noqa: PLR0913, PLR0917  (the command line contract)
    action: Annotated[str, typer.Argument(help="sit, leave, lights_on, lights_off, heat or past")],
    target: Annotated[
        str, typer.Argument(help="Machine (sit, leave) or room (lights, heat)", show_default=False)
    ] = "",
    celsius: Annotated[float, typer.Option(help="Degrees to add (heat only)")] = 10.0,
    days: Annotated[int, typer.Option(help="How many days of the past")] = 30,
    every: Annotated[str, typer.Option(help="Of the past: time between a sensor's readings")] = (
        "10 min"
    ),
    until: Annotated[str, typer.Option(help="End of the past; default: the last full hour")] = "",
    console: Address = None,
) -> None:
    """Control the simulated people and rooms, or give the building a past.

    The past goes through broker, lander and pipeline into the lake, much faster than it would have
    passed. An hour that is there already counts once.

    Examples:
      pando simulate sit lab101-03

      pando simulate heat L101 --celsius 12

      pando simulate past --days 30
    """
    with connected(console) as client:
        if action == "past":
            make_past(client, days, every, until)
            return
        body = {"action": action, "target": target, "celsius": celsius}
        typer.echo(client.post("/api/simulate", body)["message"])


def _explained(client: ConsoleClient, sql: str, kind: str, form: str) -> dict[str, Any]:
    """Return what EXPLAIN says of one statement.

    Raises:
        FederationError: The type is unknown, or the statement is wrong (errors name its own lines),
            or it is more than one, of which the later ones would be carried out.
    """
    if kind not in EXPLAIN_TYPES:
        raise DeploymentError(f"--type {kind!r}?", hint=f"use {', '.join(EXPLAIN_TYPES)}")
    from streamsql.syntax.parse import parse_statement  # noqa: PLC0415  (keeps `pando --help` quick)

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


def _columns_text(definition: dict[str, Any]) -> str:
    return ", ".join(map(_column_text, definition["columns"]))


def _column_text(column: dict[str, Any]) -> str:
    """Return a column as CREATE SOURCE has it."""
    unit = f" UNIT '{column['unit']}'" if column.get("unit") else ""
    return f"{column['name']} {column['type']}".strip() + unit


def _print_facts(facts: dict[str, Any]) -> None:
    rows = [{"": name, "value": value} for name, value in facts.items() if value not in (None, "")]
    print_list(rows, ("", "value"), "table")
