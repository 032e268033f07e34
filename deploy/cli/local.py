"""`pando run --local` and `pando shell --local`: scripts and statements in this process."""

import contextlib
import sys
from pathlib import Path

from rich.console import Console

from deploy.cli.line_editor import converse
from deploy.session import LocalSession
from deploy.session.session_results import print_result
from streamsql.errors import FederationError

MAX_SCRIPT_BYTES = 10_000_000


def read_script(path: Path) -> str:
    """Return the text of a script; `-` reads standard input.

    Raises:
        FederationError: It cannot be read, is too large, or no text.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(MAX_SCRIPT_BYTES + 1)
        else:
            with path.open("rb") as file:
                content = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError as error:
        raise FederationError(
            f"cannot read {name}: {error.strerror}", hint="name the path of a StreamSQL script"
        ) from error
    if len(content) > MAX_SCRIPT_BYTES:
        raise FederationError(f"{name} is larger than {MAX_SCRIPT_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FederationError(
            f"{name} is not UTF-8 text: {error.reason} at byte {error.start}",
            hint="name the path of a StreamSQL script",
        ) from error


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
            print_result(session.execute(statement), form, console)


def shell_local(engine: str, sites: int) -> None:
    """Read statements, each ended by a semicolon, and answer them until end of input."""
    console = Console(highlight=False)

    def greet() -> None:
        console.print(
            "A local StreamSQL session: CREATE SOURCE, INSERT, SELECT … Statements end "
            "with ';'. help shows help, \\q quits.",
            style="dim",
            markup=False,
        )

    with contextlib.closing(LocalSession(engine, sites)) as session:

        def run(text: str) -> None:
            for result in session.run(text):
                print_result(result, "table", console)

        converse(session.suggest, greet, run)
