"""Planned recursions on simulated sites: every way, a network that loses and repeats, dying sites.

The plans are the optimizer's, the sites are the engine's, only the network is simulated; the same
over real processes is `test_recursion_gateways`.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer import plan
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Homes, Statistics
from stream_engine.simulation.network import Faults, Network
from stream_engine.simulation.topologies import transit_stub
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

pytestmark = pytest.mark.end_to_end

WAYS = ("witness", "annotations", "flood", "centre")
QUERIES = {
    "reachable": "SELECT src, dst FROM reachable",
    "cheapest": "SELECT src, dst, cost FROM cheapest_path WHERE src <> dst",
    "from one": "SELECT dst FROM reachable WHERE src = 'n0'",
}
CATALOG = catalog_of(
    "CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst)) ",
    library=True,
)
SCAN = CATALOG.sources[0].scan()

Link = tuple[str, str, float]


def bundle_of(
    text: str, way: str, gateways: tuple[str, ...], homes: Homes
) -> tuple[Plan, FragmentBundle]:
    """Return the plan as bound, and its fragments at gateways and the base."""
    bound = bound_query(f"{text} WITH (way = '{way}')", CATALOG)
    topology = Topology(dict.fromkeys(gateways, frozenset({"link"})))
    bundle = plan(bound, topology, query="q", statistics=Statistics(homes=homes))
    assert bundle.recursions[0].way == way
    return bound.plan, bundle


@dataclass
class World:
    """A network of gateways and a base, and the links that hold at each gateway."""

    gateways: tuple[str, ...]
    text: str
    way: str
    seed: int = 0
    faults: Faults | None = None
    homes: Homes = field(default_factory=Homes)
    held: dict[str, set[Link]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Install the query."""
        self.network = Network(("base", *self.gateways), seed=self.seed, faults=self.faults)
        for gateway in self.gateways:
            self.network.declare(gateway, SCAN)
            self.held[gateway] = set()
        self.plan, self.bundle = bundle_of(self.text, self.way, self.gateways, self.homes)
        self.network.install(self.bundle)

    def owner(self, node: str) -> str:
        """Return the gateway of a node's links."""
        if node in self.homes.gateway:
            return self.homes.gateway[node]
        return self.gateways[sum(node.encode()) % len(self.gateways)]

    def put(self, link: Link, *, delete: bool = False) -> None:
        """Let a link come or go; nothing happens at a gateway that is down."""
        gateway = self.owner(link[0])
        if gateway not in self.network.sites:
            return
        self.network.now += 1
        self.network.ingest(gateway, "link", [SourceEvent(link, self.network.now, delete)])
        held = {known for known in self.held[gateway] if known[:2] != link[:2]}
        self.held[gateway] = held if delete else held | {link}

    def kill(self, gateway: str) -> None:
        """Let a gateway die with its links."""
        self.network.kill(gateway)
        self.held[gateway] = set()

    def wanted(self) -> Delta:
        """Return what the query means over all links that hold."""
        database = Database()
        links = sorted(link for held in self.held.values() for link in held)
        database.append("link", [SourceEvent(link, 1) for link in links])
        return evaluate(self.plan, database, self.network.now + 1)

    def check(self) -> None:
        """Settle and compare."""
        self.network.settle(limit=200_000)
        assert self.network.failures == []
        assert self.network.result("q") == self.wanted()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", QUERIES)
def test_links_of_a_network_come_and_go_over_twelve_gateways(query: str, way: str) -> None:
    net = transit_stub(1, 2, seed=3)
    chosen = set(net.nodes[:36])
    links = [
        (link.source, link.target, float(link.latency))
        for link in net.links
        if {link.source, link.target} <= chosen
    ]
    world = World(tuple(f"gw-{i:02}" for i in range(12)), QUERIES[query], way, seed=4)
    for link in links:
        world.put(link)
    world.check()
    for link in links[::7]:
        world.put(link, delete=True)
        world.check()
    for link in links[::7]:
        world.put(link)
    world.check()


@pytest.mark.parametrize("way", ["witness", "annotations"])
def test_keeping_neighbours_together_sends_less_and_answers_the_same(way: str) -> None:
    net = transit_stub(1, 3, seed=3)
    chosen = net.nodes[:40]
    gateways = tuple(f"gw-{i}" for i in range(5))
    homes = Homes({node: gateways[i // 8] for i, node in enumerate(chosen)}, local=0.9)
    sent = []
    for known in (Homes(), homes):
        world = World(gateways, QUERIES["reachable"], way, seed=1, homes=known)
        for link in net.links:
            if {link.source, link.target} <= set(chosen):
                world.put((link.source, link.target, 1.0))
        world.check()
        for link in net.links[:60:15]:
            world.put((link.source, link.target, 1.0), delete=True)
            world.check()
        carried = world.network.traffic.bytes
        sent.append(sum(size for pair, size in carried.items() if "base" not in pair))
    assert sent[1] < 0.7 * sent[0]


@pytest.mark.parametrize("way", WAYS)
def test_a_message_lost_or_repeated_changes_no_answer(way: str) -> None:
    gateways = tuple(f"gw-{i}" for i in range(5))
    for seed in range(3):
        faults = Faults(loss=0.1, repetition=0.1)
        world = World(gateways, QUERIES["reachable"], way, seed=seed, faults=faults)
        nodes = [f"n{i}" for i in range(8)]
        for i, node in enumerate(nodes):
            world.put((node, nodes[(i + 1) % 8], 1.0))
            world.put((node, nodes[(i + 3) % 8], 2.0))
        world.check()
        assert world.network.traffic.requests > 0
        for i in (0, 3, 5):
            world.put((nodes[i], nodes[(i + 1) % 8], 1.0), delete=True)
        world.check()


_NODES = st.sampled_from([f"n{i}" for i in range(5)])
_LINKS = st.tuples(_NODES, _NODES, st.sampled_from([1.0, 2.0]))
_SITES = st.sampled_from(["gw-0", "gw-1", "gw-2"])
_ACTS = st.one_of(
    st.tuples(st.just("put"), _LINKS),
    st.tuples(st.just("put"), _LINKS),
    st.tuples(st.just("drop"), _LINKS),
    st.tuples(st.sampled_from(["kill", "restart", "disconnect"]), _SITES),
    st.tuples(st.just("settle"), st.integers(1, 30)),
)


@pytest.mark.parametrize("way", WAYS)
@given(acts=st.lists(_ACTS, max_size=30), seed=st.integers(0, 3))
def test_any_schedule_with_dying_and_doubted_sites(
    way: str, acts: list[tuple[str, object]], seed: int
) -> None:
    world = World(("gw-0", "gw-1", "gw-2"), QUERIES["reachable"], way, seed=seed)
    network = world.network
    for act, what in acts:
        match act, what:
            case "put" | "drop", (str(source), str(target), float(cost)):
                world.put((source, target, cost), delete=act == "drop")
            case "kill", str() if what in network.sites:
                world.kill(what)
            case "restart", str() if what not in network.sites:
                network.restart(what)
            case "disconnect", str() if what in network.sites:
                network.disconnect(what)
            case "settle", int():
                for _ in range(what):
                    network.act(faulty=False)
            case _:
                pass
    for gateway in world.gateways:
        if gateway not in network.sites:
            network.restart(gateway)
    world.check()
