"""Cost of windows of several lengths over one source: from the longest one's rows, or each alone.

    python -m benchmarks.shorter_windows [--quick] [--json] [--seed 1]

Three gateways and a base site in one process. A query has the readings of the last minute, others
those of shorter times, down to 5 s. Shared, gateways send the readings once, and of each shorter
window only its bounds; alone, they send each window. Both in turns, second by second, with the same
readings, when all windows are full.

    kept        each reading stays for two minutes: it leaves every window
    newest      the newest reading of each device, which comes every 2 to 4 s: few leave by time

    bytes/s     that gateways send to the base, as encoded, in a second of readings
    messages/s  likewise
    ms/s        processor time of all sites, with encoding and decoding (median)
    rows        that operators of the base keep, beside what channels keep of what was received

How to read it: only ratios within one run mean anything. Answers are compared every second.
"""

import argparse
import gc
import json
import random
import sys
import time
from statistics import median

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Strategy
from federated_optimizer.testing_network import Network as Runs
from gateway.__main__ import COLLECTIONS
from stream_engine.simulation.network import Network
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.binder import BoundQuery, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS
from streamsql.syntax import parse_script, parse_statement
from streamsql.syntax.statements import CreateSource, Query

GATEWAYS = ("gw-1", "gw-2", "gw-3")
BASE = "base"
SOURCES = {
    "kept": "CREATE SOURCE s (device TEXT, value DOUBLE, ts TIMESTAMP) WITH (ttl = '2 minutes');",
    "newest": "CREATE SOURCE s (device TEXT, value DOUBLE, ts TIMESTAMP, KEY (device));",
}
LONGEST = "SELECT device, value, ts FROM s [RANGE 60 SECONDS]"
SHORTER = (10, 30, 20, 5)
"""Lengths of the other windows in seconds, in the order of their queries."""
FULL = 62
"""Seconds after which all windows are full."""


class World:
    """Sites with queries over windows, and what they have sent and computed."""

    def __init__(self, kind: str, readers: int, strategy: Strategy) -> None:
        catalog = Catalog(())
        for statement in parse_script(SOURCES[kind]):
            if isinstance(statement, CreateSource):
                catalog.define(define(statement, catalog))
        topology = Topology(dict.fromkeys(GATEWAYS, frozenset("s")))
        runs = Runs(Planning(topology), Sharing(ComputationIndex(), strategy))
        self.sites = Network((*GATEWAYS, BASE))
        self.queries: list[str] = []
        self.seconds: list[float] = []
        self._before = (0, 0)
        texts = [f"SELECT device, value FROM s [RANGE {n} SECONDS]" for n in SHORTER[:readers]]
        for text in (LONGEST, *texts):
            bound = _bound(text, catalog)
            if not self.queries:
                scans = [node for node in walk_plan(bound.plan) if isinstance(node, Scan)]
                for gateway in GATEWAYS:
                    self.sites.declare(gateway, scans[0])
            change = runs.register(bound)
            self.queries.append(runs.reads[change.query])
            for bundle in change.deploy:
                self.sites.install(bundle)
        self.sites.settle()

    def second(self, now: int, events: dict[str, list[SourceEvent]]) -> None:
        """Let a second pass, with the readings of each gateway."""
        began = time.process_time()
        self.sites.advance(now)
        for gateway, happened in events.items():
            self.sites.ingest(gateway, "s", happened)
        self.sites.settle()
        self.seconds.append(time.process_time() - began)

    def sent(self) -> tuple[int, int]:
        """Return bytes and messages from gateways to the base since it was asked last."""
        traffic = self.sites.traffic
        total = (
            sum(traffic.bytes.get((gateway, BASE), 0) for gateway in GATEWAYS),
            sum(traffic.messages.get((gateway, BASE), 0) for gateway in GATEWAYS),
        )
        before, self._before = self._before, total
        return total[0] - before[0], total[1] - before[1]

    def answers(self) -> list[Delta]:
        """Return the rows of all queries."""
        return [self.sites.result(query) for query in self.queries]


def _bound(text: str, catalog: Catalog) -> BoundQuery:
    statement = parse_statement(text)
    if not isinstance(statement, Query):
        raise AssertionError(text)
    return bind_query(statement, catalog)


class Readings:
    """Readings of devices, the same for both worlds."""

    def __init__(self, kind: str, devices: int, seed: int) -> None:
        self._chance = random.Random(seed)
        self._kind = kind
        self._devices = devices
        self._due = [self._chance.randrange(4) for _ in range(devices)]

    def second(self, number: int) -> dict[str, list[SourceEvent]]:
        """Return the readings of a second, by gateway, in the order of their times."""
        events: dict[str, list[SourceEvent]] = {gateway: [] for gateway in GATEWAYS}
        for device, due in enumerate(self._due):
            if due > number:
                continue
            self._due[device] = number + self._chance.randrange(2, 5)
            ts = number * MICROSECONDS - self._chance.randrange(MICROSECONDS)
            row = (f"device-{device}", round(self._chance.gauss(21, 2), 2), ts)
            events[GATEWAYS[device % len(GATEWAYS)]].append(SourceEvent(row, ts))
        for happened in events.values():
            happened.sort(key=lambda event: event.ts)
        return events


def compare(
    kind: str, readers: int, devices: int, seconds: int, seed: int
) -> dict[str, float | str]:
    """Return what windows send and cost, from one window's rows and each alone."""
    shared = World(kind, readers, Strategy.ALL)
    alone = World(kind, readers, Strategy.OFF)
    readings = Readings(kind, devices, seed)
    came = 0
    for number in range(1_000, 1_000 + FULL + seconds):
        if number == 1_000 + FULL:
            for world in (shared, alone):
                world.seconds.clear()
                world.sent()
        events = readings.second(number)
        came += sum(map(len, events.values())) if number >= 1_000 + FULL else 0
        turns = (shared, alone) if number % 2 else (alone, shared)
        for world in turns:
            world.second(number * MICROSECONDS, events)
        if shared.answers() != alone.answers():
            raise AssertionError(f"{kind}: queries answer otherwise when they share")
    found: dict[str, float | str] = {"kind": kind, "readers": readers, "readings": came / seconds}
    for name, world in (("shared", shared), ("alone", alone)):
        sent, messages = world.sent()
        found[f"{name}_bytes"] = sent / seconds
        found[f"{name}_messages"] = messages / seconds
        found[f"{name}_ms"] = median(world.seconds) * 1_000
        found[f"{name}_rows"] = world.sites.state_rows()[BASE]
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="30 devices, five seconds")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args()
    devices, seconds = (30, 5) if options.quick else (600, 40)
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    found = [
        compare(kind, readers, devices, seconds, options.seed)
        for kind in SOURCES
        for readers in (1, len(SHORTER))
    ]
    if options.json:
        print(json.dumps({"quick": options.quick, "seed": options.seed, "found": found}))
        return 0
    print(f"{'':8} {'readers':>7} {'readings/s':>10}", end="")
    for name in ("bytes/s", "messages/s", "ms/s", "rows"):
        print(f" {'alone':>8} {'shared':>8} {name:>10}", end="")
    print()
    for f in found:
        print(f"{f['kind']:8} {f['readers']:7} {f['readings']:10.0f}", end="")
        for name in ("bytes", "messages", "ms", "rows"):
            alone, shared = float(f[f"alone_{name}"]), float(f[f"shared_{name}"])
            print(f" {alone:8.0f} {shared:8.0f} {shared / alone if alone else 0:9.2f}x", end="")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
