"""Statements from a terminal or a pipe: read, completed with the tab key, and remembered.

A statement ends with a semicolon. Only the line being typed is completed: names of relations on
earlier lines of a statement are not known.
"""

import atexit
import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import typer
from rich.console import Console

from streamsql.errors import FederationError

Suggest = Callable[[str, int], Sequence[str]]
"""From a text and a place in it to what may stand there."""

HELP = """\
A statement may have many lines and ends with ';'. Tab completes, the arrow keys bring back lines.

  SHOW SOURCES;  SHOW TABLES;  SHOW VIEWS;     what there is (also QUERIES, GATEWAYS, FUNCTIONS)
  DESCRIBE name;                               columns, and the statement that made it
  SELECT ... FROM ...;                         its rows
  EXPLAIN SELECT ...;                          how it is computed
  \\q, exit or quit                            leave

The language: docs/streamsql.md"""
_LEAVE = ("\\q", "exit", "quit")
_HELP = ("\\h", "\\?", "?", "help")
PROMPT, MORE = "pando> ", "   ...> "
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*(?:\n|$)|/\*.*?\*/", re.DOTALL)


def converse(suggest: Suggest, greeting: Callable[[], None], run: Callable[[str], None]) -> None:
    """Run statements until end of input.

    A statement that is wrong is reported on standard error, and so is Ctrl-C; the next one is read.

    Args:
        suggest: Completes what is typed.
        greeting: Is called before the first prompt of a terminal.
        run: Runs a text and prints what it returns.
    """
    if sys.stdin.isatty():
        _remember_lines()
        _complete_with_tab(suggest)
        greeting()
    for text in read_statements():
        try:
            run(text)
        except FederationError as error:
            Console(stderr=True, highlight=False).print(
                f"error: {error.report}", style="red", markup=False, soft_wrap=True
            )
        except KeyboardInterrupt:
            print()  # noqa: T201


def read_statements(show: Callable[[str], None] = typer.echo) -> Iterator[str]:
    """Yield texts that end with a semicolon; ends at end of input or at a line `exit`.

    A line `help` is answered with `show`. Ctrl-C discards what was typed of the current statement.
    """
    pending = ""
    interactive = sys.stdin.isatty()
    while True:
        try:
            line = input((MORE if pending else PROMPT) if interactive else "")
        except EOFError:
            if _statements(pending).strip():
                yield pending
            return
        except KeyboardInterrupt:
            print()  # noqa: T201
            pending = ""
            continue
        command = "" if pending else line.strip().removesuffix(";").lower()
        if command in _LEAVE:
            return
        if command in _HELP:
            show(HELP)
            continue
        pending += line + "\n"
        if is_complete(pending):
            yield pending
            pending = ""


def is_complete(text: str) -> bool:
    """Return True if a text ends with a semicolon outside of quotes and comments.

    Examples:
        >>> is_complete("SELECT ';'"), is_complete("SELECT 1; -- one"), is_complete("SELECT '1;")
        (False, True, False)
    """
    rest = _statements(text)
    return rest.rstrip().endswith(";") and not any(mark in rest for mark in ("'", '"', "/*"))


def _statements(text: str) -> str:
    """Return the text without comments, and with quoted text left empty."""
    return _QUOTED.sub(lambda found: "" if found[0][0] in "-/" else " ", text)


def _remember_lines() -> None:
    """Let the terminal's line editor keep a history in the home directory."""
    try:
        import readline  # noqa: PLC0415
    except ImportError:
        return
    path = Path.home() / ".pando_history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(1000)

    def save() -> None:
        with contextlib.suppress(OSError):
            readline.write_history_file(path)

    atexit.register(save)


class TabCompleter:
    """Return candidate number n for the word before the cursor, as readline calls it."""

    def __init__(self, suggest: Suggest, line: Callable[[], tuple[str, int]]) -> None:
        self._suggest = suggest
        self._line = line
        self._found: list[str] = []

    def __call__(self, word: str, number: int) -> str | None:
        """Return a candidate, or None behind the last one."""
        if number == 0:
            text, place = self._line()
            self._found = [_in_case(label, word) for label in self._suggest(text, place)]
        return self._found[number] if number < len(self._found) else None


def _in_case(label: str, word: str) -> str:
    """Keep what was typed in lower case in lower case."""
    return label.lower() if word and word.islower() else label


def _complete_with_tab(suggest: Suggest) -> None:
    """Let the tab key complete, where the terminal has a line editor."""
    try:
        import readline  # noqa: PLC0415
    except ImportError:
        return
    readline.set_completer_delims(" \t\n,()[].;=<>+-*/%|")
    readline.set_completer(
        TabCompleter(suggest, lambda: (readline.get_line_buffer(), readline.get_endidx()))
    )
    readline.parse_and_bind("tab: complete")
