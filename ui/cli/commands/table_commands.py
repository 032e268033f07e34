"""`pando table`: stored tables, their first rows, and the values of their columns."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from ui.cli.commands.console_command import LISTS, Address, ListFormat, connected
from ui.cli.commands.lake_commands import size_text
from ui.cli.printing import check_format, print_json, print_list, short_time

_LISTED = ("table", "from", "rows", "size", "read", "again")
_FIGURES = ("column", "type", "nulls", "distinct", "least", "greatest", "most")


def table_status(form: ListFormat = "table", console: Address = None) -> None:
    """Show where stored tables are, how large they are, when they were read, and what is wrong.

    Examples:
      pando table status
      pando table status --format json
    """
    with connected(console) as client:
        found = client.get("/api/tables")
        if check_format(form, LISTS) == "json":
            print_json(found)
            return
        if not found["tables"]:
            typer.echo("there is no stored table; CREATE TABLE makes one")
            return
        print_list([_row(table) for table in found["tables"]], _LISTED, form)
        for table in found["tables"]:
            if table["problem"]:
                typer.echo(f"{table['name']}: {table['problem']}")


def table_show(
    name: Annotated[str, typer.Argument(help="Of the table")],
    rows: Annotated[int, typer.Option(help="How many rows, up to 200")] = 10,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Show the columns of a table with their values, and its first rows.

    Examples:
      pando table show machines
      pando table show machines --rows 50
    """
    with connected(console) as client:
        found = client.get(f"/api/tables/{quote(name, safe='')}/sample", rows=str(rows))
        if check_format(form, LISTS) == "json":
            print_json(found)
            return
        types = {
            column["name"]: column["type"]
            for table in client.get("/api/tables")["tables"]
            if table["name"].lower() == name.lower()
            for column in table["columns"]
        }
        part = "all" if found["whole"] else "the first"
        typer.echo(f"values of {part} {found['looked']:,} rows:")
        figures = [_figures(each, types.get(each["name"], "")) for each in found["figures"]]
        print_list(figures, _FIGURES, form)
        if found["rows"]:
            typer.echo(f"the first {len(found['rows'])} rows:")
            listed = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
            print_list(listed, found["columns"], form)


def add_table_commands(app: typer.Typer) -> None:
    """Add the commands to those of `pando table`."""
    app.command("status")(table_status)
    app.command("show")(table_show)


def _row(table: dict[str, Any]) -> dict[str, Any]:
    refresh = table["refresh"]
    return {
        "table": table["name"],
        "from": f"{table['source']} {table['place']}".strip(),
        "rows": "" if table["rows"] is None else table["rows"],
        "size": "" if table["bytes"] is None else size_text(table["bytes"]),
        "read": short_time(table["read"]),
        "again": f"every {refresh:g} s"
        if refresh is not None
        else "when it changes"
        if table["told"]
        else "when asked",
    }


def _figures(figures: dict[str, Any], kind: str) -> dict[str, Any]:
    top = max(figures["bars"], key=lambda bar: bar["count"], default=None)
    return {
        "column": figures["name"],
        "type": kind,
        "nulls": figures["nulls"],
        "distinct": figures["distinct"],
        "least": figures["least"],
        "greatest": figures["greatest"],
        "most": "" if top is None else f"{top['label']}: {top['count']}",
    }
