"""Networks of links over gateways on which a recursion's prices are held against measured bytes."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from federated_optimizer import plan
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import (
    RecursionFacts,
    SourceFacts,
    Statistics,
)
from stream_engine.simulation.network import CONSOLE, Network
from streamsql.algebra.operators import Scan
from streamsql.binder import BoundQuery
from streamsql.data.events import SourceEvent
from streamsql.wire.bundles.partitioning import site_of
from streamsql.wire.fragments import RecursionPlan

Link = tuple[str, str]

GATEWAYS = ("gw-0", "gw-1", "gw-2", "gw-3")
CHANGES = 16
SEED = 7


def _both(pairs: set[Link]) -> list[Link]:
    return sorted(pairs | {(b, a) for a, b in pairs})


def tree() -> list[Link]:
    """Return a binary tree of 31 nodes."""
    return _both({(f"n{(k - 1) // 2}", f"n{k}") for k in range(1, 31)})


def ring() -> list[Link]:
    """Return a ring of 24 nodes."""
    return _both({(f"n{k}", f"n{(k + 1) % 24}") for k in range(24)})


def grid() -> list[Link]:
    """Return a grid of 6 by 6 nodes."""
    right = {(f"n{x}_{y}", f"n{x + 1}_{y}") for x in range(5) for y in range(6)}
    down = {(f"n{x}_{y}", f"n{x}_{y + 1}") for x in range(6) for y in range(5)}
    return _both(right | down)


def dense() -> list[Link]:
    """Return 24 nodes, each with six neighbours or so."""
    choice = random.Random(SEED)
    nodes = [f"n{k}" for k in range(24)]
    pairs = {(a, b) for a in nodes for b in choice.sample(nodes, 3) if a < b}
    return _both(pairs | {(nodes[k], nodes[k + 1]) for k in range(23)})


NETWORKS: dict[str, Callable[[], list[Link]]] = {
    "tree": tree,
    "ring": ring,
    "grid": grid,
    "dense": dense,
}


def cost_of(link: Link) -> float:
    """Return a cost that no two sums of links share, so that cheapest paths have no ties."""
    return 1.0 + random.Random("-".join(sorted(link))).random()


@dataclass(frozen=True, slots=True)
class Measured:
    """What a change of a link has cost.

    Attributes:
        bytes: Between sites, per change.
        facts: What EXPLAIN ANALYZE would have counted, at one change a second.
    """

    bytes: float
    facts: RecursionFacts


def measured(bound: BoundQuery, scan: Scan, links: list[Link]) -> tuple[Measured, RecursionPlan]:
    """Run a query over a network, take links away and bring them back, and count bytes."""
    topology = Topology(dict.fromkeys(GATEWAYS, frozenset({scan.source})))
    bundle = plan(bound, topology, query="q")
    network = Network((*GATEWAYS, "base"), seed=SEED)
    for site in GATEWAYS:
        network.declare(site, scan)
    network.install(bundle)
    for link in links:
        _put(network, scan, link)
    network.settle(limit=2_000_000)
    before, view = _between_sites(network), network.result("q")
    moved = 0
    chosen = random.Random(SEED).sample(links, CHANGES // 2)
    for link in chosen:
        for delete in (True, False):
            _put(network, scan, link, delete=delete)
            network.settle(limit=2_000_000)
            now = network.result("q")
            moved += len(now.keys() ^ view.keys())
            view = now
    spent = _between_sites(network) - before
    (recursion,) = bundle.recursions
    facts = RecursionFacts(float(len(links)), float(len(view)), 1.0, moved / CHANGES)
    return Measured(spent / CHANGES, facts), recursion


def priced(bound: BoundQuery, scan: Scan, facts: RecursionFacts, key: str) -> dict[str, float]:
    """Return the bytes a change by way, as EXPLAIN has them once that was counted."""
    statistics = Statistics(
        sources={scan.source: SourceFacts(rows=facts.base_rows, changes=facts.changes)},
        recursions={key: facts},
    )
    topology = Topology(dict.fromkeys(GATEWAYS, frozenset({scan.source})))
    (recursion,) = plan(bound, topology, query="q", statistics=statistics).recursions
    return {price.way: price.bytes_per_second for price in recursion.prices}


def _between_sites(network: Network) -> int:
    """Return the bytes that sites have sent to sites: no price counts what the console is told."""
    return sum(size for (_, to), size in network.traffic.bytes.items() if to != CONSOLE)


def _put(network: Network, scan: Scan, link: Link, *, delete: bool = False) -> None:
    event = SourceEvent((*link, cost_of(link)), 1, delete)
    network.ingest(site_of(link[:1], GATEWAYS), scan.source, [event])
