"""Readings a second that one gateway carries through the whole product, to a reader of rows.

    python -m benchmarks.sustained [--quick] [--json]

`pando up --replay` with a recording of so many readings a second and one gateway, for each rate and
both brokers in one run. A count of all readings and every single row are asked for:

* lost: readings that never reached the count;
* late: seconds from the recording's last reading to the count that has it;
* row p50 and p99: milliseconds from a reading's time to its row at a client of server-sent events;
* waiting: most readings seen in the gateway's disk buffer, and those in the end.

The target is 1,000 readings a second with nothing lost and nothing waiting in the end.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks.end_to_end import Up, events_of, milliseconds, quantiles, running
from broker.broker_launch import find_mosquitto
from streamsql.data.types import timestamp_text

BEGIN = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
SENSORS = 50
TARGET = 1_000
PATIENCE = 30.0

Facts = dict[str, Any]


def write_recording(path: Path, rate: int, seconds: float) -> int:
    """Write a CSV of so many readings a second; return how many."""
    count = int(rate * seconds)
    with path.open("w", encoding="utf-8") as file:
        file.write("ts,sensor,number\n")
        for number in range(count):
            ts = BEGIN + number * 1_000_000 // rate
            file.write(f"{timestamp_text(ts)},s{number % SENSORS},{number}\n")
    return count


class RowReader(threading.Thread):
    """Reads every changed row and notes how old it is."""

    def __init__(self, address: str, query: str, origin_wall_ms: float) -> None:
        super().__init__(daemon=True)
        self._url = f"{address}/api/queries/{query}/changes"
        self._shift = origin_wall_ms - BEGIN / 1000
        self.delays: list[float] = []
        self.seen = 0
        self.counting_from = time.time() * 1000

    def run(self) -> None:
        """Read until the federation ends."""
        try:
            with httpx.stream("GET", self._url, timeout=60.0, trust_env=False) as response:
                for event, value in events_of(response.iter_lines()):
                    if event in ("change", "snapshot"):
                        self._take(value["changes"])
        except httpx.HTTPError:
            return  # the federation has been stopped

    def _take(self, changes: list[Facts]) -> None:
        now = time.time() * 1000
        self.seen += len(changes)
        for change in changes:
            read = milliseconds(change["row"]["ts"]) + self._shift
            if read > self.counting_from:  # what was made up for at the start is no measure
                self.delays.append(now - read)


def start(up: Up, text: str) -> str:
    """Start a query and return its id."""
    return str(up.http.post("/api/statements", json={"text": text}).json()[-1]["query"]["id"])


def measure(rate: int, seconds: float, *, mosquitto: bool) -> Facts:
    """Return what one rate gives."""
    folder = Path(tempfile.mkdtemp(prefix="pando-bench-"))
    recording = folder / "readings.csv"
    offered = write_recording(recording, rate, seconds)
    more = ("--replay", str(recording), "--gateways", "1")
    try:
        with running(folder / "data", mosquitto=mosquitto, spark=False, more=more) as up:
            clock = json.loads((up.data / "run" / "gw-1.json").read_text())["clock"]
            ends = clock["origin_wall"] / 1e6 + seconds
            count = start(up, "SELECT COUNT(*) AS n FROM readings")
            rows = start(up, "SELECT sensor, number, ts FROM readings")
            reader = RowReader(up.address, rows, clock["origin_wall"] / 1000)
            reader.start()
            found, most, left = 0, 0, 0
            while found < offered and time.time() < ends + PATIENCE:
                time.sleep(0.1)
                shown = up.http.get(f"/api/queries/{count}/rows").json()["rows"]
                found = shown[0]["n"] if shown else 0
                sites = {site["site"]: site for site in up.http.get("/api/sites").json()}
                left = (sites["gw-1"]["buffer"] or {}).get("stored", 0)
                most = max(most, left)
            late = time.time() - ends
            deadline = time.monotonic() + PATIENCE
            while reader.seen < offered and time.monotonic() < deadline:
                time.sleep(0.05)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "broker": "mosquitto" if mosquitto else "embedded",
        "rate": rate,
        "offered": offered,
        "lost": offered - found,
        "rows_lost": offered - reader.seen,
        "late_s": late,
        "reading_to_row_ms": quantiles(reader.delays),
        "waiting_most": most,
        "waiting_end": left,
    }


def report(results: list[Facts]) -> None:
    """Print one line per rate and broker."""
    table = Table(
        "broker", "readings/s", "lost", "late, s", "row p50, ms", "row p99, ms", "waiting"
    )
    for result in results:
        delay = result["reading_to_row_ms"]
        shown = ["-" if delay[q] is None else f"{delay[q]:.1f}" for q in ("p50", "p99")]
        waiting = f"{result['waiting_most']} → {result['waiting_end']}"
        table.add_row(
            result["broker"],
            f"{result['rate']:,}",
            str(max(result["lost"], result["rows_lost"])),
            f"{result['late_s']:.1f}",
            *shown,
            waiting,
        )
    Console().print(table)


def main() -> int:
    """Measure and print; status 1 when the target rate loses anything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rates = (TARGET,) if arguments.quick else (200, TARGET, 2 * TARGET, 4 * TARGET)
    seconds = 2.0 if arguments.quick else 30.0
    kinds = [False, *([True] if find_mosquitto() else [])]
    results = [measure(rate, seconds, mosquitto=kind) for rate in rates for kind in kinds]
    if arguments.json:
        json.dump({"load": os.getloadavg(), "results": results}, sys.stdout)
    else:
        report(results)
    return int(any(r["lost"] or r["rows_lost"] for r in results if r["rate"] <= TARGET))


if __name__ == "__main__":
    sys.exit(main())
