"""The federation that the benchmark of a fleet runs: its names, its source, its processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil

from broker.free_ports import HOST, free_port
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.syntax import parse_script

ROOT = Path(__file__).resolve().parents[2]
SITE = "bench"
SOURCE = "CREATE SOURCE climate (device TEXT, celsius DOUBLE, KEY (device))"
QUERY = "SELECT device, celsius FROM climate"
PATIENCE = 120.0
_PER_PROCESS = 50


def gateway_name(number: int) -> str:
    """Return the id of a simulated gateway."""
    return f"gw-{number}"


def source() -> SourceDefinition:
    """Return the source that every gateway has."""
    (statement,) = parse_script(SOURCE)
    found = define(statement, Catalog(()))
    assert isinstance(found, SourceDefinition)  # noqa: S101 - a constant of ours
    return found


def until(condition: Callable[[], bool], what: str, pause: float = 0.1) -> float:
    """Wait until something is so; return the seconds that it took.

    Raises:
        TimeoutError: It is not in time.
    """
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + PATIENCE:
            raise TimeoutError(what)
        time.sleep(pause)
    return time.monotonic() - began


class Process:
    """A process of the benchmark, from the tree that is measured; also a context manager."""

    def __init__(self, tree: Path, log: Path, module: str, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", module, *arguments],
                cwd=tree,
                env=environment,
                stdout=output,
                stderr=output,
            )
        self.measured = psutil.Process(self._process.pid)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)

    def cpu(self) -> float:
        """Return the seconds of CPU that it has taken, user and system."""
        times = self.measured.cpu_times()
        return float(times.user + times.system)

    def megabytes(self) -> float:
        """Return its resident memory."""
        return float(self.measured.memory_info().rss) / 1e6


class Console:
    """The coordinator's process, asked as users ask it."""

    def __init__(self, tree: Path, folder: Path, broker: str) -> None:
        self.port = free_port()
        data = folder / "console"
        config = folder / "console.json"
        settings = {"broker": broker, "data_dir": str(data), "port": self.port, "site": SITE}
        config.write_text(json.dumps(settings), encoding="utf-8")
        log = folder / "console.log"
        self.process = Process(tree, log, "deploy.console", "--config", str(config))
        self._http = httpx.Client(
            base_url=f"http://{HOST}:{self.port}", timeout=30.0, trust_env=False
        )

    def __enter__(self) -> "Console":
        until(self._answers, "the console does not answer")
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self.process.__exit__()

    def run(self, text: str) -> Any:
        """Run a statement."""
        answer = self._http.post("/api/statements", json={"text": text})
        answer.raise_for_status()
        return answer.json()

    def live_gateways(self) -> int:
        """Return how many gateways are live."""
        sites = self._http.get("/api/sites").json()
        return sum(s["role"] == "gateway" and s["freshness"] == "live" for s in sites)

    def rows(self) -> int:
        """Return the rows of all results."""
        return sum(query["rows"] for query in self._http.get("/api/queries").json())

    def _answers(self) -> bool:
        try:
            return self._http.get("/api/health").status_code == 200
        except httpx.TransportError:
            return False


class Base:
    """The base site, which every result comes from; also a context manager."""

    def __init__(self, folder: Path, broker: str) -> None:
        port = free_port()
        config = folder / "base.json"
        settings = {
            "site": SITE,
            "gateway": "base",
            "role": "base",
            "broker": broker,
            "data_dir": str(folder / "base"),
            "metrics_port": port,
        }
        config.write_text(json.dumps(settings), encoding="utf-8")
        self._metrics = f"http://{HOST}:{port}/metrics"
        self.process = Process(ROOT, folder / "base.log", "gateway", "--config", str(config))

    def __enter__(self) -> "Base":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.__exit__()

    def readings(self) -> int:
        """Return the readings that have come: each takes a row away and adds one."""
        text = httpx.get(self._metrics, trust_env=False, timeout=30.0).text
        name = 'pando_gateway_channel_rows{direction="in"} '
        return int(text.partition(name)[2].partition("\n")[0]) // 2


def start_gateways(folder: Path, broker: str, count: int) -> Sequence[Process]:
    """Start so many simulated gateways, in processes of up to fifty."""
    module = "benchmarks._fleet_cost.simulated_gateways"
    return [
        Process(
            ROOT,
            folder / f"gateways-{first}.log",
            module,
            *(broker, str(first), str(min(_PER_PROCESS, count + 1 - first))),
        )
        for first in range(1, count + 1, _PER_PROCESS)
    ]
