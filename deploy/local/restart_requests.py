"""Restart or stop of one service: the command line asks, the supervisor answers.

A request is an empty file in a folder of the data directory: `gw-1.restart`, `gw-1.stop`, …
"""

import contextlib
import json
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from deploy.local.layout import Layout
from deploy.local.restarts import Restarts
from deploy.local.service_processes import Services
from deploy.local.up_reports import Reporter
from host.files.file_lock import is_locked
from streamsql.errors import DeploymentError

POLL_SECONDS = 0.1


class Verb(StrEnum):
    """A request. KILL ends the process as a power failure does."""

    RESTART = "restart"
    STOP = "stop"
    KILL = "kill"


def request(layout: Layout, service: str, verb: Verb = Verb.RESTART) -> int:
    """Ask the running federation to do something; return the process id that the service has now.

    Raises:
        DeploymentError: No federation runs here, or it has no such service.
    """
    known = _running(layout)
    if not known:
        raise DeploymentError(
            f"no federation runs on data directory {layout.root}",
            hint="start one with `pando up`, or name its directory with --data",
        )
    if service not in known:
        names = ", ".join(sorted(known))
        raise DeploymentError(f"there is no service {service!r}", hint=f"one of: {names}")
    layout.restart_requests.mkdir(parents=True, exist_ok=True)
    (layout.restart_requests / f"{service}.{verb}").touch()
    return known[service]


def wait_for_restart(
    layout: Layout, service: str, before: int, is_ready: Callable[[], bool], seconds: float
) -> bool:
    """Wait until a service has another process id than `before` and is ready.

    Args:
        layout: Of the federation's data directory.
        service: Which one.
        before: From `request`.
        is_ready: Asked as soon as there is another process.
        seconds: How long at most.

    Returns:
        False when the time is up.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if _running(layout).get(service, before) != before and is_ready():
            return True
        time.sleep(POLL_SECONDS)
    return False


async def answer_requests(
    layout: Layout,
    services: Services,
    reporter: Reporter,
    on_restart: Callable[[], None],
    restarts: Restarts,
) -> None:
    """Do what was asked for, and report it.

    Args:
        layout: Of the federation's data directory.
        services: All of them.
        reporter: Is told.
        on_restart: Called before a restart is reported, so that the list of processes has it.
        restarts: Of the services that died; who is stopped on request stays so.
    """
    requests = layout.restart_requests
    for asked in sorted(requests.iterdir()) if requests.is_dir() else ():
        name, verb = asked.stem, _taken(asked)
        if verb is None:
            continue
        if name not in services:
            reporter.event("warning", f"asked to {verb} {name!r}: there is no such service")
            continue
        restarts.forget(name)
        if verb is not Verb.RESTART:
            await services.stop_one(name, kill=verb is Verb.KILL)
            message = f"{name} is stopped on request. Start it again with: pando gateway restart"
            reporter.event("halted", f"{message} {name}", service=name)
            continue
        service = await services.restart(name)
        on_restart()
        message = f"{name} started again (pid {service.pid})"
        reporter.event("restarted", message, service=name, pid=service.pid)


def _taken(asked: Path) -> Verb | None:
    """Remove a request and return its verb; None if it is no request."""
    with contextlib.suppress(FileNotFoundError):
        asked.unlink()
    verb = asked.suffix.removeprefix(".")
    return Verb(verb) if verb in set(Verb) else None


def discard_requests(layout: Layout) -> None:
    """Remove requests that nobody will answer."""
    for request in layout.restart_requests.glob("*"):
        request.unlink(missing_ok=True)


def _running(layout: Layout) -> dict[str, int]:
    """Return the process ids of the services that run here; none after a crash."""
    if not is_locked(layout.lock):
        return {}
    try:
        found = json.loads(layout.processes.read_text(encoding="utf-8"))
        return {name: int(facts["pid"]) for name, facts in found.items()}
    except (OSError, ValueError):
        return {}
