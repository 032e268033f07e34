"""One-call runs, and the paths of a transit-stub network computed by several sites."""

import networkx as nx
import pytest

from stream_engine.simulation.fragmentations import counted_at_base, everywhere
from stream_engine.simulation.run import run_partitioned
from stream_engine.simulation.topologies import transit_stub
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Fixpoint,
    Join,
    JoinKind,
    Project,
    RecursiveReference,
    Scan,
    SourceKind,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import RecursionLimitError

PAIR = Schema.of(("src", DataType.TEXT), ("dst", DataType.TEXT))
LINK = Scan("link", SourceKind.LINK, PAIR, key=(0, 1))
READING = Scan(
    "reading", SourceKind.STREAM, Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER)), ttl=10
)


def reachable(limit: int = 1_000_000) -> Fixpoint:
    step = Join(LINK, RecursiveReference("reachable", PAIR), JoinKind.INNER, ((1, 0),))
    ends = (Column(0, "src", DataType.TEXT), Column(3, "dst", DataType.TEXT))
    return Fixpoint("reachable", PAIR, (LINK,), (Project(step, ends, ("src", "dst")),), limit)


def test_sources_expire_in_a_run() -> None:
    bundle = counted_at_base(READING, ("gw-1", "gw-2"))
    moments = [
        (0, [("gw-1", "reading", SourceEvent(("a", 1), 0))]),
        (5, [("gw-2", "reading", SourceEvent(("a", 2), 5))]),
    ]
    sources = {"gw-1": [READING], "gw-2": [READING]}
    assert run_partitioned(bundle, sources, moments).result == {("a", 2, 3, 2): 1}
    later = run_partitioned(bundle, sources, [*moments, (12, [])])
    assert later.result == {("a", 1, 2, 2): 1}
    assert later.traffic.total_bytes > 0
    assert later.state_rows["base"] > 0
    assert later.actions > 0


def test_a_failed_query_raises() -> None:
    bundle = everywhere(reachable(limit=1), ("base",))
    events = [("base", "link", SourceEvent(pair, 0)) for pair in (("a", "b"), ("b", "c"))]
    with pytest.raises(RecursionLimitError):
        run_partitioned(bundle, {"base": [LINK]}, [(0, events)])


def test_three_sites_agree_with_networkx_on_a_part_of_a_network() -> None:
    """Links leave from the host of their source; a tenth of them is withdrawn again."""
    network = transit_stub(links_per_node=2, seed=3)
    links = [link for link in network.links if link.latency == 2][:120]
    hosts = ("gw-1", "gw-2", "base")
    events = [
        (hosts[network.host_of(link.source, 3)], "link", SourceEvent((link.source, link.target), 0))
        for link in links
    ]
    removed = [
        (host, source, SourceEvent(event.row, 1, delete=True))
        for host, source, event in events[::10]
    ]
    run = run_partitioned(
        everywhere(reachable(), hosts),
        {host: [LINK] for host in hosts},
        [(0, events), (1, removed)],
    )
    left = [event.row for number, (_, _, event) in enumerate(events) if number % 10]
    graph: nx.DiGraph[str] = nx.DiGraph([(str(source), str(target)) for source, target in left])
    closure = nx.transitive_closure(graph, reflexive=False)
    assert run.result == dict.fromkeys(closure.edges(), 1)
