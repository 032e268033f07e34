"""A federation started as a user would, for tests: `pando up --format json`."""

import contextlib
import functools
import json
import os
import signal
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

from broker.free_ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PANDO = (sys.executable, "-P", "-c", "from deploy.cli.main import app; app()")
PATIENCE = 90.0
"""Seconds that anything may take on a machine which does much else; nothing waits for longer than
it must."""
POLL_SECONDS = 0.1

Row = tuple[Any, ...]


class Federation:
    """One `pando up` and what it said."""

    def __init__(
        self,
        data: Path,
        *options: str,
        port: int | None = None,
        folder: Path | None = None,
        state: Path | None = None,
    ) -> None:
        self.data = data
        self.not_json: list[str] = []
        self.port = port or free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.events: list[dict[str, Any]] = []
        self.environment = {
            **os.environ,
            "PANDO_CONSOLE": self.address,
            "XDG_STATE_HOME": str(state or data / "user-state"),
            "PYTHONPATH": str(ROOT),
        }
        arguments = ("up", "--format", "json", "--port", str(self.port), "--data", str(data))
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*PANDO, *arguments, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=folder,
        )
        self._errors: list[str] = []
        self._readers = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read, self._read_errors)
        ]
        for reader in self._readers:
            reader.start()
        self.http = httpx.Client(base_url=self.address, timeout=PATIENCE, trust_env=False)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                self.events.append(json.loads(line))
            except ValueError:
                self.not_json.append(line)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)

    def wait_ready(self) -> dict[str, Any]:
        """Return the ready line; fails at once when it ends before."""

        def ready_or_over() -> dict[str, Any] | None:
            found = self.event("ready")
            assert found or self.process.poll() is None, self.said()
            return found

        found: dict[str, Any] = wait(ready_or_over, PATIENCE, self.said)
        return found

    def event(self, kind: str, **facts: Any) -> dict[str, Any] | None:
        """Return the first line of a kind with these facts, or None."""
        for line in self.events:
            if line.get("event") == kind and all(line.get(k) == v for k, v in facts.items()):
                return line
        return None

    def until(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """Return the first true value of a condition; fails, with what was said, in the end."""
        return wait(condition, seconds, self.said)

    def said(self) -> str:
        """Return the last lines of both outputs."""
        lines = [json.dumps(line) for line in self.events[-25:]]
        return "\n".join([*lines, *self._errors[-10:]])

    def refused(self) -> str:
        """Wait until it ends with the status of a user's error; return its standard error."""
        assert self.process.wait(PATIENCE) == 2, self.said()
        self.close()
        return "".join(self._errors)

    def pid(self, service: str) -> int:
        """Return a service's process id."""
        services = json.loads((self.data / "run" / "services.json").read_text())
        return int(services[service]["pid"])

    def pids(self) -> list[int]:
        """Return all service process ids."""
        services = json.loads((self.data / "run" / "services.json").read_text())
        return [int(facts["pid"]) for facts in services.values()]

    def pando(
        self, *arguments: str, stdin: str = "", timeout: float = PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line against this federation."""
        return subprocess.run(
            [*PANDO, *arguments],
            input=stdin,
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

    def simulate(self, action: str, target: str) -> None:
        """Let something happen in the simulated building."""
        order = {"action": action, "target": target}
        answer = self.http.post("/api/simulate", json=order)
        assert answer.is_success, answer.text

    def features(self, kind: str) -> list[dict[str, Any]]:
        """Return the properties of the map's features of a kind."""
        found = (f["properties"] for f in self._site["features"])
        return [properties for properties in found if properties["feature_type"] == kind]

    @functools.cached_property
    def _site(self) -> dict[str, Any]:
        site: dict[str, Any] = self.http.get("/api/site.geojson").json()
        return site

    def sites(self) -> dict[str, dict[str, Any]]:
        """Return sites by id."""
        return {site["site"]: site for site in self.http.get("/api/sites").json()}

    def served(self) -> set[str]:
        """Return the sources that some gateway offers."""
        return {name for site in self.sites().values() for name in site.get("sources", ())}

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signal the supervisor and return its exit status."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def family(self) -> list[psutil.Process]:
        """Return the processes it has started, and those they have."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def close(self) -> None:
        """Free pipes and connections of an ended federation."""
        for reader in self._readers:
            reader.join(PATIENCE)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.http.close()
        assert self.not_json == [], "every line of --format json is JSON"


@contextlib.contextmanager
def federation(
    data: Path,
    *options: str,
    port: int | None = None,
    folder: Path | None = None,
    state: Path | None = None,
) -> Iterator[Federation]:
    """Yield a ready federation; afterwards nothing of it is left running."""
    running = Federation(data, *options, port=port, folder=folder, state=state)
    family: list[psutil.Process] = []
    try:
        running.wait_ready()
        family = running.family()
        yield running
    finally:
        family = family or running.family()
        try:
            if running.process.poll() is None:
                running.stop()
        finally:
            running.process.kill()
            for process in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            running.process.wait(PATIENCE)
            running.close()


def wait(
    condition: Callable[[], Any],
    seconds: float = PATIENCE,
    explain: Callable[[], str] = lambda: "",
) -> Any:
    """Return the first true value of a condition; fails when time is up."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s\n{explain()}"
        time.sleep(POLL_SECONDS)
