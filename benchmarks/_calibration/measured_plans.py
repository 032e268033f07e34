"""Processor time of the sites of a simulated federation while a plan runs."""

import time
from collections.abc import Callable, Sequence
from itertools import groupby

from typing_extensions import override

from benchmarks._optimizer.timed_network import TimedNetwork
from benchmarks._optimizer.worlds import BASE, START, STATIC, Readings, World
from deploy.calibration.rounds import without_collections
from stream_engine.site.step_result import StepResult
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import FragmentBundle

MOST_ACTIONS = 2_000_000


class CountingNetwork(TimedNetwork):
    """A network that counts what its sites compute, encode and decode.

    Attributes:
        nanoseconds: Of processor, by site.
    """

    def __init__(self, sites: Sequence[str], distance: Callable[[str, str], float]) -> None:
        super().__init__(sites, distance)
        self.nanoseconds = dict.fromkeys(sites, 0)

    @override
    def step(self, site: str) -> StepResult:
        began = time.process_time_ns()
        result = super().step(site)
        self.nanoseconds[site] += time.process_time_ns() - began
        return result

    @override
    def _collect(self, site: str, result: StepResult) -> None:
        began = time.process_time_ns()
        super()._collect(site, result)
        self.nanoseconds[site] += time.process_time_ns() - began

    @override
    def _deliver(self, sender: str, receiver: str, *, faulty: bool) -> None:
        began = time.process_time_ns()
        super()._deliver(sender, receiver, faulty=faulty)
        if receiver in self.nanoseconds:
            self.nanoseconds[receiver] += time.process_time_ns() - began


def sources_of(bundle: FragmentBundle) -> frozenset[str]:
    """Return the sources and tables that a plan reads, in lower case."""
    nodes = (node for fragment in bundle.fragments for node in walk_plan(fragment.plan))
    return frozenset(node.source.lower() for node in nodes if isinstance(node, Scan))


def processor_times(
    world: World, bundle: FragmentBundle | None, readings: Readings
) -> tuple[float, float]:
    """Return milliseconds of processor a second at all gateways, and at the base.

    Args:
        world: Sources, sites, and the seconds that count.
        bundle: The plan; None: nothing runs, and sites only keep the rows of their sources.
        readings: In the order of time, of the sources that the plan reads.
    """
    net = CountingNetwork((*world.gateways, BASE, STATIC), world.distance)
    for definition in (*world.catalog.sources, *world.catalog.tables):
        for site in (STATIC,) if definition.is_table else world.gateways:
            net.declare(site, definition.scan())
    net.advance(START)
    if bundle is not None:
        for name in sources_of(bundle) & set(world.tables):
            rows = [SourceEvent(row, START) for row in world.tables[name]]
            net.ingest(STATIC, world.source(name).name, rows)
        net.install(bundle)
    net.settle(limit=MOST_ACTIONS)
    begin = START + int(world.warm * MICROSECONDS)
    before: dict[str, int] | None = None
    with without_collections():
        for moment, group in groupby(readings, key=lambda reading: reading[0]):
            if moment >= begin and before is None:
                before = dict(net.nanoseconds)
            net.begin()
            net.now = max(moment, net.now)
            for _, gateway, source, event in group:
                net.ingest(gateway, world.source(source).name, [event])
            net.settle(limit=MOST_ACTIONS)
    if net.failures or before is None:
        raise RuntimeError(str(net.failures[:1]) or "no readings in the seconds that count")
    used = {site: total - before[site] for site, total in net.nanoseconds.items()}
    at_gateways = sum(used[site] for site in world.gateways)
    return at_gateways / world.seconds / 1e6, used[BASE] / world.seconds / 1e6
