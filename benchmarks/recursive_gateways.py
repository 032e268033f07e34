"""A recursion over real gateway processes: how fast a deleted link is gone, and what it costs.

    python -m benchmarks.recursive_gateways [--gateways 24] [--links 4] [--deletes 24]
                                            [--ways flood witness …] [--broker embedded|mosquitto]
                                            [--no-faults] [--json FILE]

A base site, gateways and a broker as processes; the coordinator in this one; links of a
transit-stub network of 100 nodes spread over the gateways by node. For every way, one after the
other on the same gateways:

* built: from the query to its settled answer over all links;
* delete, insert: one link at a time, such that the answer changes; from the command to the gateway
  (one more hop than the gateway's own reading would take) to the last changed row at the reader;
* payload: bytes of the query's batches, as every site counts them where it publishes;
* wire: bytes that all clients have sent to the broker, as the kernel counts them (`ss`): MQTT
  itself, acknowledgements, observations, reports and heartbeats are in it;
* faults: a gateway killed (-9) and started again, one stopped for a second (SIGSTOP), the broker
  killed and started again: seconds until the answer is settled and right, with all the time that
  processes take to start and clients to reconnect, and the snapshots that this cost;
* memory: private memory (USS) of all site processes and the broker.

`dred` is the strategy DRed over the same gateways, its derived rows shipped: the baseline.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from benchmarks._recursive.workloads import closure
from deploy.fleet import Fleet, Link, ResultWatch, broker_bytes
from gateway.broker.launch import Preference
from gateway.broker.testing import BrokerProcess
from stream_engine.simulation.topologies import transit_stub

CHOICES = {
    "flood": "way = 'flood'",
    "witness": "way = 'witness'",
    "annotations": "way = 'annotations'",
    "centre": "way = 'centre'",
    "dred": "way = 'annotations', strategy = 'dred'",
}
SECONDS = 120.0
GOAL_MILLISECONDS = 50.0
GOAL_BYTES = 2 << 30


@dataclass
class Phase:
    """Changes of one kind: milliseconds each, and bytes of all."""

    milliseconds: list[float] = field(default_factory=list)
    payload: int = 0
    wire: int = 0

    def line(self, name: str) -> str:
        """Return it as text."""
        count = len(self.milliseconds)
        ordered = sorted(self.milliseconds)
        p95 = ordered[min(count - 1, int(count * 0.95))]
        return (
            f"  {name:<7} p50 {statistics.median(ordered):6.1f} ms  p95 {p95:6.1f}  "
            f"max {ordered[-1]:6.1f}   payload {self.payload / count:9,.0f} B each  "
            f"wire {self.wire / count:9,.0f} B each"
        )


@dataclass
class Fault:
    """What a fault has cost: seconds, and snapshots in batches and bytes."""

    name: str
    seconds: float
    batches: int
    bytes: int


@dataclass
class Outcome:
    """What came of one way."""

    way: str
    description: str = ""
    load: float = 0.0
    build_seconds: float = 0.0
    build_payload: int = 0
    build_wire: int = 0
    delete: Phase = field(default_factory=Phase)
    insert: Phase = field(default_factory=Phase)
    faults: list[Fault] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)


def visible_deletions(links: set[Link], count: int, seed: int) -> list[Link]:
    """Return links whose deletion alone changes the answer, as many as there are up to a count."""
    whole = closure(links)
    order = sorted(links)
    random.Random(seed).shuffle(order)
    found: list[Link] = []
    for link in order:
        if len(found) == count:
            break
        if closure(links - {link}) != whole:
            found.append(link)
    return found


class Session:
    """One fleet, and the ways measured on it."""

    def __init__(self, fleet: Fleet, broker: BrokerProcess, deletions: list[Link]) -> None:
        self.fleet = fleet
        self.broker = broker
        self.deletions = deletions

    async def measure(self, way: str, *, faults: bool) -> Outcome:
        """Run everything in one way, with faults or without.

        Raises:
            TimeoutError: An answer does not become right.
        """
        outcome, fleet = Outcome(way), self.fleet
        wire, began = broker_bytes(self.broker.port), time.perf_counter()
        query = await fleet.query(f"SUBSCRIBE TO reachable WITH ({CHOICES[way]})")
        watch = ResultWatch(fleet, query)
        watch.expect(closure(fleet.links))
        outcome.build_seconds = await watch.reached(SECONDS) - began
        await self._settled(query)
        outcome.build_payload = self._payload(query)
        outcome.build_wire = broker_bytes(self.broker.port) - wire
        for link in self.deletions:
            await self._change(watch, query, outcome.delete, [], [link])
            await self._change(watch, query, outcome.insert, [link], [])
        outcome.memory = {**fleet.memory(), "broker": _uss(self.broker.pid)}
        (recursion,) = fleet.coordinator.explain(query).data["recursions"]
        outcome.description = next(iter(recursion["sites_work"].values()))["description"]
        if faults:
            outcome.faults = [
                await self._fault(query, "killed gateway", self._kill),
                await self._fault(query, "slow gateway", self._hold),
                await self._fault(query, "killed broker", self._restart_broker),
            ]
        outcome.load = os.getloadavg()[0]
        await watch.close()
        await fleet.coordinator.stop(query)
        return outcome

    async def _change(
        self, watch: ResultWatch, query: str, phase: Phase, up: list[Link], down: list[Link]
    ) -> None:
        fleet = self.fleet
        watch.expect(closure((fleet.links - set(down)) | set(up)))
        wire, payload = broker_bytes(self.broker.port), self._payload(query)
        began = time.perf_counter()
        fleet.change(up, down)
        phase.milliseconds.append((await watch.reached(SECONDS) - began) * 1_000)
        await self._settled(query)
        phase.payload += self._payload(query) - payload
        phase.wire += broker_bytes(self.broker.port) - wire

    async def _fault(self, query: str, name: str, happen: Callable[[], Awaitable[None]]) -> Fault:
        """Let something happen; wait until the answer is right again, and count what it cost."""
        fleet, before = self.fleet, self._snapshots(query)
        began = time.perf_counter()
        await happen()
        wanted = closure(fleet.links)

        def right() -> bool:
            return fleet.info(query).settled and fleet.rows(query) == wanted

        await fleet.until(
            lambda: fleet.all_live() and right(),
            f"right after {name}",
            SECONDS,
        )
        seconds = time.perf_counter() - began
        await self._settled(query)
        after = self._snapshots(query)
        # A process that was started again counts from nothing.
        costs = [
            [now - then if now >= then else now for now, then in zip(figures, old, strict=True)]
            for site, figures in after.items()
            for old in (before.get(site, (0, 0)),)
        ]
        return Fault(name, seconds, sum(c[0] for c in costs), sum(c[1] for c in costs))

    def _snapshots(self, query: str) -> dict[str, tuple[int, int]]:
        traffic = self.fleet.coordinator.explain(query).data["traffic"]
        return {s: (int(t["snapshots"]), int(t["snapshot_bytes"])) for s, t in traffic.items()}

    async def _kill(self) -> None:
        victim = self.fleet.sites[self.fleet.gateways[0]]
        victim.kill()
        await asyncio.sleep(0.5)
        victim.start()
        await asyncio.sleep(2.0)  # its death is noticed by now

    async def _hold(self) -> None:
        slow = self.fleet.sites[self.fleet.gateways[1]]
        slow.signal(signal.SIGSTOP)
        self.fleet.change(down=self.deletions[:1])
        await asyncio.sleep(1.0)
        self.fleet.change(up=self.deletions[:1])
        slow.signal(signal.SIGCONT)

    async def _restart_broker(self) -> None:
        self.broker.stop(signal.SIGKILL)
        await asyncio.sleep(0.5)
        self.broker.start()
        await asyncio.sleep(1.0)

    async def _settled(self, query: str) -> None:
        """Wait until all counts are in: reports come ten times a second."""
        await asyncio.sleep(0.25)
        await self.fleet.until(lambda: self.fleet.info(query).settled, "it settles", SECONDS)

    def _payload(self, query: str) -> int:
        traffic = self.fleet.coordinator.explain(query).data["traffic"]
        return sum(int(site["bytes"]) for site in traffic.values())


def _uss(pid: int) -> int:
    return int(psutil.Process(pid).memory_full_info().uss)


async def run(arguments: argparse.Namespace, folder: Path, broker: BrokerProcess) -> list[Outcome]:
    """Start the fleet and measure every way."""
    net = transit_stub(1, arguments.links, seed=1)
    gateways = arguments.gateways
    hosts = {node: f"gw-{net.host_of(node, gateways):02}" for node in net.nodes}
    links = {(link.source, link.target, float(link.latency)) for link in net.links}
    deletions = visible_deletions(links, arguments.deletes, seed=2)
    fleet = Fleet(folder, broker.url, hosts)
    outcomes = []
    try:
        began = time.perf_counter()
        await fleet.start(sorted(links), seconds=180.0)
        print(
            f"{gateways} gateways, {len(links)} links, {len(deletions)} visible deletions, "
            f"{broker.kind} broker; all online after {time.perf_counter() - began:.1f} s; "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        session = Session(fleet, broker, deletions)
        for way in arguments.ways:
            outcomes.append(await session.measure(way, faults=not arguments.no_faults))
            _print(outcomes[-1])
    finally:
        await fleet.stop()
    return outcomes


def _print(outcome: Outcome) -> None:
    total = sum(outcome.memory.values())
    print(f"{outcome.way}: {outcome.description}; load {outcome.load:.1f}")
    print(
        f"  built   {outcome.build_seconds:6.2f} s   payload {outcome.build_payload:11,} B   "
        f"wire {outcome.build_wire:11,} B"
    )
    print(outcome.delete.line("delete"))
    print(outcome.insert.line("insert"))
    for fault in outcome.faults:
        print(
            f"  {fault.name:<15} right after {fault.seconds:5.1f} s; snapshots: "
            f"{fault.batches} batches, {fault.bytes:,} bytes"
        )
    print(
        f"  memory  {total / 2**20:,.0f} MiB in {len(outcome.memory)} processes "
        f"(largest {max(outcome.memory.values()) / 2**20:.0f} MiB)",
        flush=True,
    )


def judged(outcomes: list[Outcome]) -> list[str]:
    """Return goals with what was reached (E3, E4 and B3 of performance.md)."""
    by_way = {outcome.way: outcome for outcome in outcomes}
    lines = []
    dred = by_way.get("dred")
    for way, outcome in by_way.items():
        if way == "dred":
            continue
        p50 = statistics.median(outcome.delete.milliseconds)
        verdict = "pass" if p50 <= GOAL_MILLISECONDS else "miss"
        text = f"E3 {way}: deleted link gone in {p50:.1f} ms p50 (goal <= 50): {verdict}"
        if dred is not None:
            ratio = statistics.median(dred.delete.milliseconds) / p50
            text += f"; DRed takes {ratio:.1f} times as long (goal >= 10)"
            text += f", {dred.delete.payload / max(outcome.delete.payload, 1):.1f} times the bytes"
        lines.append(text)
    most = max(sum(outcome.memory.values()) for outcome in outcomes)
    verdict = "pass" if most <= GOAL_BYTES else "miss"
    lines.append(f"E4: {most / 2**20:,.0f} MiB for all processes (goal <= 2,048): {verdict}")
    references = [by_way[w] for w in ("flood", "centre") if w in by_way]
    if references:
        cheapest = min(_payload(outcome) for outcome in references)
        for way, outcome in by_way.items():
            lines.append(f"B3 {way}: {_payload(outcome) / cheapest:.1f} x min(flood, centre)")
    return lines


def _payload(outcome: Outcome) -> int:
    return outcome.build_payload + outcome.delete.payload + outcome.insert.payload


def main() -> int:
    """Return 0; goals are printed, not enforced: this machine is shared."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gateways", type=int, default=24)
    parser.add_argument("--links", type=int, default=4, help="directed links a node")
    parser.add_argument("--deletes", type=int, default=24)
    parser.add_argument("--ways", nargs="+", choices=list(CHOICES), default=list(CHOICES))
    parser.add_argument("--broker", choices=["embedded", "mosquitto"], default="embedded")
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    kind: Preference = arguments.broker
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "broker").mkdir()
        with BrokerProcess(kind, folder / "broker") as broker:
            outcomes = asyncio.run(run(arguments, folder, broker))
    lines = judged(outcomes)
    print("\n".join(lines))
    if arguments.json:
        figures = {
            "gateways": arguments.gateways,
            "links a node": arguments.links,
            "broker": arguments.broker,
            "outcomes": [asdict(outcome) for outcome in outcomes],
            "goals": lines,
        }
        arguments.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
