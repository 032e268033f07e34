"""Results of a trial at the terminal: payloads, problems, rows, offers and statements."""

from collections.abc import Sequence
from typing import Any

import typer
from rich.markup import escape

from ui.cli.printing import Terminal, print_list, short_time

MAX_SHOWN = 300
"""Characters of a payload in a line of the terminal."""


def print_offers(printer: Terminal, offers: Sequence[dict[str, Any]]) -> None:
    """Print the records that devices offer, each with its values."""
    for record in offers:
        printer.print(f"\n[bold]{escape(record['name'])}[/]")
        print_list(record["values"], ("name", "address", "type", "unit", "sample"), "table")


def print_payload(printer: Terminal, sample: dict[str, Any]) -> None:
    """Print when a payload came, on which topic, and its beginning."""
    text = " ".join(sample["payload"].split()) if sample["is_text"] else sample["payload"]
    cut = "…" if sample["cut"] or len(text) > MAX_SHOWN else ""
    kind = "" if sample["is_text"] else "[dim](base64)[/] "
    printer.print(
        f"[dim]{short_time(sample['arrival'])}[/] [cyan]{escape(sample['topic'])}[/] "
        f"{kind}{escape(text[:MAX_SHOWN])}{cut}"
    )


def print_problems(printer: Terminal, sample: dict[str, Any]) -> None:
    """Print what a statement could not use of a payload."""
    for problem in sample["problems"]:
        printer.print(f"  [red]{escape(problem)}[/]")


def print_rows(columns: Sequence[dict[str, Any]], samples: Sequence[dict[str, Any]]) -> None:
    """Print the rows of all samples, and each problem once."""
    rows = [row for sample in samples for row in sample["rows"]]
    if rows:
        print_list(rows, [column["name"] for column in columns], "table")
    printer = Terminal(highlight=False)
    for problem in dict.fromkeys(p for sample in samples for p in sample["problems"]):
        printer.print(f"[red]{escape(problem)}[/]")


def print_statements(proposals: Sequence[dict[str, Any]]) -> None:
    """Print proposed statements, to be read by `pando source add` too."""
    for proposal in proposals:
        typer.echo(f"{proposal['text']};\n")
