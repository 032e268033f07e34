"""The whole federation as a user has it: time to usable, reading to row, memory at rest.

Starts `pando up` with the simulated building, once with the embedded broker and once with Mosquitto
(when it is installed), in one run, and measures

* seconds from process start until the console answers and all gateways are online (cold: empty data
  directory, warm: the same again);
* milliseconds from a device's reading at its gateway to the changed row at a reader of server-sent
  events, and to the changed map;
* memory of every process at rest.

    python -m benchmarks.end_to_end [--quick] [--json] [--spark]
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
from rich.console import Console
from rich.table import Table

from broker.broker_launch import find_mosquitto
from broker.free_ports import free_port
from streamsql.data.types import timestamp_of

PANDO = (sys.executable, "-c", "from deploy.cli.main import app; app()")
READY_SECONDS = 120.0
TARGET_MS, TARGET_MB = 150.0, 600.0
ONE_GATEWAY = ("--gateways", "1")
QUERY = "SELECT mid, weightLevel, ts FROM SeatSensor"

Facts = dict[str, Any]


class Up:
    """One running federation."""

    def __init__(
        self, data: Path, *, mosquitto: bool, spark: bool, more: tuple[str, ...] = ()
    ) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.data = data
        options = ["--port", str(self.port), "--data", str(data), "--format", "json"]
        environment = dict(os.environ, XDG_STATE_HOME=str(data))
        options += ["--broker", "mosquitto" if mosquitto else "embedded"]
        began = time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603
            [*PANDO, "up", *options, *more, *([] if spark else ["--no-spark"])],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.ready_seconds = self._wait_ready(began)
        threading.Thread(target=self._drain, daemon=True).start()
        self.http = httpx.Client(base_url=self.address, timeout=30.0, trust_env=False)

    def _wait_ready(self, began: float) -> float:
        if self.process.stdout is None:
            raise RuntimeError("no output")
        for line in self.process.stdout:
            if json.loads(line).get("ready"):
                return time.monotonic() - began
        raise RuntimeError("the federation ended before it was ready")

    def _drain(self) -> None:
        for _ in self.process.stdout or ():
            continue

    def memory(self) -> dict[str, float]:
        """Return megabytes of resident memory by service; the JVM counts for static."""
        services = json.loads((self.data / "run" / "services.json").read_text())
        found = {}
        for name, facts in services.items():
            process = psutil.Process(facts["pid"])
            family = [process, *process.children(recursive=True)]
            found[name] = sum(p.memory_info().rss for p in family) / 1e6
        return found

    def close(self) -> None:
        """Stop it and wait."""
        self.http.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def running(
    data: Path, *, mosquitto: bool, spark: bool, more: tuple[str, ...] = ()
) -> Iterator[Up]:
    """Yield a ready federation, started with more options."""
    up = Up(data, mosquitto=mosquitto, spark=spark, more=more)
    try:
        yield up
    finally:
        up.close()


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Yield (event, value) of a server-sent event stream."""
    event = ""
    for line in lines:
        if line.startswith("event: "):
            event = line[7:]
        elif line.startswith("data: "):
            yield event, json.loads(line[6:])


def row_delays(up: Up, seconds: float) -> list[float]:
    """Return milliseconds from readings to rows at a reader."""
    query = up.http.post("/api/statements", json={"text": QUERY}).json()[-1]["query"]["id"]
    delays: list[float] = []
    end = time.monotonic() + seconds
    settled = time.monotonic() + min(3.0, seconds / 3)
    with httpx.stream(
        "GET", f"{up.address}/api/queries/{query}/changes", timeout=30.0, trust_env=False
    ) as response:
        for event, value in events_of(response.iter_lines()):
            now = time.time() * 1000
            if time.monotonic() > end:
                break
            if event != "change" or time.monotonic() < settled:
                continue
            rows = [change["row"] for change in value["changes"] if change["diff"] > 0]
            delays.extend(now - milliseconds(row["ts"]) for row in rows)
    up.http.delete(f"/api/queries/{query}")
    return delays


def map_delays(up: Up, seconds: float) -> list[float]:
    """Return milliseconds from readings to the map's events, by their oldest reading."""
    delays: list[float] = []
    begin = time.monotonic()
    with httpx.stream("GET", f"{up.address}/api/map/events", timeout=30.0, trust_env=False) as r:
        for _event, value in events_of(r.iter_lines()):
            now = time.time() * 1000
            if time.monotonic() - begin > seconds:
                break
            if time.monotonic() - begin < min(3.0, seconds / 3):
                continue
            changes = value.get("changes", []) if isinstance(value, dict) else []
            delays.extend(
                now - milliseconds(change["reading_ts"])
                for change in changes
                if isinstance(change, dict) and change.get("reading_ts")
            )
    return delays


def milliseconds(text: str) -> float:
    """Return a time as milliseconds since 1970."""
    return timestamp_of(datetime.fromisoformat(text).astimezone(UTC)) / 1000


def quantiles(values: list[float]) -> Facts:
    """Return count, p50 and p99."""
    if len(values) < 2:
        return {"count": len(values), "p50": None, "p99": None}
    ordered = sorted(values)
    last = min(int(len(ordered) * 0.99), len(ordered) - 1)
    return {"count": len(values), "p50": statistics.median(ordered), "p99": ordered[last]}


def measure(*, mosquitto: bool, spark: bool, seconds: float, more: tuple[str, ...] = ()) -> Facts:
    """Return all figures with one kind of broker."""
    folder = Path(tempfile.mkdtemp(prefix="pando-bench-"))
    try:
        with running(folder, mosquitto=mosquitto, spark=spark, more=more) as up:
            cold = up.ready_seconds
            time.sleep(3)
            memory = up.memory()
            rows = quantiles(row_delays(up, seconds))
            drawn = quantiles(map_delays(up, seconds))
        with running(folder, mosquitto=mosquitto, spark=spark, more=more) as up:
            warm = up.ready_seconds
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    without_spark = sum(size for name, size in memory.items() if name != "static")
    return {
        "broker": "mosquitto" if mosquitto else "embedded",
        "ready_cold_s": cold,
        "ready_warm_s": warm,
        "reading_to_row_ms": rows,
        "reading_to_map_ms": drawn,
        "memory_mb": memory,
        "memory_without_static_mb": without_spark,
    }


def report(results: list[Facts]) -> None:
    """Print a table with targets and ratios."""
    table = Table("", *(result["broker"] for result in results), "target")

    def line(label: str, values: list[float | None], target: str) -> None:
        shown = ["-" if value is None else f"{value:.1f}" for value in values]
        table.add_row(label, *shown, target)

    line("cold start to usable, s", [r["ready_cold_s"] for r in results], "10")
    line("warm start to usable, s", [r["ready_warm_s"] for r in results], "10")
    for key, label in (("reading_to_row_ms", "reading to row"), ("reading_to_map_ms", "to map")):
        line(f"{label} p50, ms", [r[key]["p50"] for r in results], "")
        line(f"{label} p99, ms", [r[key]["p99"] for r in results], f"{TARGET_MS:.0f}")
    line(
        "memory but static, MB",
        [r["memory_without_static_mb"] for r in results],
        f"{TARGET_MB:.0f}",
    )
    Console().print(table)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one broker, one gateway, a second")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--spark", action="store_true", help="with Spark warming up beside it")
    arguments = parser.parse_args()
    seconds, more = (1.0, ONE_GATEWAY) if arguments.quick else (30.0, ())
    kinds = [False, *([True] if find_mosquitto() and not arguments.quick else [])]
    results = [
        measure(mosquitto=m, spark=arguments.spark, seconds=seconds, more=more) for m in kinds
    ]
    if arguments.json:
        json.dump({"load": os.getloadavg(), "results": results}, sys.stdout)
    else:
        report(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
