"""A recursion over real gateway processes: how fast a deleted link is gone, and what it costs.

    pando bench recursive_gateways --quick
    python -m benchmarks.recursive_gateways --out docs/results

A base site, gateways and a broker as processes; the coordinator in this one; links of a
transit-stub network of 100 nodes spread over the gateways by node. The ways take turns: in every
round each of them, in rotating order, builds its answer on the same gateways and follows the same
share of the deletions:

* built: from the query to its settled answer over all links;
* delete, insert: one link at a time, such that the answer changes; from the command to the gateway
  (one more hop than the gateway's own reading would take) to the last changed row at the reader;
* between sites: bytes of the query's batches from site to site, as every site counts them where it
  publishes, less those to the reader;
* reader: bytes of the batches with changed rows of the answer, the same in every way;
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
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

import psutil

from benchmarks._fleet import SITE, Fleet, Link, ResultWatch, broker_bytes
from benchmarks._recursive.gateway_ways import Bytes, Fault, Outcome, Phase, judged, show
from benchmarks._recursive.workloads import closure
from broker.broker_launch import Preference
from broker.broker_testing import BrokerProcess
from host.mqtt import Message, open_client
from stream_engine.simulation.topologies import transit_stub
from streamsql.wire.topics import Topics

CHOICES = {
    "flood": "way = 'flood'",
    "witness": "way = 'witness'",
    "annotations": "way = 'annotations'",
    "centre": "way = 'centre'",
    "dred": "way = 'annotations', strategy = 'dred'",
}
QUICK_WAYS = ("flood", "centre")
SECONDS = 120.0


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


class ReaderMeter:
    """Bytes of the answers that sites publish for readers, by query."""

    def __init__(self, broker: str) -> None:
        self._client = open_client(broker, "meter")
        self._client.on_arrival(self._note)
        self.bytes: dict[str, int] = {}

    async def start(self) -> None:
        """Begin to count."""
        await self._client.connect()
        await self._client.subscribe(Topics(SITE).output())

    async def stop(self) -> None:
        """Stop counting."""
        await self._client.close()

    def _note(self, message: Message) -> None:
        query = message.topic.split("/")[-3]
        self.bytes[query] = self.bytes.get(query, 0) + len(message.payload)


class Session:
    """One fleet, and the ways measured on it."""

    def __init__(self, fleet: Fleet, broker: BrokerProcess, meter: ReaderMeter) -> None:
        self.fleet = fleet
        self.broker = broker
        self.meter = meter

    async def measure(self, outcome: Outcome, deletions: list[Link], *, faults: bool) -> None:
        """Let a way build its answer and follow some deletions, then faults or none.

        Raises:
            TimeoutError: An answer does not become right.
        """
        fleet = self.fleet
        wire, began = broker_bytes(self.broker.port), time.perf_counter()
        query = await fleet.query(f"SUBSCRIBE TO reachable WITH ({CHOICES[outcome.way]})")
        watch = ResultWatch(fleet, query)
        watch.expect(closure(fleet.links))
        outcome.build_seconds.append(await watch.reached(SECONDS) - began)
        await self._settled(query)
        outcome.build += self._bytes(query) - Bytes(wire=wire)
        for link in deletions:
            await self._change(watch, query, outcome.delete, [], [link])
            await self._change(watch, query, outcome.insert, [link], [])
        outcome.memory = {**fleet.memory(), "broker": _uss(self.broker.pid)}
        (recursion,) = fleet.coordinator.explain(query).data["recursions"]
        outcome.description = next(iter(recursion["sites_work"].values()))["description"]
        if faults:
            outcome.faults = [
                await self._fault(query, "killed gateway", self._kill),
                await self._fault(query, "slow gateway", lambda: self._hold(deletions[:1])),
                await self._fault(query, "killed broker", self._restart_broker),
            ]
        outcome.load = os.getloadavg()[0]
        await watch.close()
        await fleet.coordinator.stop(query)

    async def _change(
        self, watch: ResultWatch, query: str, phase: Phase, up: list[Link], down: list[Link]
    ) -> None:
        fleet = self.fleet
        watch.expect(closure((fleet.links - set(down)) | set(up)))
        before = self._bytes(query)
        began = time.perf_counter()
        fleet.change(up, down)
        phase.milliseconds.append((await watch.reached(SECONDS) - began) * 1_000)
        await self._settled(query)
        phase.bytes += self._bytes(query) - before

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

    async def _hold(self, links: list[Link]) -> None:
        slow = self.fleet.sites[self.fleet.gateways[1]]
        slow.signal(signal.SIGSTOP)
        self.fleet.change(down=links)
        await asyncio.sleep(1.0)
        self.fleet.change(up=links)
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

    def _bytes(self, query: str) -> Bytes:
        traffic = self.fleet.coordinator.explain(query).data["traffic"]
        reader = self.meter.bytes.get(query, 0)
        sent = sum(int(site["bytes"]) for site in traffic.values())
        return Bytes(sent - reader, reader, broker_bytes(self.broker.port))


def _uss(pid: int) -> int:
    return int(psutil.Process(pid).memory_full_info().uss)


async def run(options: argparse.Namespace, folder: Path, broker: BrokerProcess) -> list[Outcome]:
    """Start the fleet and measure every way, in turns."""
    net = transit_stub(1, options.links, seed=1)
    gateways = options.gateways
    hosts = {node: f"gw-{net.host_of(node, gateways):02}" for node in net.nodes}
    links = {(link.source, link.target, float(link.latency)) for link in net.links}
    deletions = visible_deletions(links, options.deletes, seed=2)
    fleet, meter = Fleet(folder, broker.url, hosts), ReaderMeter(broker.url)
    outcomes = [Outcome(way) for way in options.ways]
    try:
        began = time.perf_counter()
        await fleet.start(sorted(links), seconds=180.0)
        await meter.start()
        sys.stderr.write(
            f"{gateways} gateways, {len(links)} links, {len(deletions)} visible deletions, "
            f"{broker.kind} broker; all online after {time.perf_counter() - began:.1f} s; "
            f"load {os.getloadavg()[0]:.1f}\n"
        )
        session = Session(fleet, broker, meter)
        for number in range(options.rounds):
            share = deletions[number :: options.rounds]
            last = number == options.rounds - 1
            turn = number % len(outcomes)
            for outcome in outcomes[turn:] + outcomes[:turn]:
                await session.measure(outcome, share, faults=last and not options.no_faults)
                sys.stderr.write(f"round {number + 1}: {outcome.way} done\n")
    finally:
        await meter.stop()
        await fleet.stop()
    return outcomes


def arguments() -> argparse.ArgumentParser:
    """Return the options; what is published was made with their defaults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gateways", type=int, default=12)
    parser.add_argument("--links", type=int, default=4, help="directed links a node (4)")
    parser.add_argument("--deletes", type=int, default=8, help="that change the answer (8)")
    parser.add_argument("--rounds", type=int, default=2, help="turns of every way (2)")
    parser.add_argument("--ways", nargs="+", choices=list(CHOICES), default=list(CHOICES))
    parser.add_argument("--broker", choices=["embedded", "mosquitto"], default="embedded")
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument(
        "--quick", action="store_true", help="3 gateways, 2 deletions, flood and centre, no faults"
    )
    parser.add_argument("--out", type=Path, help="folder for gateways.json")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def settings(options: argparse.Namespace) -> dict[str, object]:
    """Return what decides over the outcome."""
    return {name: value for name, value in vars(options).items() if name not in ("out", "json")}


def main() -> int:
    """Return 0; goals are printed, not enforced: this machine is shared."""
    options = arguments().parse_args()
    if options.quick:
        options.gateways, options.deletes, options.rounds = 3, 2, 1
        options.ways, options.no_faults = list(QUICK_WAYS), True
    kind: Preference = options.broker
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "broker").mkdir()
        with BrokerProcess(kind, folder / "broker") as broker:
            outcomes = asyncio.run(run(options, folder, broker))
    lines = judged(outcomes)
    figures = {
        "settings": settings(options),
        "outcomes": [asdict(outcome) for outcome in outcomes],
        "goals": lines,
    }
    text = json.dumps(figures, indent=1) + "\n"
    if options.out is not None:
        (options.out / "gateways.json").write_text(text)
    if options.json:
        sys.stdout.write(text)
    else:
        for outcome in outcomes:
            show(outcome)
        print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
