"""`pando lake`: what is kept of readings, and care of it."""

import time
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from streamsql.errors import DeploymentError
from ui.cli.client import ConsoleClient
from ui.cli.commands.console_command import LISTS, Address, ListFormat, connected
from ui.cli.printing import check_format, print_json, print_list, short_time

lake_app = typer.Typer(help="The lake: what is kept, and care of it", no_args_is_help=True)

Table = Annotated[str, typer.Argument(help="Source, or table as in `pando lake status`")]
Tables = Annotated[str, typer.Argument(help="Source or table; without it all of them")]
Detached = Annotated[bool, typer.Option("--detach", help="Do not wait until it is done")]
_POLL_SECONDS = 0.3
_OVER = ("done", "failed", "cancelled")
_LISTED = ("table", "rows", "size", "files", "first", "last", "keep", "rollups")
_JOBS = ("id", "task", "table", "state", "share", "message")
_RECENT = 5


@lake_app.command("status")
def lake_status(form: ListFormat = "table", console: Address = None) -> None:
    """Show what is kept, from when to when, how large it is, and what care does.

    Examples:
      pando lake status
      pando lake status --format json
    """
    with connected(console) as client:
        found = client.get("/api/lake")
        if check_format(form, LISTS) == "json":
            print_json(found)
            return
        typer.echo(f"lake {found['where']}, cared for by {found['workers']}")
        for name, value in (found["pipeline"] or {}).items():
            typer.echo(f"pipeline {name.replace('_', ' ')}: {value}")
        if found["tables"]:
            print_list([_row(table) for table in found["tables"]], _LISTED, form)
        else:
            typer.echo("nothing is kept yet")
        if found["more"]:
            typer.echo(f"{found['more']} more tables")
        for table in found["tables"]:
            if table["problem"]:
                typer.echo(f"{table['table']}: {table['problem']}")
        if found["jobs"]:
            print_list([_job(job) for job in found["jobs"][-_RECENT:]], _JOBS, form)


@lake_app.command("compact")
def lake_compact(table: Tables = "", detach: Detached = False, console: Address = None) -> None:
    """Put small files together, so that queries read faster; no row changes.

    Examples:
      pando lake compact
      pando lake compact temperature
    """
    _do({"task": "compact", "table": table}, detach=detach, console=console)


@lake_app.command("expire")
def lake_expire(table: Tables = "", detach: Detached = False, console: Address = None) -> None:
    """Discard readings, former states and files that are no longer kept.

    Readings go by the option keep of their source, a day at a time; former states of tables go
    after a day.

    Examples:
      pando lake expire
    """
    _do({"task": "expire", "table": table}, detach=detach, console=console)


@lake_app.command("replay")
def lake_replay(detach: Detached = False, console: Address = None) -> None:
    """Send dead letters through the pipeline again, after what was wrong is put right.

    Examples:
      pando lake replay
    """
    _do({"task": "replay"}, detach=detach, console=console)


@lake_app.command("export")
def lake_export(  # noqa: PLR0913, PLR0917  (options of a command)
    table: Table,
    since: Annotated[str, typer.Option(help="First event time, e.g. 2026-11-01T00:00Z")] = "",
    until: Annotated[str, typer.Option(help="Likewise, not included any more")] = "",
    form: Annotated[str, typer.Option("--format", help="parquet or csv")] = "parquet",
    detach: Detached = False,
    console: Address = None,
) -> None:
    """Write an interval of a table into a file on the machine of the static engine.

    Examples:
      pando lake export temperature --since 2026-11-01 --until 2026-12-01
      pando lake export temperature --format csv
    """
    if form not in {"parquet", "csv"}:
        raise typer.BadParameter("use parquet or csv", param_hint="--format")
    body: dict[str, Any] = {"task": "export", "table": table, "format": form}
    body |= {name: text for name, text in (("since", since), ("until", until)) if text}
    _do(body, detach=detach, console=console)


@lake_app.command("cancel")
def lake_cancel(
    job: Annotated[str, typer.Argument(help="Id of the job")], console: Address = None
) -> None:
    """Tell a job to end at its next step; what is done stays done.

    Examples:
      pando lake cancel job-7-1
    """
    with connected(console) as client:
        found = client.delete(f"/api/lake/jobs/{quote(job, safe='')}")
        over = found["state"] in _OVER
        typer.echo(f"job {job} is {found['state']}" if over else f"job {job} ends at its next step")


def _do(body: dict[str, Any], *, detach: bool, console: str | None) -> None:
    with connected(console) as client:
        job = client.post("/api/lake/jobs", body)
        if detach:
            typer.echo(f"job {job['id']}; pando lake status says how far it is")
            return
        ended = follow_job(client, job, time.sleep)
        if ended["state"] == "failed":
            raise DeploymentError(ended["message"], code="lake_error")
        typer.echo(f"{ended['state']}: {ended['message']}" if ended["message"] else ended["state"])


def follow_job(
    client: ConsoleClient, job: dict[str, Any], pause: Callable[[float], None]
) -> dict[str, Any]:
    """Show how far a job is until it is over; return it as it ended."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    # On stderr: what comes of it alone is on stdout.
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar = shown.add_task(f"{job['task']} {job['table']}".strip(), total=1.0)
        while job["state"] not in _OVER:
            pause(_POLL_SECONDS)
            listed = [each for each in client.get("/api/lake/jobs") if each["id"] == job["id"]]
            if not listed:
                raise DeploymentError(
                    f"the static engine knows no job {job['id']} any more: it was restarted",
                    hint="begin it again",
                    code="no_answer",
                )
            job = listed[0]
            shown.update(bar, completed=job["share"])
    return job


def _row(table: dict[str, Any]) -> dict[str, Any]:
    return {
        **table,
        "size": size_text(table["bytes"]),
        "files": f"{table['files']}"
        + (f" ({table['small_files']} small)" if table["small_files"] else ""),
        "first": short_time(table["first"]),
        "last": short_time(table["last"]),
        "rollups": ", ".join(table["rollups"]),
    }


def _job(job: dict[str, Any]) -> dict[str, Any]:
    return {**job, "share": f"{100 * job['share']:.0f} %"}


def size_text(size: int) -> str:
    """Return bytes in a unit that people read.

    Examples:
        >>> size_text(999), size_text(1_500_000)
        ('999 B', '1.5 MB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"
