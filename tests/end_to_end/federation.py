"""A federation started as a user would, for tests: `pando up --format json`."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil

PANDO = (sys.executable, "-c", "from deploy.cli.main import run_app; run_app()")
READY_SECONDS = 60.0
POLL_SECONDS = 0.1

Row = tuple[Any, ...]


def free_port() -> int:
    """Return a loopback port that is free at present."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Federation:
    """One `pando up` and what it said."""

    def __init__(self, data: Path, *options: str, port: int | None = None) -> None:
        self.data = data
        self.port = port or free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.events: list[dict[str, Any]] = []
        self.environment = {
            **os.environ,
            "PANDO_CONSOLE": self.address,
            "XDG_STATE_HOME": str(data / "user-state"),
        }
        arguments = ("up", "--format", "json", "--port", str(self.port), "--data", str(data))
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*PANDO, *arguments, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        self._errors: list[str] = []
        self._readers = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read, self._read_errors)
        ]
        for reader in self._readers:
            reader.start()
        self.http = httpx.Client(base_url=self.address, timeout=30.0, trust_env=False)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                self.events.append(json.loads(line))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)

    def wait_ready(self) -> dict[str, Any]:
        """Return the ready line."""
        found: dict[str, Any] = wait(lambda: self.event("ready"), READY_SECONDS, self.said)
        return found

    def event(self, kind: str, **facts: Any) -> dict[str, Any] | None:
        """Return the first line of a kind with these facts, or None."""
        for line in self.events:
            if line.get("event") == kind and all(line.get(k) == v for k, v in facts.items()):
                return line
        return None

    def said(self) -> str:
        """Return the last lines of both outputs."""
        lines = [json.dumps(line) for line in self.events[-25:]]
        return "\n".join([*lines, *self._errors[-10:]])

    def refused(self) -> str:
        """Wait until it ends with the status of a user's error; return what it said."""
        assert self.process.wait(30) == 2, self.said()
        self.close()
        return self.said()

    def pid(self, service: str) -> int:
        """Return a service's process id."""
        services = json.loads((self.data / "run" / "services.json").read_text())
        return int(services[service]["pid"])

    def pids(self) -> list[int]:
        """Return all service process ids."""
        services = json.loads((self.data / "run" / "services.json").read_text())
        return [int(facts["pid"]) for facts in services.values()]

    def pando(self, *arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run the command line against this federation."""
        return subprocess.run(
            [*PANDO, *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.environment,
            check=False,
        )

    def start_query(self, sql: str) -> str:
        """Start a continuous query and return its id."""
        answer = self.http.post("/api/statements", json={"text": sql})
        assert answer.is_success, answer.text
        return str(answer.json()[-1]["query"]["id"])

    def stop_query(self, query: str) -> None:
        """Stop a query."""
        self.http.delete(f"/api/queries/{query}")

    def query(self, query: str) -> dict[str, Any]:
        """Return what the console knows of a query."""
        found: dict[str, Any] = self.http.get(f"/api/queries/{query}").json()
        return found

    def rows(self, query: str) -> set[Row]:
        """Return the current relation; fails on duplicates."""
        shown = self.http.get(f"/api/queries/{query}/rows").json()
        bag = Counter(tuple(row.values()) for row in shown["rows"])
        assert all(count == 1 for count in bag.values()), bag
        return set(bag)

    def sites(self) -> dict[str, dict[str, Any]]:
        """Return sites by id."""
        return {site["site"]: site for site in self.http.get("/api/sites").json()}

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signal the supervisor and return its exit status."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        return self.process.wait(30)

    def close(self) -> None:
        """Free pipes and connections of an ended federation."""
        for reader in self._readers:
            reader.join(10)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.http.close()


@contextlib.contextmanager
def federation(data: Path, *options: str) -> Iterator[Federation]:
    """Yield a ready federation; afterwards nothing of it is left running."""
    running = Federation(data, *options)
    pids: list[int] = []
    try:
        running.wait_ready()
        pids = running.pids()
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()
        running.close()
        alive = [pid for pid in pids if psutil.pid_exists(pid)]
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def wait(
    condition: Callable[[], Any], seconds: float, explain: Callable[[], str] = lambda: ""
) -> Any:
    """Return the first true value of a condition; fails when time is up."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s\n{explain()}"
        time.sleep(POLL_SECONDS)
