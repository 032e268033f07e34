"""Results of the statements of a local session, printed as table, JSON or CSV."""

import csv
import io
import json
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamsql.data.schema import Schema
from streamsql.data.types import Row, Value, display, text_of


@dataclass(frozen=True, slots=True)
class Result:
    """Rows under a schema, a message, or text to print as it is.

    Attributes:
        data: The text as a value for JSON, where it has such a form.
    """

    message: str = ""
    schema: Schema | None = None
    rows: tuple[Row, ...] = ()
    text: str = ""
    data: Any = None
    warnings: tuple[str, ...] = ()


def print_result(result: Result, form: str, console: Console) -> None:
    """Print a result; with json and csv only answers go to the output, one after the other.

    JSON is one array of row objects per SELECT, or one object per answer to a question about rows,
    and line; in CSV NULL is an empty field.
    """
    if form == "table":
        _print_table(result, console)
    elif result.schema is not None:
        make = _json if form == "json" else _csv
        console.out(make(result.schema, result.rows), highlight=False, end="")
    elif form == "json" and result.data is not None:
        console.out(json.dumps(result.data, ensure_ascii=False), highlight=False)


def _print_table(result: Result, console: Console) -> None:
    for warning in result.warnings:
        console.print(f"[yellow]warning:[/] {escape(warning)}", highlight=False)
    if result.message:
        console.print(escape(result.message), style="dim", highlight=False)
    if result.text:
        console.out(result.text, highlight=False)
    if result.schema is None:
        return
    table = Table(header_style="bold cyan")
    for name in result.schema.names:
        table.add_column(escape(name), overflow="fold")
    for row in result.rows:
        table.add_row(*map(_cell, _shown(result.schema, row)))
    console.print(table)
    count = len(result.rows)
    console.print(f"{count} row{'' if count == 1 else 's'}", style="dim")


def _shown(schema: Schema, row: Row) -> list[Value]:
    return [display(value, dtype) for value, dtype in zip(row, schema.dtypes, strict=True)]


def _cell(value: Value) -> str:
    return "[dim]NULL[/]" if value is None else escape(text_of(value))


def _json(schema: Schema, rows: tuple[Row, ...]) -> str:
    objects = [schema.to_object(row) for row in rows]
    return json.dumps(objects, ensure_ascii=False) + "\n"


def _csv(schema: Schema, rows: tuple[Row, ...]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(schema.names)
    for row in rows:
        writer.writerow("" if v is None else text_of(v) for v in _shown(schema, row))
    return buffer.getvalue()
