"""Is anything lost that was acknowledged, when gateway, broker and devices are killed?

    pando bench device_faults --quick
    python -m benchmarks.device_faults [KIND ...] [--readings 100000] [--out docs/results]

A device simulator of each connector, each a process of its own, hands out numbers through one real
gateway process. The gateway, the broker of the federation and the devices are killed with SIGKILL
one after the other, at moments drawn from a seed, and started again. A base site counts the rows of
each number. Each device logs what it has handed out and what was acknowledged; when a number counts
as acknowledged depends on what the protocol promises (`benchmarks/_device_faults/kinds.py`).

Exits with 1 when an acknowledged number is lost, when more are doubled before their acknowledgement
than were under way when something was killed, or when a number came twice that its device handed
out once.
"""

import argparse
import dataclasses
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._device_faults.kinds import KINDS, Kind, Promise
from benchmarks._device_faults.number_log import Event
from benchmarks._device_faults.services import Device, Processes, running
from benchmarks._device_faults.verdict import Kill, Verdict, judge
from benchmarks._figures import write_results
from broker.broker_launch import Preference, find_mosquitto

Facts = dict[str, Any]

READINGS, SECONDS, ROUNDS = 100_000, 120.0, 4
QUICK_READINGS, QUICK_SECONDS, QUICK_ROUNDS = 1_500, 25.0, 1
SETTLE_SECONDS = 3.0
"""For so long nothing more may come before the rows count as all."""
PATIENCE = 120.0
FILE = "device-faults.json"


def make_devices(
    kinds: tuple[Kind, ...], options: argparse.Namespace, folder: Path
) -> list[Device]:
    """Return the devices; one that cannot be as fast as wanted hands out fewer numbers."""
    devices = []
    for kind in kinds:
        wanted = options.readings / options.seconds
        rate = min(wanted, kind.most or wanted)
        count = min(options.readings, round(rate * options.seconds))
        devices.append(Device(kind, folder / "devices" / kind.name, count, rate))
    return devices


def victims(options: argparse.Namespace, kinds: tuple[Kind, ...]) -> Iterator[tuple[float, str]]:
    """Yield (seconds from the start, who is killed), in order.

    In each round everybody is killed once, and the gateway twice: one moment for each, in turns.
    """
    seed = random.Random(options.seed)
    deck: list[str] = []
    for _ in range(options.rounds):
        round_of = ["gateway", "broker", "gateway", *(kind.name for kind in kinds)]
        seed.shuffle(round_of)
        deck += round_of
    # The last tenth of the time is for what the last kill leaves behind.
    slot = options.seconds * 0.9 / len(deck)
    for number, victim in enumerate(deck):
        yield (number + seed.random()) * slot, victim


def kill_all(
    processes: Processes, options: argparse.Namespace, kinds: tuple[Kind, ...]
) -> list[Kill]:
    """Kill everybody at the moments that are drawn; return what was done."""
    began, done = time.monotonic(), []
    for due, victim in victims(options, kinds):
        time.sleep(max(began + due - time.monotonic(), 0))
        if not options.json:
            told = f"{time.monotonic() - began:6.1f} s  {victim} is killed"
            print(told, file=sys.stderr, flush=True)
        done.append(Kill(victim, *processes.kill(victim)))
    return done


def all_handed_out(device: Device) -> bool:
    """Return whether a device has no number left."""
    if device.kind.name == "mqtt":
        event = Event.PUBLISHED  # what its broker has lost is never acknowledged
    elif device.kind.promise in {Promise.ANSWERED, Promise.STORED}:
        event = Event.ACKNOWLEDGED
    else:
        event = Event.OFFERED
    last = max((entry.last for entry in device.entries() if entry.event == event), default=-1)
    return last == device.count - 1


def settled_rows(
    processes: Processes, queries: Mapping[str, str], kills: list[Kill]
) -> dict[str, dict[int, int]]:
    """Wait until every device is done and nothing more comes; return the rows of each.

    What is still lost when the patience is over is judged as lost.
    """
    devices = {device.kind.name: device for device in processes.devices}
    for name, device in devices.items():
        done = partial(all_handed_out, device)
        processes.until(done, f"the device of {name} has handed out its numbers", PATIENCE)
    began = since = time.monotonic()
    seen: dict[str, dict[int, int]] = {}
    while True:
        found = {name: processes.rows(query) for name, query in queries.items()}
        now = time.monotonic()
        if found != seen:
            seen, since = found, now
        lacking = any(
            judge(device.kind, device.entries(), seen[name], kills).lost
            for name, device in devices.items()
        )
        calm = now - since >= SETTLE_SECONDS
        if calm and (not lacking or now - began > PATIENCE):
            return seen
        time.sleep(1.0)


def measure(options: argparse.Namespace) -> tuple[Facts, bool]:
    """Run it; return what was found, and whether anything was wrong."""
    kinds = tuple(KINDS[name] for name in options.kinds or KINDS)
    broker: Preference = options.broker or ("mosquitto" if find_mosquitto() else "embedded")
    with tempfile.TemporaryDirectory(prefix="pando-device-faults-") as name:
        folder = Path(name)
        devices = make_devices(kinds, options, folder)
        with running(folder, broker, devices) as processes:
            processes.run(";\n".join(kind.statements() for kind in kinds))
            queries = {kind.name: processes.count_rows(kind) for kind in kinds}
            processes.until(
                lambda: all(
                    found["status"] == "running" and found["settled"]
                    for query in queries.values()
                    for found in (processes.get(f"/api/queries/{query}"),)
                ),
                "all queries run",
            )
            began = time.monotonic()
            for device in devices:
                device.go()
            kills = kill_all(processes, options, kinds)
            rows = settled_rows(processes, queries, kills)
            seconds = time.monotonic() - began
            verdicts = {
                device.kind.name: judge(
                    device.kind, device.entries(), rows[device.kind.name], kills
                )
                for device in devices
            }
    found = {
        "benchmark": "device_faults",
        "settings": settings(options),
        "broker": broker,
        "seconds": round(seconds, 1),
        "load": [round(load, 1) for load in os.getloadavg()],
        "connectors": {name: facts(KINDS[name], each) for name, each in verdicts.items()},
    }
    return found, any(verdict.problems for verdict in verdicts.values())


def facts(kind: Kind, verdict: Verdict) -> Facts:
    """Return a verdict as plain values."""
    plain = dataclasses.asdict(verdict)
    del plain["examples"]
    return {"acknowledged when": str(kind.promise), **plain, "problems": verdict.problems}


def report(found: Facts) -> None:
    """Print a line for each connector."""
    columns = (
        "sent",
        "acknowledged",
        "arrived",
        "lost",
        "lost_before",
        "doubled",
        "forgotten",
        "allowed",
    )
    print(f"{'':<10}" + "".join(f"{column:>13}" for column in columns) + "  kills")
    for name, each in found["connectors"].items():
        kills = ", ".join(f"{victim} {count}" for victim, count in each["kills"].items())
        print(f"{name:<10}" + "".join(f"{each[column]:>13,}" for column in columns) + f"  {kills}")
    print(f"{found['seconds']} s, {found['broker']}")
    for name, each in found["connectors"].items():
        for problem in each["problems"]:
            print(f"WRONG: {name}: {problem}")


def arguments() -> argparse.ArgumentParser:
    """Return the options; what is published was made with their defaults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all")
    parser.add_argument("--readings", type=int, default=READINGS, help="of each device, at most")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="in which they are sent")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="kills of each process")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--broker", choices=("mosquitto", "embedded"), help="Mosquitto, if it is")
    parser.add_argument("--quick", action="store_true", help="1,500 readings in 25 s, one round")
    parser.add_argument("--out", type=Path, help=f"folder for {FILE}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def settings(options: argparse.Namespace) -> Facts:
    """Return what decides over the outcome, as it stands beside the figures."""
    kinds = {"kinds": options.kinds} if options.kinds else {}
    named = ("readings", "seconds", "rounds", "seed")
    return {**kinds, **{name: getattr(options, name) for name in named}}


def main() -> int:
    """Run the benchmark; the exit status says whether anything was wrong."""
    parser = arguments()
    options = parser.parse_args()
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no connector {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    if options.quick:
        options.readings = QUICK_READINGS
        options.seconds, options.rounds = QUICK_SECONDS, QUICK_ROUNDS
    # What has been started is ended however this ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found, failed = measure(options)
    write_results(options.out, FILE, found)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        report(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
