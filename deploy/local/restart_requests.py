"""Restart of one service of a running federation: the command line asks, the supervisor answers.

A request is an empty file, named like the service, in a folder of the data directory.
"""

import contextlib
import json
import time
from collections.abc import Callable

from deploy.local.layout import Layout
from deploy.local.service_processes import Services
from deploy.local.up_reports import Reporter
from host.files.file_lock import is_locked
from streamsql.errors import DeploymentError

POLL_SECONDS = 0.1


def request_restart(layout: Layout, service: str) -> int:
    """Ask the running federation to start a service again; return the process id it has now.

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
    (layout.restart_requests / service).touch()
    return known[service]


def wait_for_restart(
    layout: Layout, service: str, before: int, is_ready: Callable[[], bool], seconds: float
) -> bool:
    """Wait until a service has another process id than `before` and is ready.

    Args:
        layout: Of the federation's data directory.
        service: Which one.
        before: From `request_restart`.
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


async def answer_restart_requests(
    layout: Layout, services: Services, reporter: Reporter, on_restart: Callable[[], None]
) -> None:
    """Restart the services that were asked for, and report it.

    `on_restart` is called before a restart is reported, so that the list of processes has it.
    """
    requests = layout.restart_requests
    for request in sorted(requests.iterdir()) if requests.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):
            request.unlink()
        if request.name not in services:
            message = f"asked to restart {request.name!r}: there is no such service"
            reporter.event("warning", message)
            continue
        service = await services.restart(request.name)
        on_restart()
        reporter.event(
            "restarted",
            f"{request.name} started again (pid {service.pid})",
            service=request.name,
            pid=service.pid,
        )


def discard_restart_requests(layout: Layout) -> None:
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
