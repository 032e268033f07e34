"""Cost of one reading in a gateway: CPU, latency and memory, handed in and over MQTT.

    python -m benchmarks.intake [--quick] [--json] [--out FOLDER] [--beside TREE] [--profile FILE]

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
* p50, p99: milliseconds from a reading to its row in this process's hands; none if no row came;
* MB at rest: resident set, connected, before any query;
* MB under load: the largest resident set while the load comes and is worked on.

Exits with 1 when rows or observations are unseen. A full run names the targets that it misses. With
`--beside`, another checkout takes turns with this one, load by load.

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
from functools import cache
from pathlib import Path
from statistics import median

import msgspec
import psutil

from benchmarks._figures import print_tables, write_results
from benchmarks._intake.loads import DEVICES, FIRST, FULL, QUICK, Load, offered, query
from benchmarks._intake.reader import TOPICS, PeakMemory, Reader, percentile
from benchmarks._intake.targets import missed, unseen
from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from gateway.gateway_settings import GatewaySettings
from gateway.testing import declared_for, keep_declared
from host.mqtt import MessageClient, open_client
from streamsql.catalog.definitions import SourceDefinition
from streamsql.wire.codec import encode_json, encode_packed
from streamsql.wire.messages import Command
from streamsql.wire.source_orders import encode_order

Figures = dict[str, float | None]

ROOT = Path(__file__).resolve().parent.parent
GATEWAY = ROOT / "benchmarks" / "_intake" / "gateway_process.py"
SENDER = ROOT / "benchmarks" / "_intake" / "sender.py"
LOADED = (
    "gateway.__main__",
    "stream_engine.site.installed_query",
    "gateway.connectors.running_connectors",
    "gateway.connectors.mqtt.mqtt_connector",
    "streamsql.mapping.mapper",
)
PATIENCE = 60.0


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


async def observe(url: str, site: psutil.Process, load: Load, *, profile: bool) -> Figures:
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
        peak = PeakMemory(site)
        looks = asyncio.create_task(peak.follow())
        if profile:
            site.send_signal(signal.SIGUSR1)
        began, cpu = time.monotonic(), cpu_of(site)
        async with readings(load, url, client):
            await asyncio.sleep(load.seconds)
            with contextlib.suppress(TimeoutError):  # what is missing then is counted as unseen
                await until(lambda: reader.has(passing, count), PATIENCE / 2, "some are unseen")
            took = time.monotonic() - began
            cpu = cpu_of(site) - cpu - idle * took
        peak.look()
        looks.cancel()
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
        "MB under load": peak.bytes / 1e6,
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
    device = {"connector": "handed_in", **options, "count": offered(load)[0]}
    keep_declared(folder, [declared_for(load.source, "handed_in")])
    return GatewaySettings("bench", "gw-1", url, str(folder), endpoints={"made_up": device})


def measure(tree: Path, load: Load, profile: Path | None) -> Figures:
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
) -> dict[str, dict[str, Figures]]:
    """Measure each load with each tree, one after the other; return medians of the rounds."""
    figures: dict[str, dict[str, Figures]] = {}
    for tree in trees.values():
        measure(tree, FIRST, None)  # compiles what is left
    for load in loads:
        runs: dict[str, list[Figures]] = {name: [] for name in trees}
        for number in range(rounds):
            order = list(trees)
            for name in order if number % 2 == 0 else reversed(order):
                runs[name].append(measure(trees[name], load, None))
        figures[load.name] = {name: medians(done) for name, done in runs.items()}
        if len(trees) > 1:
            here, beside = (figures[load.name][name]["µs"] for name in trees)
            if here and beside:
                figures[load.name]["ratio"] = {"µs": beside / here}
    return figures


def medians(runs: list[Figures]) -> Figures:
    """Return the median of each figure over the runs that have it, or None."""
    found: Figures = {}
    for key in runs[0]:
        values = [value for run in runs if (value := run[key]) is not None]
        found[key] = median(values) if values else None
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a few seconds per load")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="folder for intake.json")
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
    here = {load: by_tree["here"] for load, by_tree in figures.items()}
    settings = {"quick": options.quick, "rounds": options.rounds, "load": options.load}
    problems = unseen(here) if options.quick else missed(here)
    found = {
        "benchmark": "intake",
        "settings": settings,
        "broker": "embedded" if find_mosquitto() is None else "mosquitto",
        "missed": problems,
        "loads": figures,
    }
    write_results(options.out, "intake.json", found)
    if options.json:
        print(json.dumps(found))
    else:
        print_tables(figures, digits=1)
        for line in problems:
            print(f"MISSED: {line}")
    return int(bool(unseen(here)))


if __name__ == "__main__":
    sys.exit(main())
