"""Cost of one reading in a gateway: CPU, latency and memory, handed in and over MQTT.

    python -m benchmarks.intake [--quick] [--json] [--beside TREE] [--profile FILE]

A gateway process with a query `SELECT … WHERE` over a keyed source of 2,000 devices, half of whose
readings pass; this process reads the rows. Its readings are handed in by a device in the process,
one by one or a hundred at a time, or come as JSON payloads over MQTT, at rising rates, from a
sender of its own through a broker (Mosquitto where it is installed) and the connector of a declared
source, which has everything: mapping, journal, acknowledgements. Per load, of the gateway process
alone:

* µs: CPU time a reading, from one that is received to the row, the observation and the last value
  at the broker; what the process does at rest is taken off;
* unseen: rows and observations that did not come; where a step falls so far behind that a device
  has two readings in it, the row of the first is among them;
* p50, p99: milliseconds from a reading to its row in this process's hands;
* MB: resident set at rest, connected, before any query.

With `--beside`, another tree (a git worktree, say) takes turns with this one, load by load.

How to read it: one core carries a million over the µs, if the load at that rate shows no loss. The
ratio of two trees counts; microseconds of different days do not compare.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import psutil

from benchmarks._figures import print_tables
from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from gateway.settings import GatewaySettings, WrapperSettings
from host.clocks import wall_clock
from host.mqtt import Message, MessageClient, open_client
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Filter
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType
from streamsql.syntax import CreateSource, parse_statement
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch
from streamsql.wire.site_messages import SiteState
from streamsql.wire.source_orders import encode_order
from streamsql.wire.topics import Topics

TOPICS = Topics("bench")
ROOT = Path(__file__).resolve().parent.parent
GATEWAY = ROOT / "benchmarks" / "_intake" / "gateway_process.py"
SENDER = ROOT / "benchmarks" / "_intake" / "sender.py"
LOADED = (
    "gateway.__main__",
    "stream_engine.site.installed_query",
    "gateway.connectors.running",
    "gateway.connectors.mqtt.mqtt_connector",
    "streamsql.mapping.mapper",
)
DEVICES = 2_000
PATIENCE = 60.0
DECLARED = """
CREATE SOURCE climate (
  device      TEXT,
  number      INTEGER,
  temperature DOUBLE FROM 'AM2301.Temperature' UNIT 'Cel',
  ts          TIMESTAMP FORMAT 'unix_us',
  KEY (device)
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{{device}}/SENSOR', qos = '{qos}')
"""
LIMIT = 50.0
WARM = Call(
    ">",
    (Column(2, "temperature", DataType.DOUBLE), Literal(LIMIT, DataType.DOUBLE)),
    DataType.BOOLEAN,
)


def climate(qos: int) -> SourceDefinition:
    """Return the source as its statement declares it."""
    statement = parse_statement(DECLARED.format(qos=qos))
    made = define(statement, Catalog()) if isinstance(statement, CreateSource) else None
    if not isinstance(made, SourceDefinition):
        raise TypeError(f"{statement} declares no source")
    return made


def query(definition: SourceDefinition) -> FragmentBundle:
    """Return the plan of `SELECT * FROM climate WHERE temperature > 50`, at the gateway."""
    plan = Filter(definition.scan(), WARM)
    fragment = Fragment("f0", Engine.GATEWAY, plan, ("gw-1",))
    return FragmentBundle("q1", 1, (fragment,), definition.schema)


class Load(NamedTuple):
    """Readings to offer; a batch of 0 comes over MQTT."""

    rate: int
    seconds: float
    batch: int
    qos: int = 0

    @property
    def name(self) -> str:
        """Title of the figures."""
        way = f"handed in by {self.batch}" if self.batch else f"MQTT, QoS {self.qos}"
        return f"{way}, {self.rate:,}/s"

    @property
    def source(self) -> SourceDefinition:
        """Definition of the readings' source: declared, or of the gateway's own settings."""
        declared = climate(self.qos)
        return (
            msgspec.structs.replace(declared, mapping=None, options=()) if self.batch else declared
        )


FULL: tuple[Load, ...] = (
    Load(50, 20.0, 1),
    Load(1_000, 15.0, 1),
    Load(10_000, 10.0, 100),
    Load(50, 20.0, 0),
    Load(1_000, 15.0, 0),
    Load(6_000, 10.0, 0),
    Load(12_000, 10.0, 0),
    Load(24_000, 8.0, 0),
    Load(12_000, 10.0, 0, qos=1),
)
FIRST = Load(50, 0.5, 1)
QUICK: tuple[Load, ...] = (
    Load(50, 3.0, 1),
    Load(2_000, 3.0, 100),
    Load(50, 3.0, 0),
    Load(2_000, 3.0, 0),
)


@dataclass
class Reader:
    """Counts the rows and observations that arrive, and how old the rows are."""

    ages: list[float] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    observed: int = 0
    state: SiteState | None = None

    def has(self, rows: int, observations: int) -> bool:
        """Return whether at least so many were seen."""
        return len(self.seen) >= rows and self.observed >= observations

    def take(self, burst: list[Message]) -> None:
        """Take messages in."""
        now = wall_clock()
        for message in burst:
            match TOPICS.parts(message.topic):
                case ["q", "q1", "out", _]:
                    for weighted in decode_packed(message.payload, DeltaBatch).deltas:
                        _device, number, _temperature, ts = weighted.row
                        if weighted.weight > 0 and isinstance(number, int) and isinstance(ts, int):
                            self.seen.add(number)
                            self.ages.append((now - ts) / 1_000)
                case ["gw", _, "state"]:
                    self.state = decode_json(message.payload, SiteState)
                case ["gw", _, "obs" | "hist", _]:
                    self.observed += message.payload.count(b'"bt"')
                case _:
                    pass


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of all lies."""
    ordered = sorted(values) or [0.0]
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


def offered(load: Load) -> tuple[int, int]:
    """Return how many readings a load has, and how many pass the query."""
    count = int(load.rate * load.seconds)
    return count, sum(1 for number in range(count) if number * 7919 % 100 > LIMIT)


@contextlib.asynccontextmanager
async def readings(load: Load, url: str, client: MessageClient) -> AsyncIterator[None]:
    """Let the device or a sender go; in the end wait for the sender."""
    if load.batch:
        go = Command(arguments={"action": "go"})
        client.publish(TOPICS.command("gw-1", "simulate"), encode_json(go))
        yield
        return
    numbers = (url.rpartition(":")[2], load.rate, offered(load)[0], DEVICES, load.qos)
    sender = await asyncio.create_subprocess_exec(sys.executable, str(SENDER), *map(str, numbers))
    try:
        yield
    finally:
        await sender.wait()


def cpu_of(site: psutil.Process) -> float:
    """Return the seconds of CPU that a process has taken."""
    return sum(site.cpu_times()[:2])


async def at_rest(
    site: psutil.Process, client: MessageClient, source: SourceDefinition
) -> tuple[float, float]:
    """Return a gateway's bytes before it has a query, and its CPU a second once it has one."""
    if source.mapping is not None:
        client.publish(TOPICS.source(source.name), encode_order(source), retain=True)
    await asyncio.sleep(2.0)
    memory = site.memory_info().rss
    payload = encode_packed(query(source))
    client.publish(TOPICS.fragment("q1", "gw-1"), payload, retain=True)
    await asyncio.sleep(1.0)
    before = cpu_of(site)
    await asyncio.sleep(2.0)
    return memory, (cpu_of(site) - before) / 2.0


async def observe(url: str, site: psutil.Process, load: Load, *, profile: bool) -> dict[str, float]:
    """Install the query, offer the load, and return the figures."""
    reader, client = Reader(), open_client(url, "bench-reader")
    count, passing = offered(load)
    client.on_messages(reader.take)
    await client.connect()
    try:
        await client.subscribe(
            TOPICS.output(), TOPICS.state(), TOPICS.observation(), TOPICS.history()
        )
        await until(lambda: reader.state is not None, PATIENCE, "the gateway does not come online")
        memory, idle = await at_rest(site, client, load.source)
        if profile:
            site.send_signal(signal.SIGUSR1)
        began, cpu = time.monotonic(), cpu_of(site)
        async with readings(load, url, client):
            await asyncio.sleep(load.seconds)
            with contextlib.suppress(TimeoutError):  # what is missing then is reported
                await until(lambda: reader.has(passing, count), PATIENCE / 2, "some are unseen")
            took = time.monotonic() - began
            cpu = cpu_of(site) - cpu - idle * took
        if profile:
            site.send_signal(signal.SIGUSR2)
    finally:
        await client.close()
    settled = reader.ages[len(reader.ages) // 10 :]  # the first tenth warms up
    return {
        "µs": cpu / count * 1e6,
        "busy %": cpu / took * 100,
        "late s": took - load.seconds,
        "unseen rows": passing - len(reader.seen),
        "unseen observations": count - reader.observed,
        "p50 ms": percentile(settled, 0.5),
        "p99 ms": percentile(settled, 0.99),
        "MB at rest": memory / 1e6,
    }


@cache
def bytecode(tree: Path) -> dict[str, str]:
    """Return the environment in which a tree's modules are compiled, as where it is installed.

    Else every process compiles them, which takes 7 MB that it keeps.
    """
    folder = tempfile.mkdtemp(prefix="pando-bench-bytecode-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
    imports = "; ".join(f"import_module({name!r})" for name in LOADED)
    command = [sys.executable, "-c", f"from importlib import import_module; {imports}"]
    subprocess.run(command, cwd=tree, env={**os.environ, **environment}, check=False)  # noqa: S603
    return environment


def settings_for(load: Load, url: str, folder: Path) -> GatewaySettings:
    """Return the settings of a gateway that a load comes to."""
    if not load.batch:
        endpoints = {"home": {"connector": "mqtt", "address": url}}
        return GatewaySettings("bench", "gw-1", url, str(folder), endpoints=endpoints)
    options = {"rate": load.rate, "batch": load.batch, "devices": DEVICES}
    device = WrapperSettings("handed_in", {**options, "count": offered(load)[0]})
    return GatewaySettings(
        "bench", "gw-1", url, str(folder), sources=(load.source,), wrappers=(device,)
    )


def measure(tree: Path, load: Load, profile: Path | None) -> dict[str, float]:
    """Run a tree's gateway under a load; return the figures."""
    kind: Preference = "embedded" if find_mosquitto() is None else "mosquitto"
    with tempfile.TemporaryDirectory() as name, BrokerProcess(kind, Path(name)) as broker:
        folder = Path(name)
        path = folder / "gw-1.json"
        settings = settings_for(load, broker.url, folder)
        plain = msgspec.to_builtins(settings)
        # Older trees do not know the newer settings.
        path.write_bytes(
            msgspec.json.encode({name: value for name, value in plain.items() if value})
        )
        environment = {**os.environ, "PYTHONPATH": str(tree), **bytecode(tree)}
        if profile is not None:
            environment["PROFILE"] = str(profile.resolve())
        command = [sys.executable, str(GATEWAY), str(path)]
        process = subprocess.Popen(command, cwd=tree, env=environment)  # noqa: S603
        try:
            site = psutil.Process(process.pid)
            return asyncio.run(observe(broker.url, site, load, profile=profile is not None))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def in_turns(
    trees: dict[str, Path], loads: tuple[Load, ...], rounds: int
) -> dict[str, dict[str, dict[str, float]]]:
    """Measure each load with each tree, one after the other; return medians of the rounds."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for tree in trees.values():
        measure(tree, FIRST, None)  # compiles what is left
    for load in loads:
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
        for number in range(rounds):
            order = list(trees)
            for name in order if number % 2 == 0 else reversed(order):
                runs[name].append(measure(trees[name], load, None))
        figures[load.name] = {
            name: {key: median(run[key] for run in done) for key in done[0]}
            for name, done in runs.items()
        }
        if len(trees) > 1:
            here, beside = (figures[load.name][name]["µs"] for name in trees)
            figures[load.name]["ratio"] = {"µs": beside / here}
    return figures


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a few seconds per load")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--beside", type=Path, help="another tree that takes turns with this one")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each load and tree")
    parser.add_argument("--load", help="only loads whose name has this text in it")
    parser.add_argument("--profile", type=Path, help="profile one load into this file instead")
    options = parser.parse_args(argv)
    loads = QUICK if options.quick else FULL
    loads = tuple(load for load in loads if options.load is None or options.load in load.name)
    trees = {"here": ROOT}
    if options.beside is not None:
        trees["beside"] = options.beside.resolve()
    if options.profile is not None:
        tree = trees.get("beside", ROOT)
        print(json.dumps(measure(tree, loads[0], options.profile)))
        return 0
    figures = in_turns(trees, loads, options.rounds)
    if options.json:
        print(json.dumps({"benchmark": "intake", **figures}))
        return 0
    print_tables(figures, digits=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
