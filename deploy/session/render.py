"""Results as table, JSON or CSV text."""

import csv
import io
import json

from rich.console import Console
from rich.table import Table

from deploy.session.session import Result

FORMATS = ("table", "json", "csv")


def print_result(result: Result, form: str, console: Console) -> None:
    """Print a result; with json and csv only rows go to the output, one SELECT after the other.

    JSON is one array of row objects per SELECT and line.
    """
    if form == "table":
        _print_table(result, console)
    elif result.schema is not None:
        text = _json(result) if form == "json" else _csv(result)
        console.out(text, highlight=False, end="")


def _print_table(result: Result, console: Console) -> None:
    for warning in result.warnings:
        console.print(f"[yellow]warning:[/] {warning}", highlight=False)
    if result.message:
        console.print(result.message, style="dim", highlight=False)
    if result.text:
        console.out(result.text, highlight=False)
    if result.schema is None:
        return
    table = Table(*result.schema.names, header_style="bold cyan")
    for row in result.rows:
        shown = result.schema.to_object(row) if _unique(result) else None
        values = shown.values() if shown is not None else row
        table.add_row(*("[dim]NULL[/]" if v is None else str(v) for v in values))
    console.print(table)
    count = len(result.rows)
    console.print(f"{count} row{'' if count == 1 else 's'}", style="dim")


def _unique(result: Result) -> bool:
    names = result.schema.names if result.schema is not None else ()
    return len(set(names)) == len(names)


def _json(result: Result) -> str:
    assert result.schema is not None  # noqa: S101  (checked by the caller)
    return json.dumps([result.schema.to_object(row) for row in result.rows]) + "\n"


def _csv(result: Result) -> str:
    assert result.schema is not None  # noqa: S101  (checked by the caller)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(result.schema.names)
    for row in result.rows:
        values = result.schema.to_object(row).values()
        writer.writerow("" if v is None else _csv_value(v) for v in values)
    return buffer.getvalue()


def _csv_value(value: object) -> object:
    return ("true" if value else "false") if isinstance(value, bool) else value
