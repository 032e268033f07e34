"""Print answers to questions about rows."""

from typing import Any

import typer

from ui.cli.printing import print_json


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
