"""What do 2 or 10 equal queries cost the network and the base site, run once or each alone?

    python -m benchmarks.equal_queries [--quick] [--json] [--counts 1 2 10] [--seconds 20]

Starts `pando up` with the simulated building and starts the same query several times: once with
runs shared, once with `WITH (shared = 'no')`, in turn. A client of the broker counts what the sites
send each other for queries, and the batches of results.

    messages/s, bytes/s    between sites, for queries
    result bytes/s         from the base site to the coordinator
    base CPU               percent of a core that the base site takes
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
from benchmarks.end_to_end import Up, running
from host.mqtt import Message, open_client

QUERY = (
    "SELECT s.mid, s.weightLevel, r.status FROM SeatSensor s JOIN Machines m ON s.mid = m.mid "
    "JOIN RoomSensor r ON m.rid = r.rid"
)
COUNTS = (1, 2, 10)
SETTLED_SECONDS = 60.0
EXCHANGE, OUTPUT = "x", "out"

Facts = dict[str, float]


class Counter:
    """Counts the batches of queries on a broker."""

    def __init__(self) -> None:
        self.messages: dict[str, int] = {EXCHANGE: 0, OUTPUT: 0}
        self.bytes: dict[str, int] = {EXCHANGE: 0, OUTPUT: 0}

    def hear(self, burst: list[Message]) -> None:
        """Count some messages."""
        for message in burst:
            kind = message.topic.split("/")[5]
            self.messages[kind] += 1
            self.bytes[kind] += len(message.payload)


def start(up: Up, count: int, *, shared: bool) -> list[str]:
    """Start equal queries and wait until they have settled; return their ids."""
    text = QUERY if shared else f"{QUERY} WITH (shared = 'no')"
    queries = []
    for _ in range(count):
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


async def count_for(url: str, topics: tuple[str, ...], seconds: float) -> tuple[Counter, float]:
    """Return what is published meanwhile, and for how long that was counted."""
    client, counter = open_client(url, "equal-queries"), Counter()
    client.on_messages(counter.hear)
    await client.connect()
    await client.subscribe(*topics)
    began = time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    await client.close()
    return counter, took


def measure(up: Up, count: int, seconds: float, *, shared: bool) -> Facts:
    """Return what so many equal queries cost a second."""
    config = json.loads((up.data / "run" / "base.json").read_text())
    services = json.loads((up.data / "run" / "services.json").read_text())
    base = psutil.Process(services["base"]["pid"])
    queries = start(up, count, shared=shared)
    time.sleep(min(1.0, seconds / 4))  # what was sent to begin with has come
    root = f"pando/v1/{config['site']}/q/+"
    before = base.cpu_times()
    counter, took = asyncio.run(
        count_for(config["broker"], (f"{root}/x/+/+", f"{root}/out/+"), seconds)
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


def compare(data: Path, counts: list[int], seconds: float) -> dict[str, dict[str, Facts]]:
    """Return the figures by number of queries, shared and alone."""
    found: dict[str, dict[str, Facts]] = {}
    with running(data, mosquitto=False, spark=False) as up:
        for count in counts:
            found[f"{count} equal queries"] = {
                name: measure(up, count, seconds, shared=name == "shared")
                for name in ("shared", "alone")
            }
    return found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two queries, one second")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--counts", type=int, nargs="+", help="numbers of queries")
    parser.add_argument("--seconds", type=float, help="of each measurement")
    options = parser.parse_args()
    counts = options.counts or list((2,) if options.quick else COUNTS)
    seconds = options.seconds or (1.0 if options.quick else 20.0)
    with tempfile.TemporaryDirectory() as folder:
        found = compare(Path(folder), counts, seconds)
    result: dict[str, Any] = {"quick": options.quick, "seconds": seconds, "queries": found}
    if options.json:
        print(json.dumps(result))
        return
    for title, table in found.items():
        print_tables({title: table}, digits=1)


if __name__ == "__main__":
    main()
