"""Options that several commands share, and what they may be."""

import os
from typing import Annotated

import typer

from streamsql.algebra.user_functions import INSTALLED, SETTING, modules_of
from streamsql.errors import FederationError

Engine = Annotated[str, typer.Option(help="With --local: stream, reference or spark")]
Sites = Annotated[int, typer.Option(help="With --local: number of sites of the stream engine")]
Local = Annotated[
    bool, typer.Option("--local", help="Run in this process, without broker and services")
]
Format = Annotated[str, typer.Option("--format", help="table, json or csv")]
TwoFormats = Annotated[str, typer.Option("--format", help="table or json")]

Functions = Annotated[
    str,
    typer.Option(
        envvar=SETTING,
        help="Python modules with user functions, separated by commas, on PYTHONPATH",
    ),
]

ENGINES = ("stream", "reference", "spark")
MAX_SITES = 64


def check_engine(engine: str, sites: int, *, local: bool) -> None:
    """Refuse engines and numbers of sites that cannot be.

    Raises:
        FederationError: There is no such engine, it has no sites, or `--local` is missing.
    """
    if engine not in ENGINES:
        raise FederationError(f"--engine {engine!r}?", hint=f"use {', '.join(ENGINES)}")
    if not 1 <= sites <= MAX_SITES:
        raise FederationError(f"--sites {sites}; write a number from 1 to {MAX_SITES}")
    if sites > 1 and engine != "stream":
        raise FederationError(
            f"--engine {engine} is not partitioned", hint="remove --sites, or use --engine stream"
        )
    if not local and (engine != "stream" or sites != 1):
        raise FederationError("--engine and --sites need --local", hint="add --local")


def allow_functions(functions: str, *, here: bool) -> None:
    """Let functions of the user run: in this process, or in those that it starts.

    Raises:
        FederationError: One of the texts is no module name.
    """
    INSTALLED.allow(modules_of(functions))
    if functions and not here:
        os.environ[SETTING] = functions
