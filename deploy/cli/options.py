"""Options that several commands share, and what they may be."""

from typing import Annotated

import typer

from streamsql.errors import FederationError

Engine = Annotated[str, typer.Option(help="With --local: stream, reference or spark")]
Sites = Annotated[
    int, typer.Option(help="With --local: sites the stream engine is partitioned over")
]
Local = Annotated[
    bool, typer.Option("--local", help="Without broker and services, in this process")
]
Format = Annotated[str, typer.Option("--format", help="table, json or csv")]
TwoFormats = Annotated[str, typer.Option("--format", help="table or json")]

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
        raise FederationError(f"--sites {sites}: give a number from 1 to {MAX_SITES}")
    if sites > 1 and engine != "stream":
        raise FederationError(
            f"--engine {engine} is not partitioned", hint="leave --sites away, or --engine stream"
        )
    if not local and (engine != "stream" or sites != 1):
        raise FederationError(
            "--engine and --sites choose what --local runs on", hint="add --local"
        )
