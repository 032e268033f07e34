"""`pando run` and `pando shell`: scripts and an interactive shell."""

import atexit
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deploy.session import LocalSession
from deploy.session.render import FORMATS, print_result
from streamsql.errors import FederationError

MAX_SCRIPT_BYTES = 10_000_000
PROMPT, MORE = "pando> ", "   ...> "


def read_script(path: Path) -> str:
    """Return the text of a script; `-` reads standard input.

    Raises:
        FederationError: It cannot be read.
    """
    if str(path) == "-":
        return sys.stdin.read(MAX_SCRIPT_BYTES)
    try:
        if path.stat().st_size > MAX_SCRIPT_BYTES:
            raise FederationError(f"{path} is larger than {MAX_SCRIPT_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FederationError(
            f"cannot read {path}: {error.strerror}", hint="give the path of a StreamSQL script"
        ) from error
    except UnicodeDecodeError as error:
        raise FederationError(f"{path} is not UTF-8 text: {error.reason}") from error


def check_format(form: str) -> str:
    """Return the format's name.

    Raises:
        FederationError: There is none of that name.
    """
    if form not in FORMATS:
        raise FederationError(f"--format {form!r}?", hint="use table, json or csv")
    return form


def run_local(path: Path, engine: str, sites: int, form: str) -> None:
    """Run a script statement by statement and print as it goes.

    Raises:
        FederationError: The script, or a statement of it, is wrong.
    """
    from streamsql.syntax import parse_script  # noqa: PLC0415  (keeps `pando --help` quick)

    console = Console(highlight=False, soft_wrap=form != "table")
    session = LocalSession(engine, sites)
    with contextlib.closing(session):
        for statement in parse_script(read_script(path)):
            print_result(session.execute(statement), check_format(form), console)


def shell_local(engine: str, sites: int) -> None:
    """Read statements, each ended by a semicolon, and answer them until end of input."""
    console = Console(highlight=False)
    session = LocalSession(engine, sites)
    _use_history()
    console.print(
        "A local StreamSQL session: CREATE SOURCE, INSERT, SELECT … Statements end with ';'. "
        "\\q leaves.",
        style="dim",
    )
    with contextlib.closing(session):
        for text in read_statements():
            try:
                for result in session.run(text):
                    print_result(result, "table", console)
            except FederationError as error:
                console.print(f"[red]error:[/] {error}", highlight=False)


def read_statements() -> Iterator[str]:
    """Yield texts that end with a semicolon; ends at end of input or at a line `exit`."""
    pending = ""
    interactive = sys.stdin.isatty()
    while True:
        try:
            line = input((MORE if pending else PROMPT) if interactive else "")
        except EOFError:
            if pending.strip():
                yield pending
            return
        except KeyboardInterrupt:
            print()  # noqa: T201
            pending = ""
            continue
        if not pending and line.strip() in ("\\q", "exit", "quit"):
            return
        pending += line + "\n"
        if line.rstrip().endswith(";"):
            yield pending
            pending = ""


def _use_history() -> None:
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


Engine = Annotated[str, typer.Option(help="stream, reference or spark")]
Sites = Annotated[int, typer.Option(help="Sites the stream engine is partitioned over")]
Format = Annotated[str, typer.Option("--format", help="table, json or csv")]
