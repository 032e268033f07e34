"""Read statements from a terminal or a pipe: a statement ends with a semicolon."""

import re
import sys
from collections.abc import Callable, Iterator

import typer

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


def read_statements(show: Callable[[str], None] = typer.echo) -> Iterator[str]:
    """Yield texts that end with a semicolon; ends at end of input or at a line `exit`.

    A line `help` is answered with `show`. Ctrl-C forgets what was typed of the current statement.
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
    """Whether a text ends with a semicolon outside of quotes and comments.

    Examples:
        >>> is_complete("SELECT ';'"), is_complete("SELECT 1; -- one"), is_complete("SELECT '1;")
        (False, True, False)
    """
    rest = _statements(text)
    return rest.rstrip().endswith(";") and not any(mark in rest for mark in ("'", '"', "/*"))


def _statements(text: str) -> str:
    """Return the text without comments, and with quoted text left empty."""
    return _QUOTED.sub(lambda found: "" if found[0][0] in "-/" else " ", text)
