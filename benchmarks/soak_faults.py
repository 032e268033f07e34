"""Are answers right, and words true, while processes die, freeze, and run out of disk and time?

A federation of real processes (broker, base site, three gateways, static engine, console) is fed
from a seed. Faults come one after the other: processes killed and frozen, brokers restarted, disks
full, a clock set. Meanwhile standing queries, an alarm and windows that close are polled; what
claims to be settled must be the truth of the gateways that are there, computed apart from what was
fed; what is missing must be named, and nothing else; a window is given once; no alarm is cleared by
a fault. Exits with 1 when anything was wrong.

    pando bench soak_faults --quick
    python -m benchmarks.soak_faults --out docs/results
"""

import argparse
import dataclasses
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._soak.faults import QUICK, Fault, FaultKind, faults, impossible
from benchmarks._soak.federation import BASE, STATIC, Federation, federation
from benchmarks._soak.feed import GATEWAYS, PERIOD, SECOND, make_feed, write_feed
from benchmarks._soak.truth import Truth
from benchmarks._soak.watch import Tally, Watch
from broker.broker_launch import Preference, find_mosquitto
from host.clocks import wall_clock

LEAD_SECONDS = 25
"""From the start of the gateways to their first reading; all queries must run by then."""
CALM_SECONDS = 6.0
POLL_SECONDS = 1.0
RECOVERY_SECONDS = 120.0
QUICK_MINUTES = 10.0
"""At most; four faults take one or two."""

Facts = dict[str, Any]


class Soak:
    """One run."""

    def __init__(self, running: Federation, seed: int, minutes: float) -> None:
        self.running = running
        rounds = int((minutes * 60 + RECOVERY_SECONDS + 60) * SECOND / PERIOD) + 1
        self.begin = wall_clock() + LEAD_SECONDS * SECOND
        self.feed = make_feed(seed, self.begin, rounds)
        write_feed(self.feed, running.folder)
        self.watch = Watch(running, Truth(self.feed), self.feed)
        self.calm = self.watch.tally
        self.tallies: dict[FaultKind, Tally] = defaultdict(Tally)
        self.recoveries: dict[FaultKind, list[float]] = defaultdict(list)
        self.ended: list[str] = []

    def start(self) -> None:
        """Start gateways and queries, and wait until the first readings are answered.

        Raises:
            RuntimeError: The machine is too busy: the queries do not run by the first reading.
        """
        self.running.start(*GATEWAYS)
        sites = {*GATEWAYS, BASE, STATIC}
        self.running.until(lambda: sites <= self._online(), "all sites are online")
        self.watch.ask()
        self.running.until(self._all_run, "all queries run")
        if wall_clock() >= self.begin:
            raise RuntimeError("this machine is too busy: the queries run after the first reading")
        time.sleep((self.begin - wall_clock()) / SECOND)
        self.running.until(self.watch.poll, "the first answers are right")
        self.watch.begun()

    def _online(self) -> set[str]:
        return {site["site"] for site in self.running.get("/api/sites") if site["online"]}

    def _all_run(self) -> bool:
        found = [self.running.get(f"/api/queries/{query}") for query in self.watch.ids.values()]
        return all(query["status"] == "running" and query["settled"] for query in found)

    def rest(self, seconds: float, *, lasts: bool = False) -> None:
        """Poll for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.watch.poll(lasts=lasts)
            time.sleep(max(min(POLL_SECONDS, left), 0))

    def suffer(self, fault: Fault) -> None:
        """Let a fault come and go; wait until everything is right again."""
        self.watch.tally = self.tallies[fault.kind]
        self.watch.begin(fault)
        try:
            fault.begin(self.running)
            self.rest(fault.seconds, lasts=True)
        finally:
            fault.end(self.running)
        self.watch.poll(lasts=True)
        over = time.monotonic()
        while not self.watch.poll():
            self._revive()
            if time.monotonic() - over > RECOVERY_SECONDS:
                behind = ", ".join(self.watch.behind)
                self.ended.append(f"{fault}: {behind} not right within {RECOVERY_SECONDS:g} s")
                break
            time.sleep(POLL_SECONDS)
        self.recoveries[fault.kind].append(time.monotonic() - over)
        self.watch.tally = self.calm

    def _revive(self) -> None:
        """Start again what has ended by itself, and say so."""
        for name, words in self.running.ended().items():
            self.ended.append(f"{name} has ended: {words}")
            self.running.start(name)

    def facts(self) -> Facts:
        """Return all that was found."""
        windows, raised = self.watch.windows, self.watch.raised
        return {
            "without fault": dataclasses.asdict(self.calm),
            "faults": {
                str(kind): {
                    "times": len(self.recoveries[kind]),
                    **dataclasses.asdict(tally),
                    "recovery_s": _spread(self.recoveries[kind]),
                }
                for kind, tally in self.tallies.items()
            },
            "windows": {"given": len(windows.given), "without a gateway away": windows.without},
            "alarm": {"cleared rows": raised.cleared, "seen": dict(raised.states)},
            "most seconds behind": dict(self.watch.lag),
            "readings": sum(
                ts <= wall_clock() for recording in self.feed.values() for ts in recording.times()
            ),
            "memory": self.running.memory(),
            "ended": self.ended,
            "gaps": self.watch.named,
            "lies": self.watch.examples,
        }

    @property
    def failed(self) -> bool:
        """Whether the run found a wrong answer, a false word or a process that ended by itself."""
        tallies = (self.calm, *self.tallies.values())
        return bool(self.ended) or any(tally.lies for tally in tallies)


def _spread(seconds: list[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    return {"median": round(statistics.median(seconds), 1), "most": round(max(seconds), 1)}


def soak(options: argparse.Namespace) -> tuple[Facts, bool]:
    """Run it; return what was found, and whether anything was wrong."""
    found_broker: Preference = "mosquitto" if find_mosquitto() else "embedded"
    broker: Preference = options.broker or found_broker
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="pando-soak-") as folder,
        federation(Path(folder), broker) as running,
    ):
        run = Soak(running, options.seed, options.minutes)
        run.start()
        not_run = impossible(running)
        chosen = options.only or (QUICK if options.quick else FaultKind)
        kinds = tuple(kind for kind in chosen if kind not in not_run)
        end = time.monotonic() + options.minutes * 60
        deck = faults(options.seed, kinds)
        for fault in islice(deck, len(kinds)) if options.quick else deck:
            run.rest(CALM_SECONDS)
            if time.monotonic() > end:
                break
            if not options.json:
                shown = f"{fault.kind}: {fault.target}, {fault.seconds} s"
                print(f"{time.monotonic() - began:6.0f} s  {shown}", file=sys.stderr, flush=True)
            run.suffer(fault)
        found = run.facts()
    told = {
        "settings": settings(options),
        "broker": broker,
        "not run": {str(kind): why for kind, why in not_run.items()},
        "seconds": round(time.monotonic() - began, 1),
        "load": [round(load, 1) for load in os.getloadavg()],
    }
    return {**told, **found}, run.failed


def report(found: Facts) -> None:
    """Print a table by fault."""
    table = Table("fault", "times", "polls", "settled", "right", "wrong", "stale", "degraded")
    for title in ("unnamed", "false gaps", "false words", "recovery s", "most"):
        table.add_column(title)
    for name, part in (("none", found["without fault"]), *found["faults"].items()):
        keys = ("polls", "settled", "right", "wrong", "stale", "degraded")
        words = ("unnamed", "false_gaps", "false_words")
        recovery = part.get("recovery_s") or {"median": "", "most": ""}
        cells = [part.get("times", ""), *(part[key] for key in (*keys, *words))]
        table.add_row(name, *map(str, (*cells, recovery["median"], recovery["most"])))
    Console(width=140).print(table)
    for key in ("windows", "alarm", "most seconds behind", "not run"):
        print(f"{key}: {found[key]}")
    for line in (*found["ended"], *found["lies"]):
        print(f"WRONG: {line}")


def arguments() -> argparse.ArgumentParser:
    """Return the options; what is published was made with their defaults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=8.0, help="of faults")
    parser.add_argument("--seed", type=int, default=1, help="of what is fed and of the faults")
    parser.add_argument("--broker", choices=("mosquitto", "embedded"), help="Mosquitto, if it is")
    parser.add_argument("--quick", action="store_true", help="four faults: a minute or two")
    parser.add_argument(
        "--only", type=FaultKind, action="append", metavar="FAULT", help='as "base frozen"; again'
    )
    parser.add_argument("--out", type=Path, help="folder for soak-faults.json")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def settings(options: argparse.Namespace) -> Facts:
    """Return what decides over the outcome, as it stands beside the figures."""
    only = {"only": [str(kind) for kind in options.only]} if options.only else {}
    return {"minutes": options.minutes, "seed": options.seed, **only}


def main() -> int:
    """Run the soak; the exit status says whether anything was wrong."""
    options = arguments().parse_args()
    if options.quick:
        options.minutes = QUICK_MINUTES
    # What has been started and mounted is taken away again however this ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found, failed = soak(options)
    if options.out is not None:
        text = json.dumps(found, indent=1) + "\n"
        (options.out / "soak-faults.json").write_text(text, encoding="utf-8")
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        report(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
