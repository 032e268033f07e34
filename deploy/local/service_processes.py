"""Service processes of a federation: started, their logs labelled, watched, restarted, stopped."""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamsql.algebra.user_functions import SETTING

BROKER = "broker"
LANDER = "lander"
STOP_SECONDS = 8.0
MAX_LOG_LINE = 4_000
SOURCES = Path(__file__).resolve().parents[2]
_PR_SET_PDEATHSIG = 1

ADDRESS_VARIABLE = "PANDO_SECRET_"
"""Variables of the environment with addresses of databases begin so."""

OF_PLANS = ("PANDO_METRIC", "PANDO_HEURISTICS", "PANDO_SHARING", "PANDO_MATERIALIZE")
"""Settings of the console that say how queries are planned."""

Log = Callable[[str, str], None]
"""Called with the service's name and one line of its output."""


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What to run.

    Attributes:
        name: Label of its log lines, e.g. "gw-1".
        command: Program and arguments.
        vital: Without it the federation cannot go on; its death stops everything.
        nice: Added to its scheduling niceness.
        stop_seconds: Seconds that it may take to end.
        secrets: Whether it gets the addresses of databases in our environment.
    """

    name: str
    command: tuple[str, ...]
    vital: bool = True
    nice: int = 0
    stop_seconds: float = STOP_SECONDS
    secrets: bool = False


@dataclass(slots=True)
class Service:
    """A running service process."""

    spec: ServiceSpec
    log: Log
    process: asyncio.subprocess.Process | None = None
    stopping: bool = False
    last_lines: list[str] = field(default_factory=list)
    started: float = 0.0
    _reader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process; it gets SIGTERM when this one dies, whatever kills it."""
        spec, parent = self.spec, os.getpid()
        process = await asyncio.create_subprocess_exec(
            *spec.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(secrets=spec.secrets),
            start_new_session=True,
            umask=0o077,
            preexec_fn=lambda: _die_with_parent(parent, spec.nice),
        )
        # Only now: who waits for the process before sees that it was stopped on purpose.
        self.process = process
        self.stopping = False
        self.started = time.monotonic()
        self._reader = asyncio.create_task(self._read(process.stdout))

    @property
    def pid(self) -> int:
        """Process id, or 0."""
        return self.process.pid if self.process is not None else 0

    async def wait(self) -> int | None:
        """Wait for the end of the process.

        Returns:
            The exit status once its log is read too, or None when it was stopped on purpose.
        """
        process, reader = self.process, self._reader
        if process is None or reader is None:
            return None
        status = await process.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(reader), 1.0)
        return None if self.stopping or self.process is not process else status

    async def stop(self) -> None:
        """End the process: SIGTERM, and after a while SIGKILL to its whole group."""
        self.stopping = True
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(self.spec.stop_seconds):
                await process.wait()
        except TimeoutError:
            self.log(self.spec.name, "does not stop and is killed")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _read(self, output: asyncio.StreamReader | None) -> None:
        if output is None:
            return
        lines = LogLines()
        while chunk := await output.read(65_536):
            for line in lines.feed(chunk):
                self._line(line)
        for line in lines.end():
            self._line(line)

    def _line(self, text: str) -> None:
        self.last_lines = [*self.last_lines[-9:], text]
        self.log(self.spec.name, text)


@dataclass(frozen=True, slots=True)
class Death:
    """A service ended although nobody asked it to."""

    service: Service
    status: int
    ran_seconds: float = 0.0

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.service.spec.name

    def __str__(self) -> str:
        """Return what happened, in words."""
        return f"{self.name} (pid {self.service.pid}) {exit_text(self.status)}"


class Services:
    """Services by name, in the order they were started."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._by_name: dict[str, Service] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._deaths: asyncio.Queue[Death] = asyncio.Queue()

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __contains__(self, name: str) -> bool:
        """Whether there is a service of that name."""
        return name in self._by_name

    async def start(self, spec: ServiceSpec) -> Service:
        """Start a service and watch it."""
        service = self._by_name[spec.name] = Service(spec, self._log)
        await service.start()
        self._watch(service)
        return service

    def runs(self, name: str) -> bool:
        """Probe a service's process: True until it has ended."""
        process = self._by_name[name].process
        return process is not None and process.returncode is None

    async def stop_one(self, name: str, *, kill: bool = False) -> None:
        """Stop a service, or kill it without warning; it is no death."""
        service = self._by_name[name]
        if kill and service.process is not None and service.process.returncode is None:
            service.stopping = True
            service.process.kill()
        await service.stop()

    async def restart(self, name: str) -> Service:
        """Start a service again, whether it died or still runs."""
        service = self._by_name[name]
        await service.stop()
        await service.start()
        self._watch(service)
        return service

    def death(self) -> Death | None:
        """Return a death that was not reported yet, or None."""
        return None if self._deaths.empty() else self._deaths.get_nowait()

    async def next_death(self, seconds: float) -> Death | None:
        """Wait for a death, for so many seconds at most."""
        # Not wait_for: before Python 3.12 a death that meets a cancellation would swallow that.
        try:
            async with asyncio.timeout(seconds):
                return await self._deaths.get()
        except TimeoutError:
            return None

    async def stop(self) -> None:
        """Stop all services, the broker last so that the others can announce their end.

        The lander ends before it, so that it lands what gateways publish at their end.
        """
        late = (LANDER, BROKER)
        others = [s for name, s in self._by_name.items() if name not in late]
        await asyncio.gather(*(service.stop() for service in others))
        for name in late:
            if name in self._by_name:
                await self._by_name[name].stop()

    def pids(self) -> dict[str, int]:
        """Return process ids by name."""
        return {name: service.pid for name, service in self._by_name.items()}

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return process ids and commands by name."""
        return {
            name: {"pid": service.pid, "command": list(service.spec.command)}
            for name, service in self._by_name.items()
        }

    def _watch(self, service: Service) -> None:
        async def watch() -> None:
            status = await service.wait()
            if status is not None:
                ran = time.monotonic() - service.started
                self._deaths.put_nowait(Death(service, status, ran))

        task = asyncio.create_task(watch())
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)


class LogLines:
    """Cuts output into lines; a line is cut after `MAX_LOG_LINE` bytes."""

    def __init__(self) -> None:
        self._pending = b""
        self._long = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the lines that a chunk completes; empty ones are left out."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._add(piece)
            yield from self.end()
        self._add(rest)

    def end(self) -> Iterator[str]:
        """Yield the line that has begun, if there is one."""
        text = self._pending.decode("utf-8", "replace").rstrip()
        if text:
            yield text + " …" * self._long
        self._pending, self._long = b"", False

    def _add(self, piece: bytes) -> None:
        room = MAX_LOG_LINE - len(self._pending)
        self._long = self._long or len(piece) > room
        self._pending += piece[:room]


def environment(*, secrets: bool = False) -> dict[str, str]:
    """Return the environment of a service.

    Settings of ours that the user's shell holds (PANDO_DATA, …) are for one service, not for all:
    they are left out, except the modules with functions of the user and what only the console has:
    how queries are planned. Our packages are found wherever `pando` was started, and a folder named
    `ui` there is not mistaken for ours.

    Args:
        secrets: Whether addresses of databases (`PANDO_SECRET_…`) are kept, too.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PANDO_")
        or name == SETTING
        or name in OF_PLANS
        or (secrets and name.startswith(ADDRESS_VARIABLE))
    }
    paths = [str(SOURCES), *filter(None, [kept.get("PYTHONPATH", "")])]
    ours = {"PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}
    return {**kept, **ours}


def exit_text(status: int) -> str:
    """Return what an exit status means, in plain words.

    Examples:
        >>> exit_text(-9), exit_text(2)
        ('was killed by SIGKILL', 'ended with status 2')
    """
    if status < 0:
        try:
            return f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"was killed by signal {-status}"
    return f"ended with status {status}"


def _die_with_parent(parent: int, nice: int) -> None:
    """Ask the kernel for SIGTERM when the parent dies (Linux); lower the priority if asked.

    A parent that has died before we asked is noticed by whose child this is by now.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
    if nice:
        os.nice(nice)
