"""`pando simulate past`: readings of a past that the simulated building would have had."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from streamsql.data.durations import parse_duration
from streamsql.errors import DeploymentError
from ui.cli.client import ConsoleClient

MAX_DAYS = 400
_HOURS = 24
"""Of one order."""
_NOTHING = "nothing is simulated here"


def make_past(client: ConsoleClient, days: int, every: str, until: str) -> None:
    """Have every gateway publish the past, a day at a time, and say how far it is.

    Args:
        client: Of the console.
        days: How many.
        every: Between two readings of a sensor, as a duration of the language.
        until: When it ends, ISO 8601 (UTC where it names no zone); empty: now.

    Raises:
        DeploymentError: An option is out of range, a gateway cannot do it, or none simulates.
    """
    if not 1 <= days <= MAX_DAYS:
        raise DeploymentError(f"--days {days}?", hint=f"use 1 to {MAX_DAYS}")
    seconds = _seconds(every)
    end = _end(until).replace(minute=0, second=0, microsecond=0)
    sites = client.get("/api/sites")
    gateways = [s["site"] for s in sites if s["role"] == "gateway" and s["online"]]
    hours = days * _HOURS
    silent: set[str] = set()
    readings, began = 0, time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar = shown.add_task("the past", total=hours * max(len(gateways), 1))
        for first in range(0, hours, _HOURS):
            since = end - timedelta(hours=hours - first)
            for gateway in gateways:
                if gateway not in silent:
                    body = {
                        "gateway": gateway,
                        "since": since.isoformat(),
                        "hours": _HOURS,
                        "every_seconds": seconds,
                    }
                    answer = client.post("/api/simulate/past", body)
                    if answer["message"] == _NOTHING:
                        silent.add(gateway)
                    elif not answer["done"]:
                        raise _failed(gateway, answer)
                    readings += answer["readings"]
                rate = readings / max(time.monotonic() - began, 0.001)
                what = f"{readings:,} readings, {rate:,.0f} a second"
                shown.update(bar, advance=_HOURS, description=what)
    if len(silent) == len(gateways):
        raise DeploymentError(
            "no gateway that is online simulates a building",
            hint="pando up without --replay has gateways that do",
        )
    if not readings:
        raise DeploymentError(
            "nobody keeps readings, so none were published",
            hint="start pando up without --no-spark, and see that the lander runs",
        )
    taken = time.monotonic() - began
    typer.echo(
        f"published {readings:,} readings of {days} days until {end:%Y-%m-%d %H:%M} UTC in "
        f"{taken:.0f} s; pando lake status says when they are kept"
    )


def _failed(gateway: str, answer: dict[str, Any]) -> DeploymentError:
    return DeploymentError(
        f"{gateway} has stopped publishing the past: {answer['message']}",
        hint="run the command again: what is kept already counts once",
    )


def _seconds(every: str) -> int:
    try:
        micros = parse_duration(every)
    except ValueError as error:
        raise DeploymentError(f"--every {every!r}?", hint="use e.g. '10 min'") from error
    if not 60_000_000 <= micros <= 3_600_000_000:
        raise DeploymentError(f"--every {every!r}?", hint="use '1 min' to '1 h'")
    return micros // 1_000_000


def _end(until: str) -> datetime:
    now = datetime.now(UTC)
    if not until:
        return now
    try:
        end = datetime.fromisoformat(until)
    except ValueError as error:
        raise DeploymentError(
            f"--until {until!r}?", hint="use e.g. 2026-11-27T12:00:00Z"
        ) from error
    end = end.astimezone(UTC) if end.tzinfo else end.replace(tzinfo=UTC)
    if end > now:
        raise DeploymentError(f"--until {until} is not past")
    return end
