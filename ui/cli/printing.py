"""Print tables, JSON and CSV."""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from streamsql.errors import DeploymentError


class Terminal(Console):
    """Output that leaves it to the command what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        """Pass the error on instead of ending the process."""
        raise BrokenPipeError


FORMATS = ("table", "json", "csv")
SHORT = 24
"""Characters of a value that is not broken in a table."""
NARROW = 8
"""Characters that each column keeps in a table, so that none vanishes."""
BORDER = 3
"""Characters between two columns."""


def check_format(form: str, allowed: Sequence[str] = FORMATS) -> str:
    """Return the format's name.

    Raises:
        DeploymentError: There is none of that name here.
    """
    if form not in allowed:
        raise DeploymentError(f"--format {form!r}?", hint=f"use {', '.join(allowed)}")
    return form


def print_list(rows: Iterable[dict[str, Any]], columns: Sequence[str], form: str) -> None:
    """Print objects: chosen columns as a table, or everything as a JSON array.

    A table with too many columns for the terminal is printed as one block of lines for each row.
    """
    listed = list(rows)
    if form == "json":
        print_json(listed)
        return
    cells = [[cell(row.get(column)) for column in columns] for row in listed]
    widths = [max(map(_width, column)) for column in zip(columns, *cells, strict=True)]
    terminal = Terminal(highlight=False)
    if sum(min(width, NARROW) + BORDER for width in widths) >= terminal.width and cells:
        _print_blocks(terminal, columns, cells)
        return
    table = Table(header_style="bold cyan")
    for column, width in zip(columns, widths, strict=True):
        # Long values are broken, so that short ones (names, times) stay whole.
        table.add_column(
            column, no_wrap=width <= SHORT, overflow="fold", min_width=min(width, NARROW)
        )
    for line in cells:
        table.add_row(*line)
    terminal.print(table)


def _print_blocks(
    terminal: Terminal, columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> None:
    indent = max(map(len, columns))
    for number, line in enumerate(cells, start=1):
        terminal.print(f"[dim]── {number}[/]")
        for column, value in zip(columns, line, strict=True):
            terminal.print(f"[bold cyan]{escape(column):<{indent}}[/]  {value}", soft_wrap=True)


def _width(marked: str) -> int:
    return Text.from_markup(marked).cell_len


def print_json(value: object) -> None:
    """Print one JSON value on a line of its own, at once."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def cell(value: object) -> str:
    """Return a value as a table shows it."""
    if value is None:
        return "[dim]NULL[/]"
    if isinstance(value, list):
        return ", ".join(map(cell, value))
    if isinstance(value, dict):
        return ", ".join(f"{escape(str(name))} {cell(part)}" for name, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return escape(str(value))


def short_time(time: str | None) -> str:
    """Return a time to the second, without the date if it is of today (UTC)."""
    if time is None:
        return ""
    date, _, clock = time.partition("T")
    clock = clock[:8]
    return clock if date == str(datetime.now(UTC).date()) else f"{date} {clock}"


def clock_words(offset_ms: float | None, last_known: str | None) -> str:
    """Return how far a site's clock is off, and when that was last known.

    Examples:
        >>> (
        ...     clock_words(1.5, None),
        ...     clock_words(2.0, "2026-01-01T12:00:00Z"),
        ...     clock_words(None, None),
        ... )
        ('1.5 ms', '2 ms (last known 2026-01-01 12:00:00)', '')
    """
    if offset_ms is None:
        return ""
    return f"{offset_ms:g} ms" + (f" (last known {short_time(last_known)})" if last_known else "")


class ChangePrinter:
    """Prints changes as they come.

    table: + and - lines in green and red under a header; json: one object a line; csv: a header,
    then `ts,diff,…`.
    """

    heading = "diff"

    def __init__(self, form: str, columns: Sequence[str], units: Sequence[str] = ()) -> None:
        self.form = form
        self.columns = columns
        self.printed = 0
        self._console = Terminal(highlight=False, soft_wrap=True)
        self._csv = csv.writer(sys.stdout, lineterminator="\n")
        if form == "csv":
            self._csv.writerow(["ts", self.heading, *columns])
        elif form == "table":
            headings = map(" ".join, zip_longest(columns, units, fillvalue=""))
            line = " │ ".join(heading.strip() for heading in headings)
            self._console.print("[bold cyan]" + escape("   " + line) + "[/]")

    def print(self, change: dict[str, Any]) -> None:
        """Print one change."""
        self.printed += 1
        row = change["row"]
        if self.form == "json":
            print_json({"ts": change["ts"], "diff": change["diff"], "row": row})
        elif self.form == "csv":
            self._csv.writerow([change["ts"], change["diff"], *(row[c] for c in self.columns)])
            sys.stdout.flush()
        else:
            sign, style = ("+", "green") if change["diff"] > 0 else ("-", "red")
            count = abs(change["diff"])
            times = f" x{count}" if count > 1 else ""
            values = " │ ".join("NULL" if row[c] is None else str(row[c]) for c in self.columns)
            self._console.print(f"[{style}]{sign}  {escape(values)}{times}[/]")

    def progress(self, up_to: str) -> None:
        """Say up to when the answer is complete; CSV has no place for it."""
        if self.form == "json":
            print_json({"progress": up_to})
        elif self.form == "table":
            self._console.print(f"[dim]   complete up to {escape(up_to)}[/]")


class UpsertPrinter(ChangePrinter):
    """Prints the row that a key has now, or that it has none any more.

    table: = and - lines; json: one object a line with `key`, and `row` or null; csv: a header, then
    `ts,op,…` with the key alone where the row is gone.
    """

    heading = "op"

    def print(self, change: dict[str, Any]) -> None:
        """Print one upsert."""
        self.printed += 1
        row, key = change["row"], change["key"]
        values = [(row or key).get(column, "") for column in self.columns]
        if self.form == "json":
            print_json({"ts": change["ts"], "key": key, "row": row})
        elif self.form == "csv":
            self._csv.writerow([change["ts"], "upsert" if row else "delete", *values])
            sys.stdout.flush()
        else:
            sign, style = ("=", "green") if row else ("-", "red")
            shown = " │ ".join("NULL" if value is None else str(value) for value in values)
            self._console.print(f"[{style}]{sign}  {escape(shown)}[/]")
