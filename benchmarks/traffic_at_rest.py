"""Traffic of a building in which nobody asks anything: bytes and messages at the broker, by kind.

    python -m benchmarks.traffic_at_rest [--quick] [--json] [--lake] [--beside TREE …]
    python -m benchmarks.traffic_at_rest --at mqtt://HOST:PORT

Starts the sample building as `pando up` does: broker, three gateways, base site, static engine,
console; with `--lake` Spark, lander and pipeline, too. The queries are those that come with it: the
layers of the map, which run whether a page is open or not. When all of them are settled and
gateways know which streams nobody reads, everything that is published is counted for `--seconds`.
With `--at` a broker that runs already is counted at once.

* B/s: topics and payloads of what is published, each message once, however many read it; MQTT's
  own header, 5 to 7 bytes a message, comes on top;
* messages/s: likewise.

With `--beside`, other checkouts (their source trees with our libraries) are measured after this
one, and a column says how many times as much each publishes. The simulated people differ from run
to run: the sums of two runs of one tree differ by up to a tenth.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks._figures import write_results
from broker.free_ports import free_port
from host.mqtt import Message, open_client
from streamsql.catalog.system import SYS_STREAM
from streamsql.wire.topics import PREFIX
from ui.cli.federations import owner_secret

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ("-P", "-c", "from deploy.cli.main import app; app()")
START_SECONDS = 180.0
REST_SECONDS = 45.0
"""After the start: for 30 s gateways are told of no stream that nobody reads it."""
SECONDS, QUICK_SECONDS = 120.0, 30.0
"""Links change once a minute, and last values are repeated as often."""
STOP_SECONDS = 60.0
ALL = "all"

_KINDS = {
    "obs": "observations",
    "hist": "observations",
    "last": "last values",
    "link": "links",
    "flow": "counts of batches",
    "x": "rows between sites",
    "out": "results",
    "frag": "plans and settings",
    "settings": "plans and settings",
    "source": "plans and settings",
    "interest": "plans and settings",
    "tables": "plans and settings",
    "reports": "plans and settings",
    "state": "states",
    "columns": "states",
    "birth": "births",
    "cmd": "commands and answers",
    "rsp": "commands and answers",
    "clock": "commands and answers",
    "fill": "commands and answers",
}
KINDS = (*dict.fromkeys(_KINDS.values()), "reports of sites", "others")


def kind_of(topic: str) -> str:
    """Return what a message is for, by its topic.

    Examples:
        >>> kind_of("pando/v1/demo/gw/gw-1/obs/SeatSensor"), kind_of("pando/v1/demo/q/q1/out/base")
        ('observations', 'results')
    """
    levels = topic.removeprefix(f"{PREFIX}/").split("/")[1:]
    if levels[0] in ("source", "interest"):
        return _KINDS[levels[0]]
    word = levels[2] if len(levels) > 2 else ""
    if word == "obs" and levels[-1] == SYS_STREAM.name:
        return "reports of sites"
    return _KINDS.get(word, "others")


@dataclass
class Count:
    """Messages by kind, and the bytes of their topics and payloads."""

    messages: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def hear(self, burst: Sequence[Message]) -> None:
        """Count messages; what the broker had retained before was not published now."""
        for message in burst:
            if message.retain:
                continue
            size = len(message.topic.encode()) + len(message.payload)
            for kind in (kind_of(message.topic), ALL):
                self.messages[kind] += 1
                self.bytes[kind] += size

    def rates(self, seconds: float) -> dict[str, dict[str, float]]:
        """Return bytes and messages a second by kind, of those that there were, and of all."""
        return {
            kind: {
                "bytes_per_s": round(self.bytes[kind] / seconds, 1),
                "messages_per_s": round(self.messages[kind] / seconds, 2),
            }
            for kind in (*KINDS, ALL)
            if self.messages[kind] or kind == ALL
        }


async def counted(broker: str, seconds: float) -> dict[str, dict[str, float]]:
    """Return the rates of all that is published at a broker for so long."""
    client, count = open_client(broker, "traffic-at-rest"), Count()
    await client.connect()
    await client.subscribe(f"{PREFIX}/#")
    client.on_messages(count.hear)
    began = time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    await client.close()
    return count.rates(took)


@contextlib.contextmanager
def building(tree: Path, folder: Path, *, lake: bool) -> Iterator[Path]:
    """Run the sample building of a source tree; yield its data directory once it can be used.

    Raises:
        RuntimeError: It ends, or is not there in time; says what it said last.
    """
    port, data, log = free_port(), folder / "data", folder / "log"
    environment = os.environ | {"PYTHONPATH": str(tree), "XDG_STATE_HOME": str(folder / "state")}
    options = ("up", "--format", "json", "--port", str(port), "--data", str(data))
    command = [sys.executable, *COMMAND, *options, *(() if lake else ("--no-spark",))]
    with log.open("wb") as said:
        process = subprocess.Popen(  # noqa: S603
            command, stdout=said, stderr=said, env=environment, cwd=folder
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as console:
            deadline = time.monotonic() + START_SECONDS
            while not _is_settled(console, data):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"it does not start:\n{log.read_text()[-2_000:]}")
                time.sleep(0.5)
        yield data
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)


def _is_settled(console: httpx.Client, data: Path) -> bool:
    """Whether all queries run and the static engine answers."""
    headers = {"Authorization": f"Bearer {owner_secret(data)}"}
    try:
        queries = console.get("/api/queries", headers=headers).json()
        sites = console.get("/api/sites", headers=headers).json()
    except (httpx.HTTPError, ValueError):
        return False
    is_ready = any(site["role"] == "static" and site.get("ready", True) for site in sites)
    return is_ready and bool(queries) and all(query["status"] == "running" for query in queries)


def at_rest(tree: Path, seconds: float, *, lake: bool) -> dict[str, dict[str, float]]:
    """Return the rates of a source tree's sample building at rest."""
    with (
        tempfile.TemporaryDirectory(prefix="traffic-at-rest-") as folder,
        building(tree, Path(folder), lake=lake) as data,
    ):
        time.sleep(REST_SECONDS)
        broker = json.loads((data / "run" / "base.json").read_text(encoding="utf-8"))["broker"]
        return asyncio.run(counted(broker, seconds))


def print_table(found: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print what the trees publish, one beside the other."""
    table = Table("published at rest")
    for number, name in enumerate(found):
        table.add_column(f"{name}\nB/s", justify="right")
        table.add_column("messages/s", justify="right")
        if number:
            table.add_column("times", justify="right")
    for kind in (*KINDS, ALL):
        if not any(kind in rates for rates in found.values()):
            continue
        cells, ours = [kind], 0.0
        for number, rates in enumerate(found.values()):
            rate = rates.get(kind, {"bytes_per_s": 0.0, "messages_per_s": 0.0})
            size = rate["bytes_per_s"]
            cells += [f"{size:,.0f}", f"{rate['messages_per_s']:.1f}"]
            if number:
                cells.append(f"{size / ours:.1f}" if ours else "-")
            else:
                ours = size
        table.add_row(*cells, end_section=kind == KINDS[-1])
    Console().print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a building at rest costs its broker")
    parser.add_argument("--quick", action="store_true", help=f"count for {QUICK_SECONDS:g} s")
    parser.add_argument("--json", action="store_true", help="one object instead of a table")
    parser.add_argument("--out", type=Path, help="folder for traffic-at-rest.json")
    parser.add_argument("--seconds", type=float, help="for how long to count")
    parser.add_argument("--lake", action="store_true", help="with Spark, lander and pipeline")
    parser.add_argument("--beside", type=Path, nargs="+", help="other checkouts", default=[])
    parser.add_argument("--at", metavar="ADDRESS", help="count at this broker, start nothing")
    given = parser.parse_args()
    seconds = given.seconds or (QUICK_SECONDS if given.quick else SECONDS)
    # Or the building would go on without us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found: dict[str, Any] = {}
    if given.at:
        found["this broker"] = asyncio.run(counted(given.at, seconds))
    else:
        found["this tree"] = at_rest(ROOT, seconds, lake=given.lake)
        for tree in given.beside:
            found[tree.resolve().name] = at_rest(tree.resolve(), seconds, lake=given.lake)
    whole = {"benchmark": "traffic_at_rest", "lake": given.lake, "seconds": seconds, "rates": found}
    name = "traffic-at-rest-lake.json" if given.lake else "traffic-at-rest.json"
    write_results(given.out, name, whole)
    if given.json:
        print(json.dumps(whole, indent=2))
    else:
        print_table(found)


if __name__ == "__main__":
    main()
