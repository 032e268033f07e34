"""A run of `pando calibrate`: what is measured, kept at the federation, and shown."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from deploy.calibration.federation_costs import (
    constants_of,
    federation,
    hops_of,
    set_constants,
    timed_engines,
)
from deploy.calibration.machine_constants import calibrate as measure
from deploy.calibration.rounds import Measurement
from federated_optimizer.coordinator.facts.shown_facts import rounded
from federated_optimizer.statistics.calibrated_constants import (
    CONSTANTS,
    EVERYWHERE,
    PLACES,
    SPARK,
    words_of,
)
from federated_optimizer.statistics.fact import Origin
from host.files.atomic_file import replace_file
from streamsql.errors import DeploymentError
from ui.cli.client import ConsoleClient
from ui.cli.printing import print_json, print_list

_UNITS = {
    "microseconds": "µs",
    "milliseconds": "ms",
    "nanoseconds": "ns",
    "bytes": "B",
    "floor": "s",
    "rows": "rows/s",
}
_SPEED = "rows a second of "
COLUMNS = ("what", "unit", "before", "measured", "spread")
Object = dict[str, Any]


def forget_constants(console: str | None, *, as_json: bool) -> None:
    """Let a federation plan with the defaults again, and say how many constants were forgotten.

    Raises:
        DeploymentError: None runs.
        FederationError: The console refuses.
    """
    with federation(console) as client:
        if client is None:
            hint = "name its console with --console URL"
            raise DeploymentError("no federation runs here", hint=hint)
        count: int = client.delete("/api/costs")["forgotten"]
        if as_json:
            print_json({"console": client.address, "forgotten": count})
        else:
            told = f"{count} calibrated constants forgotten; plans are made with the defaults"
            typer.echo(told)


def run_calibration(  # noqa: PLR0913  (the options of the command)
    console: str | None,
    place: str,
    out: Path | None,
    *,
    quick: bool,
    keep: bool,
    as_json: bool,
) -> None:
    """Measure, keep the result at the federation that runs, and print it.

    Raises:
        DeploymentError: There is no such place, or the file cannot be written.
        FederationError: The console refuses.
    """
    with federation(console) as client:
        where = _place(place)
        if out is not None and not out.absolute().parent.is_dir():
            raise _unwritable(out, "there is no such folder")
        began = time.monotonic()
        result = _measured(client, where, quick=quick, keep=keep)
        result["seconds"] = round(time.monotonic() - began, 1)
        if out is not None:
            _write(out, result)
        if as_json:
            print_json(result)
        else:
            _print(result)


def _measured(client: ConsoleClient | None, place: str, *, quick: bool, keep: bool) -> Object:
    """Return what was measured, beside the constants of before."""
    hops, known = None, list[Object]()
    if client is not None:
        known = constants_of(client)
        # Before all else: who may not set constants is told so before half a minute has passed.
        hops = hops_of(client) if keep else None
    with _progress() as report:
        made = measure(
            report,
            quick=quick,
            operators_only=place != EVERYWHERE,
            hops=None if hops is None else lambda: hops,
        )
        if client is not None and not quick and place == EVERYWHERE:
            report("the static engine", 1.0)
            made.notes += timed_engines(client)
    saved = client is not None and keep and bool(made.measured)
    after = list[Object]()
    if client is not None:
        after = set_constants(client, made.measured, place) if saved else constants_of(client)
    return {
        "console": None if client is None else client.address,
        "saved": saved,
        "constants": list(_rows(made.measured, place, known, after)),
        "notes": made.notes,
    }


def _rows(
    measured: Mapping[str, Measurement], place: str, known: list[Object], after: list[Object]
) -> Iterator[Object]:
    """Yield the constants that were measured, here or by the static engine."""
    before = {(each["name"], each["place"]): each["value"] for each in known}
    timed = {each["name"]: each for each in after if each["origin"] == str(Origin.TIMED)}
    for name, default in {**CONSTANTS, **SPARK}.items():
        old = before.get((name, place), before.get((name, EVERYWHERE), default.value))
        row = {"name": name, "words": words_of(name, place), "place": place, "before": old}
        found = measured.get(name)
        if name in timed and place == EVERYWHERE:
            numbers = {key: timed[name][key] for key in ("value", "low", "high", "origin")}
            yield {**row, **numbers}
        elif found is not None:
            numbers = {"value": found.value, "low": found.low, "high": found.high}
            yield {**row, **numbers, "origin": str(Origin.CALIBRATED), "rounds": found.rounds}


def _place(text: str) -> str:
    """Return the place that an option means.

    Raises:
        DeploymentError: It is none.
    """
    names = {place or "all": place for place in PLACES}
    if text not in names:
        raise DeploymentError(f"--for {text!r:.40}?", hint=f"use {', '.join(names)}")
    return names[text]


def _write(file: Path, result: Object) -> None:
    """Write the result.

    Raises:
        DeploymentError: The file cannot be written.
    """
    try:
        replace_file(file, (json.dumps(result, ensure_ascii=False, indent=1) + "\n").encode())
    except OSError as error:
        raise _unwritable(file, error.strerror or str(error)) from error


def _unwritable(file: Path, why: str) -> DeploymentError:
    return DeploymentError(f"cannot write {file}: {why}", hint="choose another file with --out")


def _print(result: Object) -> None:
    rows = [
        {
            "what": _what(each["words"]),
            "unit": _unit(each["name"]),
            "before": _number(each["before"]),
            "measured": _number(each["value"]),
            "spread": f"{_number(each['low'])} to {_number(each['high'])}",
        }
        for each in result["constants"]
    ]
    print_list(rows, COLUMNS, "table")
    for each in result["constants"]:
        if each["origin"] != str(Origin.CALIBRATED):
            typer.echo(f"{_what(each['words'])}: {each['origin']}, which goes before a calibration")
    for note in result["notes"]:
        typer.echo(f"note: {note}", err=True)
    if result["saved"]:
        typer.echo(f"The federation at {result['console']} plans with these constants from now on.")
    elif result["console"] is None:
        typer.echo("No federation runs here, so nothing was set.")


def _what(words: str) -> str:
    """Return a constant in words without its unit.

    Examples:
        >>> _what("bytes of a kept group"), _what("milliseconds from a site to the next")
        ('a kept group', 'from a site to the next')
        >>> _what("rows a second of Spark")
        'Spark'
    """
    if words.startswith(_SPEED):
        return words.removeprefix(_SPEED)
    return words.partition(" ")[2].removeprefix("of ")


def _unit(name: str) -> str:
    return _UNITS[name.rpartition("_")[2]]


def _number(value: float) -> str:
    """Return a number with three digits that count.

    Examples:
        >>> _number(0.000137), _number(13.68), _number(430244.1)
        ('0.000137', '13.7', '430,000')
    """
    shown = rounded(value)
    return f"{shown:,.0f}" if abs(shown) >= 100 else f"{shown:.6f}".rstrip("0").rstrip(".")


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    """Yield what shows on standard error how far it is."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=1.0)
        yield lambda words, share: shown.update(task, description=words, completed=share)
