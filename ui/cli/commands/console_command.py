"""Common parts of commands over HTTP: options, a client of the console, exit statuses."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from streamsql.errors import FederationError, InternalError
from ui.cli.client import ConsoleClient, ServerError
from ui.cli.federations import console_address

Address = Annotated[str | None, typer.Option("--console", help="Address of the console")]
Format = Annotated[str, typer.Option("--format", help="table, json or csv")]
ListFormat = Annotated[str, typer.Option("--format", help="table or json")]
LISTS = ("table", "json")


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Turn errors into messages on stderr and exit statuses: 2 the user's, 1 ours, 0 Ctrl-C."""
    try:
        yield
    except (InternalError, ServerError) as error:
        sys.stderr.write(f"error (a defect of Pando): {error}\n")
        raise typer.Exit(1) from error
    except FederationError as error:
        sys.stderr.write(f"error: {error.report}\n")
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    except BrokenPipeError:
        # Whoever read has enough. What is still buffered must not fail again at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[ConsoleClient]:
    """Yield a client of the console, with errors turned into exit statuses."""
    with guarded():
        client = ConsoleClient(console_address(address))
        with contextlib.closing(client):
            yield client
