"""Cost of a fleet at the coordinator: CPU per gateway and per reading, memory, return after a fall.

    python -m benchmarks.fleet [--quick] [--json] [--out FOLDER] [--gateways N] [--broker KIND]

Simulated gateways (real sessions, states, clocks and engines; no devices and no disk) connect to a
real broker. A real coordinator with its console runs one query over a source that all of them have:
`SELECT device, celsius FROM climate`, whose rows come over a real base site. Every reading changes
a row, and is a message of its own to the base. Measured, of the coordinator's process:

* CPU at rest with all gateways connected, less that without any, per gateway;
* CPU per reading while readings come, less that at rest;
* resident memory, per gateway;
* seconds from the restart of a broker that was killed until all gateways are live again, and until
  the result is whole.

The base site is measured beside it. In turns with the coordinator a bare paho subscriber receives
the same messages and counts them: what any subscriber written in Python pays. Exits with 1 if a
gateway or a row does not come back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks._figures import print_tables, write_results
from benchmarks._fleet_cost.federation import (
    QUERY,
    ROOT,
    SOURCE,
    Base,
    Console,
    Process,
    gateway_name,
    start_gateways,
    until,
)
from benchmarks._fleet_cost.simulated_gateways import DEVICES, TOPICS
from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from host.mqtt import open_client
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import Command

Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of a run.

    Attributes:
        seconds: Of each measurement.
        settle: Seconds after a change before one is measured.
        readings: Of all gateways together, a second.
    """

    gateways: int
    seconds: float
    settle: float
    readings: float
    rounds: int


QUICK = Plan(gateways=10, seconds=3.0, settle=1.0, readings=50.0, rounds=1)
FULL = Plan(gateways=200, seconds=15.0, settle=5.0, readings=500.0, rounds=3)


def set_rate(url: str, gateways: int, rate: float) -> None:
    """Tell every gateway how many readings a second it makes."""

    async def tell() -> None:
        client = open_client(url, "bench-control")
        await client.connect()
        payload = encode_json(Command(arguments={"rate": rate}))
        for number in range(1, gateways + 1):
            client.publish(TOPICS.command(gateway_name(number), "simulate"), payload)
        await client.close()

    asyncio.run(tell())


def cpu_shares(processes: list[Process], seconds: float) -> list[float]:
    """Return the share of a core that each process takes for some seconds."""
    before, began = [process.cpu() for process in processes], time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return [(p.cpu() - old) / took for p, old in zip(processes, before, strict=True)]


def rest_and_load(
    processes: list[Process], url: str, plan: Plan, readings: Callable[[], int]
) -> list[Figures]:
    """Return figures of processes at rest and under load; `readings` counts those that came."""
    set_rate(url, plan.gateways, 0)
    time.sleep(plan.settle)
    rests = cpu_shares(processes, plan.seconds)
    set_rate(url, plan.gateways, plan.readings / plan.gateways)
    time.sleep(plan.settle)
    before, began = readings(), time.monotonic()
    loads = cpu_shares(processes, plan.seconds)
    took = time.monotonic() - began
    came = (readings() - before) / took
    set_rate(url, plan.gateways, 0)
    return [
        {
            "at rest, % of a core": rest * 100,
            "at rest per gateway, % of a core": rest / plan.gateways * 100,
            "under load, % of a core": load * 100,
            "readings/s": came,
            "per reading, µs": (load - rest) / came * 1e6 if came else None,
        }
        for rest, load in zip(rests, loads, strict=True)
    ]


def measure(tree: Path, kind: Preference, plan: Plan) -> dict[str, Figures]:
    """Run a fleet against a tree's coordinator, and against the baseline."""
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        broker = running.enter_context(BrokerProcess(kind, folder))
        base = running.enter_context(Base(folder, broker.url))
        with Console(tree, folder, broker.url) as console:
            console.run(SOURCE)
            console.run(QUERY)
            time.sleep(plan.settle)
            (alone,) = cpu_shares([console.process], plan.seconds)
            megabytes, of_base = console.process.megabytes(), base.process.megabytes()
            for process in start_gateways(folder, broker.url, plan.gateways):
                running.enter_context(process)
            come = until(lambda: console.live_gateways() == plan.gateways, "gateways")
            set_rate(broker.url, plan.gateways, 5.0)  # every device has its row
            until(lambda: console.rows() == plan.gateways * DEVICES, "first rows", 0.5)
            coordinator, site = rest_and_load(
                [console.process, base.process], broker.url, plan, base.readings
            )
            grown = console.process.megabytes() - megabytes
            live, whole = back_after_a_fall(broker, console, plan)
            rest = coordinator["at rest, % of a core"] or 0.0
            coordinator["at rest per gateway, % of a core"] = (rest - alone * 100) / plan.gateways
            coordinator |= {
                "memory without gateways, MB": megabytes,
                "memory per gateway, kB": grown / plan.gateways * 1e3,
                "first all live, s": come,
                "broker's fall, all live, s": live,
                "broker's fall, result whole, s": whole,
            }
            site |= {
                "memory without gateways, MB": of_base,
                "memory per gateway, kB": (base.process.megabytes() - of_base)
                / plan.gateways
                * 1e3,
            }
        bare = baseline(broker, folder, plan, base)
    return {"coordinator": coordinator, "base site": site, "bare subscriber": bare}


def back_after_a_fall(broker: BrokerProcess, console: Console, plan: Plan) -> tuple[float, float]:
    """Kill the broker, start it again; return the seconds until all are live, all rows there."""
    broker.stop(signal.SIGKILL)
    until(lambda: console.live_gateways() == 0, "the coordinator does not notice")
    broker.start()
    began = time.monotonic()
    until(lambda: console.live_gateways() == plan.gateways, "gateways after the fall", 0.25)
    live = time.monotonic() - began
    until(lambda: console.rows() == plan.gateways * DEVICES, "rows after the fall", 0.25)
    return live, time.monotonic() - began


def baseline(broker: BrokerProcess, folder: Path, plan: Plan, base: Base) -> Figures:
    """Return what a bare subscriber takes for the same messages."""
    module = "benchmarks._fleet_cost.counting_subscriber"
    with Process(ROOT, folder / "counter.log", module, str(broker.port)) as process:
        (found,) = rest_and_load([process], broker.url, plan, base.readings)
        return {**found, "memory without gateways, MB": process.megabytes()}


def medians(runs: list[dict[str, Figures]]) -> dict[str, Figures]:
    """Return the median of each figure over the runs."""
    return {
        name: {label: middle([run[name][label] for run in runs]) for label in figures}
        for name, figures in runs[0].items()
    }


def middle(values: list[float | None]) -> float | None:
    """Return the median of those that there are, or None."""
    there = [value for value in values if value is not None]
    return median(there) if there else None


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="ten gateways, a few seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="folder for fleet.json")
    parser.add_argument("--gateways", type=int, help="how many; default 200")
    parser.add_argument("--rounds", type=int, help="runs with each broker")
    parser.add_argument("--broker", choices=["embedded", "mosquitto"], help="only this one")
    parser.add_argument("--beside", type=Path, help="another tree that takes turns with this one")
    options = parser.parse_args(argv)
    plan = QUICK if options.quick else FULL
    plan = Plan(
        options.gateways or plan.gateways,
        plan.seconds,
        plan.settle,
        plan.readings,
        options.rounds or plan.rounds,
    )
    trees = {"": ROOT}
    if options.beside is not None:
        trees[", beside"] = options.beside.resolve()
    kinds: list[Preference] = [options.broker] if options.broker else ["embedded"]
    if not options.broker and not options.quick and find_mosquitto() is not None:
        kinds.append("mosquitto")
    runs: dict[str, list[dict[str, Figures]]] = {}
    try:
        for _ in range(plan.rounds):
            for kind in kinds:
                for name, tree in trees.items():
                    runs.setdefault(f"{kind}{name}", []).append(measure(tree, kind, plan))
    except TimeoutError as error:
        print(f"did not come: {error}", file=sys.stderr)
        return 1
    found = {
        "benchmark": "fleet",
        "settings": {"quick": options.quick, "gateways": plan.gateways, "rounds": plan.rounds},
        "brokers": {name: medians(done) for name, done in runs.items()},
    }
    write_results(options.out, "fleet.json", found)
    if options.json:
        print(json.dumps(found))
    else:
        print_tables({name: medians(done) for name, done in runs.items()}, digits=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
