"""Passwords that somebody types, unseen, or a script pipes in."""

import sys
from typing import Annotated

import typer

from streamsql.errors import DeploymentError

PasswordFromInput = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input")
]
MAX_BYTES = 2_048


def typed_password(what: str, *, from_input: bool, twice: bool = False) -> str:
    """Return a password.

    Args:
        what: Word to ask with.
        from_input: The first line of standard input is it.
        twice: Ask again to find typing errors.

    Raises:
        DeploymentError: Standard input has none.
    """
    if not from_input:
        return str(typer.prompt(what, hide_input=True, confirmation_prompt=twice, err=True))
    line = sys.stdin.readline(MAX_BYTES).rstrip("\r\n")
    if not line:
        raise DeploymentError("standard input has no password")
    return line
