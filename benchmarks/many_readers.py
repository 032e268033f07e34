"""Cost of an update at the coordinator when 1, 100 or 10,000 equal queries show it.

    python -m benchmarks.many_readers [--quick] [--json] [--counts 1 100 10000] [--broker KIND]

Starts a broker, a base site, a gateway and a console as processes of their own. Queries of one text
are registered, which are one run; then readings come, each of which changes a row of the result,
while nobody, one client or a hundred read changes of as many queries.

    CPU/update ms      CPU time of the console for one update, less that at rest
    p50 ms, p99 ms     from the reading at its gateway to the event at a client, where one reads
    MB                 resident memory of the console

How to read it: only ratios within one run mean anything. `to one` compares with one query that as
many clients read.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import httpx

from benchmarks._figures import print_tables
from benchmarks._fleet_cost.federation import ROOT, SOURCE, Base, Console, start_gateways, until
from benchmarks.end_to_end import milliseconds
from benchmarks.fleet import set_rate
from benchmarks.registrations import equal, together
from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess

COUNTS = (1, 100, 10_000)
WATCHED = (0, 1, 100)
RATE = 20.0
"""Readings a second: half of them change a row of the result."""

Figures = dict[str, float | None]


class Watchers:
    """Clients that read the changes of queries, a query each."""

    def __init__(self, port: int, queries: Sequence[str]) -> None:
        self._queries = queries
        self._address = f"http://127.0.0.1:{port}"
        self.events = 0
        self.delays: list[float] = []

    async def watch(self, seconds: float) -> None:
        """Read for some seconds."""
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=30.0, trust_env=False, limits=limits) as http:
            end = time.monotonic() + seconds
            reading = [asyncio.create_task(self._read(http, query)) for query in self._queries]
            await asyncio.sleep(end - time.monotonic())
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)

    async def _read(self, http: httpx.AsyncClient, query: str) -> None:
        address = f"{self._address}/api/queries/{query}/changes?snapshot=false"
        async with http.stream("GET", address) as response:
            kind = ""
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: ") and kind == "change":
                    now = time.time() * 1000
                    self.events += 1
                    read = [c.get("reading_ts") for c in json.loads(line[6:])["changes"]]
                    self.delays.extend(now - milliseconds(text) for text in read if text)


def measure(kind: Preference, counts: Sequence[int], seconds: float) -> dict[str, Figures]:
    """Return figures by the number of queries and of those that are read."""
    table: dict[str, Figures] = {}
    alone: dict[int, float] = {}
    for count in counts:
        for watched, found in _of_count(kind, count, seconds).items():
            cost = found["CPU/update ms"] or 0.0
            base = alone.setdefault(watched, cost)
            found["to one"] = cost / base if base else None
            table[f"{count} queries, {watched} read"] = found
    return table


def _of_count(kind: Preference, count: int, seconds: float) -> dict[int, Figures]:
    """Return figures by the number of queries that are read, in a federation of its own."""
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        broker = running.enter_context(BrokerProcess(kind, folder))
        running.enter_context(Base(folder, broker.url))
        for process in start_gateways(folder, broker.url, 1):
            running.enter_context(process)
        console = running.enter_context(Console(ROOT, folder, broker.url))
        console.run(SOURCE)
        until(lambda: console.live_gateways() == 1, "the gateway is not there")
        console.run(equal(0))
        together(console.port, [equal(0)] * (count - 1))
        set_rate(broker.url, 1, RATE)
        time.sleep(3.0)
        set_rate(broker.url, 1, 0)
        readers = {n: [f"q{1 + number % count}" for number in range(n)] for n in WATCHED}
        return {n: _measured(console, broker.url, r, seconds) for n, r in readers.items()}


def _measured(console: Console, url: str, readers: Sequence[str], seconds: float) -> Figures:
    watchers = Watchers(console.port, readers)

    async def whole() -> tuple[float, float, float]:
        watching = asyncio.create_task(watchers.watch(2 * seconds + 3.0))
        await asyncio.sleep(2.0)  # they have connected
        rest = console.process.cpu()
        await asyncio.sleep(seconds)
        rest = console.process.cpu() - rest
        await asyncio.to_thread(set_rate, url, 1, RATE)
        busy, began = console.process.cpu(), time.monotonic()
        await asyncio.sleep(seconds)
        busy, took = console.process.cpu() - busy, time.monotonic() - began
        await asyncio.to_thread(set_rate, url, 1, 0)
        await watching
        return rest / seconds, busy / took, took

    rest, busy, took = asyncio.run(whole())
    count = RATE * took
    ordered = sorted(watchers.delays)
    return {
        "CPU/update ms": max(busy - rest, 0.0) * took / count * 1e3,
        "CPU at rest, %": rest * 100,
        "p50 ms": median(ordered) if ordered else None,
        "p99 ms": ordered[int(0.99 * (len(ordered) - 1))] if ordered else None,
        "events": float(watchers.events),
        "MB": console.process.megabytes(),
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="10 queries, half a second")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--counts", type=int, nargs="+", help="numbers of queries")
    parser.add_argument("--seconds", type=float, help="of each measurement")
    parser.add_argument("--broker", choices=("mosquitto", "embedded"), help="Mosquitto, if it is")
    options = parser.parse_args()
    broker: Preference = options.broker or ("mosquitto" if find_mosquitto() else "embedded")
    counts = options.counts or ((10,) if options.quick else COUNTS)
    seconds = options.seconds or (0.5 if options.quick else 10.0)
    found = measure(broker, counts, seconds)
    if options.json:
        print(json.dumps({"broker": broker, "queries": found}))
        return
    print_tables({"updates of equal queries": found}, digits=2)


if __name__ == "__main__":
    main()
