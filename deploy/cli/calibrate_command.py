"""`pando calibrate`: measure the constants by which plans are compared."""

from pathlib import Path
from typing import Annotated

import typer

from ui.cli.commands.console_command import Address, guarded


def calibrate(  # noqa: PLR0913, PLR0917  (the command line contract)
    quick: Annotated[bool, typer.Option("--quick", help="A third of the time, less sure")] = False,
    place: Annotated[
        str, typer.Option("--for", help="Whose operators are measured: all, gateways or base")
    ] = "all",
    out: Annotated[Path | None, typer.Option(help="File for the result as JSON")] = None,
    no_save: Annotated[
        bool, typer.Option("--no-save", help="Set nothing at the federation")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Measure nothing: go back to the defaults")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
    console: Address = None,
) -> None:
    """Measure what operators, messages and memory cost on this machine, and plan with it.

    The stream engine runs statements over generated rows, a broker carries messages, the local
    executor reads a table: half a minute in all. The running federation takes the result (an
    operator may set it) and plans with it from then on. Without one the result is only shown.

    Examples:
      pando calibrate
      pando calibrate --quick --json
      pando calibrate --for gateways --console https://console.example:8420
      pando calibrate --no-save --out costs.json
      pando calibrate --forget
    """
    from deploy.calibration.calibration_run import (  # noqa: PLC0415  (keeps `pando --help` quick)
        forget_constants,
        run_calibration,
    )

    with guarded():
        if forget:
            forget_constants(console, as_json=as_json)
        else:
            run_calibration(console, place, out, quick=quick, keep=not no_save, as_json=as_json)
