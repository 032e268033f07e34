"""Costs of 2 or 10 queries over the same rows for network and base site, shared and alone.

    python -m benchmarks.equal_queries [--quick] [--json] [--counts 0 1 2 10] [--seconds 20]

Starts `pando up` with the simulated building and a join of seats and rooms several times: shared,
and with `WITH (shared = 'no')`, in turn. A client of the broker counts what the sites send each
other for these queries, and the batches of their results.

    equal        all have one text: they are one run
    different    each has a column of its own: they share the fragments of the gateways
    alone        each ships everything

    messages/s, bytes/s    between sites, for queries
    result bytes/s         from the base site to the coordinator
    base CPU               percent of a core that the base site takes, for all else, too (0 queries)
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks._figures import print_tables
from benchmarks.end_to_end import ONE_GATEWAY, Up, running
from host.mqtt import Message, open_client

QUERY = (
    "SELECT s.mid, s.weightLevel, s.ts, r.status{column} FROM SeatSensor s "
    "JOIN Machines m ON s.mid = m.mid JOIN RoomSensor r ON m.rid = r.rid{options}"
)
EQUAL, DIFFERENT, ALONE = "equal", "different", "alone"
COUNTS = (0, 1, 2, 10)
SETTLED_SECONDS = 60.0
EXCHANGE, OUTPUT = "x", "out"

Facts = dict[str, float]


class Counter:
    """Counts the batches of some queries on a broker."""

    def __init__(self, queries: list[str]) -> None:
        self.queries = frozenset(queries)
        self.messages: dict[str, int] = {EXCHANGE: 0, OUTPUT: 0}
        self.bytes: dict[str, int] = {EXCHANGE: 0, OUTPUT: 0}

    def hear(self, burst: list[Message]) -> None:
        """Count some messages."""
        for message in burst:
            query, kind = message.topic.split("/")[4:6]
            if query in self.queries:
                self.messages[kind] += 1
                self.bytes[kind] += len(message.payload)


def start(up: Up, count: int, kind: str) -> list[str]:
    """Start queries of a kind and wait until they have rows; return their ids."""
    options = " WITH (shared = 'no')" if kind == ALONE else ""
    queries = []
    for number in range(count):
        column = f", {number} AS n" if kind == DIFFERENT else ""
        text = QUERY.format(column=column, options=options)
        said = up.http.post("/api/statements", json={"text": text})
        said.raise_for_status()
        queries.append(said.json()[-1]["query"]["id"])
    end = time.monotonic() + SETTLED_SECONDS
    for query in queries:
        while not up.http.get(f"/api/queries/{query}").json()["rows"]:
            if time.monotonic() > end:
                raise TimeoutError(f"query {query} has no rows")
            time.sleep(0.05)
    return queries


async def count_for(
    url: str, topics: tuple[str, ...], queries: list[str], seconds: float
) -> tuple[Counter, float]:
    """Return what is published of queries meanwhile, and for how long that was counted."""
    client, counter = open_client(url, "equal-queries"), Counter(queries)
    client.on_messages(counter.hear)
    await client.connect()
    await client.subscribe(*topics)
    began = time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    await client.close()
    return counter, took


def measure(up: Up, count: int, seconds: float, kind: str) -> Facts:
    """Return what so many queries of a kind cost a second."""
    config = json.loads((up.data / "run" / "base.json").read_text())
    services = json.loads((up.data / "run" / "services.json").read_text())
    base = psutil.Process(services["base"]["pid"])
    queries = start(up, count, kind)
    time.sleep(min(1.0, seconds / 4))  # what was sent to begin with has come
    root = f"pando/v1/{config['site']}/q/+"
    before = base.cpu_times()
    counter, took = asyncio.run(
        count_for(config["broker"], (f"{root}/x/+/+", f"{root}/out/+"), queries, seconds)
    )
    after = base.cpu_times()
    for query in queries:
        up.http.delete(f"/api/queries/{query}").raise_for_status()
    worked = after.user + after.system - before.user - before.system
    return {
        "messages/s": counter.messages[EXCHANGE] / took,
        "bytes/s": counter.bytes[EXCHANGE] / took,
        "result bytes/s": counter.bytes[OUTPUT] / took,
        "base CPU": 100 * worked / took,
    }


def compare(
    data: Path, counts: list[int], seconds: float, more: tuple[str, ...]
) -> dict[str, dict[str, Facts]]:
    """Return the figures by number of queries and kind."""
    found: dict[str, dict[str, Facts]] = {}
    with running(data, mosquitto=False, spark=False, more=more) as up:
        for count in counts:
            kinds = (EQUAL, DIFFERENT, ALONE) if count > 1 else (ALONE,)
            found[f"{count} queries"] = {k: measure(up, count, seconds, k) for k in kinds}
    return found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two queries, one gateway, one second")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--counts", type=int, nargs="+", help="numbers of queries")
    parser.add_argument("--seconds", type=float, help="of each measurement")
    options = parser.parse_args()
    counts = options.counts or list((2,) if options.quick else COUNTS)
    seconds = options.seconds or (1.0 if options.quick else 20.0)
    with tempfile.TemporaryDirectory() as folder:
        found = compare(Path(folder), counts, seconds, ONE_GATEWAY if options.quick else ())
    result: dict[str, Any] = {"quick": options.quick, "seconds": seconds, "queries": found}
    if options.json:
        print(json.dumps(result))
        return
    for title, table in found.items():
        print_tables({title: table}, digits=1)


if __name__ == "__main__":
    main()
