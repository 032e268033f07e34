"""The generated networks have the shapes they promise."""

import networkx as nx
import pytest

from stream_engine.simulation.topologies import sensor_grid, transit_stub


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("domains", "links_per_node"), [(1, 4), (1, 2), (4, 4)])
def test_transit_stub(domains: int, links_per_node: int, seed: int) -> None:
    network = transit_stub(domains, links_per_node, seed=seed)
    assert len(network.nodes) == len(set(network.nodes)) == 100 * domains
    assert abs(len(network.links) - 100 * domains * links_per_node) <= 2 * domains
    graph = nx.DiGraph((link.source, link.target) for link in network.links)
    assert len(graph) == 100 * domains
    assert graph.number_of_edges() == len(network.links)
    assert nx.is_strongly_connected(graph)
    latencies = {(link.source, link.target): link.latency for link in network.links}
    assert set(latencies.values()) == {2, 10, 50}
    for (source, target), latency in latencies.items():
        assert latencies[(target, source)] == latency
        transit_ends = sum("s" not in node for node in (source, target))
        assert latency == {0: 2, 1: 10, 2: 50}[transit_ends]


def test_transit_stub_repeats_by_seed() -> None:
    assert transit_stub(seed=5) == transit_stub(seed=5)
    assert transit_stub(seed=5) != transit_stub(seed=6)


def test_hosts_get_equal_shares() -> None:
    network = transit_stub()
    hosts = [network.host_of(node, 10) for node in network.nodes]
    assert [hosts.count(host) for host in range(10)] == [10] * 10


def test_sensor_grid() -> None:
    grid = sensor_grid()
    assert len(grid.sensors) == 100
    by_name: dict[str, int] = {}
    for source, target in grid.neighbours:
        assert (target, source) in grid.neighbours
        by_name[source] = by_name.get(source, 0) + 1
    assert by_name["s5-5"] == 12  # the disk of two grid steps
    assert by_name["s0-0"] == 5


def test_jitter_moves_sensors_a_little() -> None:
    for plain, moved in zip(sensor_grid().sensors, sensor_grid(jitter=1.0).sensors, strict=True):
        assert plain.name == moved.name
        assert 0 < abs(plain.x - moved.x) + abs(plain.y - moved.y) <= 2
