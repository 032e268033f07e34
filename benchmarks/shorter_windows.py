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

import random
import sys
import time
from statistics import median

from benchmarks._compared_networks import BASE, Figures, QueriesAtSites, compare_and_print
from federated_optimizer.registering.registration_terms import Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Strategy
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS

GATEWAYS = ("gw-1", "gw-2", "gw-3")
SOURCES = {
    "kept": "CREATE SOURCE s (device TEXT, value DOUBLE, ts TIMESTAMP) WITH (ttl = '2 minutes');",
    "newest": "CREATE SOURCE s (device TEXT, value DOUBLE, ts TIMESTAMP, KEY (device));",
}
LONGEST = "SELECT device, value, ts FROM s [RANGE 60 SECONDS]"
SHORTER = (10, 30, 20, 5)
"""Lengths of the other windows in seconds, in the order of their queries."""
FULL = 62
"""Seconds after which all windows are full."""


class World(QueriesAtSites):
    """Sites with queries over windows, and what they have sent and computed."""

    def __init__(self, kind: str, readers: int, strategy: Strategy) -> None:
        super().__init__(SOURCES[kind], GATEWAYS, Sharing(ComputationIndex(), strategy))
        self.seconds: list[float] = []
        self._before = (0, 0)
        texts = [f"SELECT device, value FROM s [RANGE {n} SECONDS]" for n in SHORTER[:readers]]
        self.register((LONGEST, *texts))

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


def compare(kind: str, readers: int, devices: int, seconds: int, seed: int) -> Figures:
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
    found: Figures = {"kind": kind, "readers": readers, "readings": came / seconds}
    for name, world in (("shared", shared), ("alone", alone)):
        sent, messages = world.sent()
        found[f"{name}_bytes"] = sent / seconds
        found[f"{name}_messages"] = messages / seconds
        found[f"{name}_ms"] = median(world.seconds) * 1_000
        found[f"{name}_rows"] = world.rows_kept()
    return found


def compare_all(quick: bool, seed: int) -> list[Figures]:
    """Return the figures of each kind of source, with one other window and with several."""
    devices, seconds = (30, 5) if quick else (600, 40)
    return [
        compare(kind, readers, devices, seconds, seed)
        for kind in SOURCES
        for readers in (1, len(SHORTER))
    ]


def show(found: list[Figures]) -> None:
    """Print figures as a table."""
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


def main() -> int:
    """Measure and print."""
    quick = "30 devices, five seconds"
    return compare_and_print(__doc__.splitlines()[0], quick, compare_all, show)


if __name__ == "__main__":
    sys.exit(main())
