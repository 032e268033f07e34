"""What one gateway sustains, how old a row is when it is seen, and what a process weighs.

    python -m benchmarks.one_gateway [--quick] [--json]

A gateway process whose only device makes readings at a steady rate, a base site process, and a
broker; a query collects the changed rows at the base site, and this process reads its result. For
both brokers in one run:

* rate: readings/s offered and seen, and what waited in the end (disk buffer, client, result);
* latency: from the reading (stamped by the device) to the row in this process's hands, with the
  clock of one machine;
* memory: resident set of gateway and base site at rest, before any reading.

How to read it: everything shares this machine's cores; the latencies of a busy machine say more
about its other work. `lost` is what counts as failure, together with anything that still waits.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
import psutil

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from gateway.connectors import registry
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.reading import Reading
from gateway.connectors.registry import BuiltIn
from gateway.gateway_settings import GatewaySettings
from gateway.testing import declared_for, keep_declared
from host.clocks import wall_clock
from host.mqtt import Message, open_client
from streamsql.algebra.operators import RemoteSource, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Value
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch
from streamsql.wire.site_messages import SiteState
from streamsql.wire.topics import Topics

TOPICS = Topics("bench")
READINGS = SourceDefinition(
    "reading",
    SourceKind.STREAM,
    Schema.of(
        ("sensor", DataType.TEXT),
        ("number", DataType.INTEGER),
        ("value", DataType.DOUBLE),
        ("ts", DataType.TIMESTAMP),
    ),
    key=(0,),
    time_column=3,
)
ROOT = Path(__file__).resolve().parent.parent
SENSORS = 200
QUERY = FragmentBundle(
    "q1",
    1,
    (
        Fragment("f0", Engine.GATEWAY, READINGS.scan(), ("gw-1",), "f1", ("base",)),
        Fragment("f1", Engine.BASE, RemoteSource("f0", READINGS.schema), ("base",)),
    ),
    READINGS.schema,
)


class SteadyEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many readings are made, and how many a second."""

    rate: float
    count: int


class SteadySource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """There is one source, `reading`."""


class SteadyConnector:
    """A device that makes readings at a steady rate once it is told to go.

    Each reading is emitted by itself, as a device would; behind its schedule it catches up.
    """

    kind = "steady"
    endpoint_options = SteadyEndpoint
    source_options = SteadySource

    def __init__(self) -> None:
        self._go = asyncio.Event()

    async def run(self, context: ConnectorContext) -> None:
        """Wait for the start, then emit `count` readings, `rate` per second."""
        options = context.endpoint_as(SteadyEndpoint)
        rate, count = options.rate, options.count
        await self._go.wait()
        loop = asyncio.get_running_loop()
        start = loop.time()
        for number in range(count):
            pause = start + number / rate - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
            sensor = f"s{number % SENSORS}"
            values = {"sensor": sensor, "number": number, "value": float(number)}
            context.emit([Reading("reading", values, context.clock(), sensor)])
        await asyncio.Event().wait()

    def command(self, action: str, arguments: dict[str, Value]) -> str:
        """Start."""
        self._go.set()
        return f"{action} {arguments}"


def run_site(path: str) -> int:
    """Be a gateway process with the steady device."""
    registry.BUILT_IN["steady"] = BuiltIn("benchmarks.one_gateway", "SteadyConnector")
    sys.argv = ["gateway", "--config", path, "--log-level", "WARNING"]
    from gateway.__main__ import main as serve  # noqa: PLC0415 - only in the child

    return serve()


@dataclass
class Reader:
    """Counts the rows that arrive and how old they are."""

    ages: list[float] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    first: float = 0.0
    last: float = 0.0
    observed: int = 0
    states: dict[str, SiteState] = field(default_factory=dict)

    def take(self, burst: list[Message]) -> None:
        """Take messages in."""
        now = wall_clock()
        for message in burst:
            match TOPICS.parts(message.topic):
                case ["q", "q1", "out", _]:
                    self._rows(decode_packed(message.payload, DeltaBatch), now)
                case ["gw", site, "state"]:
                    self.states[site] = decode_json(message.payload, SiteState)
                case ["gw", _, "obs" | "hist", _]:
                    self.observed += message.payload.count(b'"bt"')
                case _:
                    pass

    def online(self, sites: set[str]) -> bool:
        """Whether all sites are online."""
        return sites <= {name for name, state in self.states.items() if state.online}

    def has(self, count: int) -> bool:
        """Whether so many readings were seen, as rows and as observations."""
        return len(self.seen) >= count and self.observed >= count

    def _rows(self, batch: DeltaBatch, now: int) -> None:
        for weighted in batch.deltas:
            _sensor, number, _value, ts = weighted.row
            if weighted.weight > 0 and isinstance(number, int) and isinstance(ts, int):
                self.seen.add(number)
                self.ages.append((now - ts) / 1_000)
                self.first = self.first or time.monotonic()
                self.last = time.monotonic()


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of all lies."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


async def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something is so.

    Raises:
        TimeoutError: It is not in time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        await asyncio.sleep(0.02)


async def observe(
    url: str, sites: list[psutil.Process], rate: float, count: int
) -> dict[str, float]:
    """Install the query, let the device go, and return the figures."""
    reader, client = Reader(), open_client(url, "bench-reader")
    client.on_messages(reader.take)
    await client.connect()
    try:
        await client.subscribe(
            TOPICS.output(), TOPICS.state(), TOPICS.observation(), TOPICS.history()
        )
        for site in ("gw-1", "base"):
            client.publish(TOPICS.fragment("q1", site), encode_packed(QUERY), retain=True)
        await until(lambda: reader.online({"gw-1", "base"}), 60, "the sites do not come online")
        await asyncio.sleep(2.0)
        memory = [site.memory_info().rss / 1e6 for site in sites]
        cpu = [sum(site.cpu_times()[:2]) for site in sites]
        go = Command(arguments={"action": "go"})
        client.publish(TOPICS.command("gw-1", "simulate"), encode_json(go))
        await asyncio.sleep(count / rate)
        backlog = reader.states["gw-1"].counters.get("pending", 0)
        complete = partial(reader.has, count)
        with contextlib.suppress(TimeoutError):  # what is missing then is reported as lost
            await until(complete, 30, "not everything is seen")
        cpu = [sum(s.cpu_times()[:2]) - before for s, before in zip(sites, cpu, strict=True)]
        stamp = reader.states["gw-1"].ts
        await asyncio.sleep(0.5)
        client.publish(TOPICS.command("gw-1", "ping"), encode_json(Command()))
        await until(lambda: reader.states["gw-1"].ts > stamp, 20, "no fresh state")
    finally:
        await client.close()
    state = reader.states["gw-1"]
    settled = reader.ages[len(reader.ages) // 10 :]  # the first tenth warms up
    return {
        "offered/s": rate,
        "seen/s": round(len(reader.seen) / max(reader.last - reader.first, 1e-9), 1),
        "lost rows": count - len(reader.seen),
        "lost observations": count - reader.observed,
        "waiting under load": backlog,
        "waiting at the end": state.counters.get("pending", 0) + state.buffer.stored,
        "dropped": state.buffer.dropped,
        "p50 ms": round(percentile(settled, 0.5), 2),
        "p99 ms": round(percentile(settled, 0.99), 2),
        "gateway CPU %": round(cpu[0] * rate / count * 100, 1),
        "base CPU %": round(cpu[1] * rate / count * 100, 1),
        "gateway MB at rest": round(memory[0], 1),
        "base MB at rest": round(memory[1], 1),
    }


def measure_at(url: str, folder: Path, rate: float, seconds: float) -> dict[str, float]:
    """Run gateway and base site at a rate; return the figures."""
    count = int(rate * seconds)
    steady = {"connector": "steady", "rate": rate, "count": count}
    keep_declared(folder / "gw-1", [declared_for(READINGS, "steady")])
    data = str(folder / "gw-1")
    gateway = GatewaySettings("bench", "gw-1", url, data, endpoints={"made_up": steady})
    base = GatewaySettings("bench", "base", url, str(folder / "base"), role="base")
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for settings in (gateway, base):
            path = folder / f"{settings.gateway}.json"
            path.write_bytes(msgspec.json.encode(settings))
            command = [sys.executable, "-m", "benchmarks.one_gateway", "--site", str(path)]
            processes.append(subprocess.Popen(command, cwd=ROOT))  # noqa: S603
        sites = [psutil.Process(process.pid) for process in processes]
        return asyncio.run(observe(url, sites, rate, count))
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(20)


def measure(kind: Preference, *, quick: bool) -> dict[str, dict[str, float]]:
    """Measure with one broker: at a quiet rate, at the target, above it."""
    rates = [(50.0, 2.0), (1_000.0, 2.0)]
    if not quick:
        rates = [(50.0, 20.0), (1_000.0, 30.0), (2_000.0, 15.0)]
    figures: dict[str, dict[str, float]] = {}
    for rate, seconds in rates:
        with tempfile.TemporaryDirectory() as folder, BrokerProcess(kind, Path(folder)) as broker:
            figures[f"{rate:g}/s"] = measure_at(broker.url, Path(folder), rate, seconds)
    return figures


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Rate, latency and memory of one gateway.")
    parser.add_argument("--quick", action="store_true", help="a few seconds per rate")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--site", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.site:
        return run_site(options.site)
    kinds: list[Preference] = ["embedded"]
    if find_mosquitto() is not None:
        kinds.append("mosquitto")
    else:
        print("mosquitto is not installed: nothing to compare with", file=sys.stderr)
    results = {kind: measure(kind, quick=options.quick) for kind in kinds}
    if options.json:
        print(json.dumps({"benchmark": "one_gateway", **results}))
        return 0
    for kind, rates in results.items():
        print(kind)
        names = list(next(iter(rates.values())))
        print(f"  {'':20}" + "".join(f"{rate:>10}" for rate in rates))
        for name in names:
            print(f"  {name:20}" + "".join(f"{rates[rate][name]:10g}" for rate in rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
