"""`pando site settings`: how an engine site works, shown and changed while it runs."""

from typing import Annotated, Any

import typer

from streamsql.errors import FederationError
from ui.cli.client import ConsoleClient
from ui.cli.printing import print_json, print_list

Scheduler = Annotated[
    str | None, typer.Option("--scheduler", help="fifo, greedy, chain or round_robin")
]
Slice = Annotated[
    str | None,
    typer.Option(
        "--slice-ms", help="Max milliseconds of a step, or none: until no work is pending"
    ),
]
QueueRows = Annotated[
    int | None, typer.Option("--queue-rows", help="Max changed rows between operators")
]
ShareSynopses = Annotated[
    str | None, typer.Option("--share-synopses", help="on or off: share equal synopses")
]
ReportSeconds = Annotated[
    float | None,
    typer.Option("--report-seconds", help="Seconds between reports while a query reads sys_stream"),
]


def changes_of(
    scheduler: str | None,
    slice_ms: str | None,
    queue_rows: int | None,
    share_synopses: str | None,
    report_seconds: float | None,
) -> dict[str, Any]:
    """Return the settings that options name.

    Raises:
        FederationError: A value is no value of its option.
    """
    changes: dict[str, Any] = {}
    if scheduler is not None:
        changes["scheduler"] = scheduler
    if slice_ms is not None:
        changes["slice_ms"] = _milliseconds(slice_ms)
    if queue_rows is not None:
        changes["queue_rows"] = queue_rows
    if share_synopses is not None:
        if share_synopses not in ("on", "off"):
            raise FederationError(
                f"--share-synopses {share_synopses!r:.20}", hint="write on or off"
            )
        changes["share_synopses"] = share_synopses == "on"
    if report_seconds is not None:
        changes["report_seconds"] = report_seconds
    return changes


def show_or_change(client: ConsoleClient, site: str, changes: dict[str, Any], form: str) -> None:
    """Print the settings of a site, after changing some.

    Raises:
        FederationError: There is no such site, or a value is wrong.
    """
    path = f"/api/sites/{site}/settings"
    found = client.patch(path, changes) if changes else client.get(path)
    if form == "json":
        print_json(found)
        return
    rows = [{"setting": name, "value": _text(value)} for name, value in found.items()]
    print_list(rows, ("setting", "value"), form)


def _milliseconds(text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise FederationError(
            f"--slice-ms {text!r:.20} is no number", hint="write milliseconds, or none"
        ) from None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)
