"""One service process: started, its log labelled, watched, stopped."""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

STOP_SECONDS = 8.0
MAX_LOG_LINE = 4_000
_PR_SET_PDEATHSIG = 1

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
    """

    name: str
    command: tuple[str, ...]
    vital: bool = True
    nice: int = 0


@dataclass(slots=True)
class Service:
    """A running service process."""

    spec: ServiceSpec
    log: Log
    process: asyncio.subprocess.Process | None = None
    stopping: bool = False
    last_lines: list[str] = field(default_factory=list)
    _reader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process; it gets SIGTERM when this one dies, whatever kills it."""
        spec = self.spec
        self.stopping = False
        self.process = await asyncio.create_subprocess_exec(
            *spec.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
            preexec_fn=lambda: _die_with_parent(spec.nice),
            limit=MAX_LOG_LINE * 16,
        )
        self._reader = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        """Process id, or 0."""
        return self.process.pid if self.process is not None else 0

    async def wait(self) -> int:
        """Return the exit status once the process has ended and its log is read."""
        if self.process is None:
            return 0
        status = await self.process.wait()
        if self._reader is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._reader), 1.0)
        return status

    async def stop(self) -> None:
        """End the process: SIGTERM, and SIGKILL to its whole group after eight seconds."""
        self.stopping = True
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            self.log(self.spec.name, "does not stop; killed")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _read(self) -> None:
        if self.process is None or self.process.stdout is None:
            return
        while True:
            try:
                line = await self.process.stdout.readline()
            except ValueError:
                continue
            if not line:
                return
            text = line.decode("utf-8", "replace").rstrip()[:MAX_LOG_LINE]
            self.last_lines = [*self.last_lines[-9:], text]
            self.log(self.spec.name, text)


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


def _die_with_parent(nice: int) -> None:
    """Ask the kernel for SIGTERM when the parent dies (Linux); lower the priority if asked."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if nice:
        os.nice(nice)
