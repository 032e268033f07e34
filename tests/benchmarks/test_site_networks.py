"""Ways between sites over recorded networks."""

import gzip
import io
import tarfile
from pathlib import Path

import networkx as nx
import pytest

from benchmarks._optimizer.site_networks import (
    distances_of,
    owners_of,
    sites_of,
    trace_network,
    trace_readings,
    zoo_network,
)
from benchmarks._optimizer.worlds import START

PATH = nx.Graph([(f"n{k}", f"n{k + 1}") for k in range(6)])
TRACE = "\n".join(
    [
        '{"location": "grenoble", "node_count": 3}',
        "datetime,src,dst,channel,mean_rssi,pdr,tx_count",
        "2018-01-11 16:33:00,0,1,11,-50,1.0,",
        "2018-01-11 16:33:00,0,1,12,-50,0.2,",
        "2018-01-11 16:33:00,1,0,11,-50,0.8,",
        "2018-01-11 16:33:05,1,2,11,-50,0.9,",
        "2018-01-11 16:33:10,0,1,11,-50,0.9,",
        "2018-01-11 16:33:10,2,1,11,-50,0.3,",
    ]
)


def test_the_base_is_in_the_middle_of_a_path() -> None:
    sites = sites_of(PATH, ("gw-1", "gw-2"))
    assert sites["base"] == "n3"
    assert sites["static"] in ("n2", "n4")
    assert len(set(sites.values())) == 4
    distances = distances_of(PATH, sites)
    for (a, b), way in distances.items():
        assert way == abs(int(sites[a][1:]) - int(sites[b][1:]))


def test_a_node_belongs_to_the_nearest_gateway() -> None:
    sites = {"base": "n3", "static": "n2", "gw-1": "n0", "gw-2": "n6"}
    owner = owners_of(PATH, sites)
    assert owner == {
        **dict.fromkeys(("n0", "n1", "n2", "n3"), "gw-1"),
        **dict.fromkeys(("n4", "n5", "n6"), "gw-2"),
    }


def test_a_network_of_the_zoo_is_read_by_name(tmp_path: Path) -> None:
    archive = tmp_path / "zoo.tar.gz"
    text = "".join(nx.generate_graphml(nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2)])))
    with tarfile.open(archive, "w:gz") as packed:
        member = tarfile.TarInfo("graphml/Small.graphml")
        member.size = len(text)
        packed.addfile(member, io.BytesIO(text.encode()))
    assert set(zoo_network(archive, "Small").edges()) == {("n0", "n1"), ("n1", "n2")}
    with pytest.raises(ValueError, match="has no network Large"):
        zoo_network(archive, "Large")


def test_a_trace_gives_links_by_transmissions_and_readings(tmp_path: Path) -> None:
    recording = tmp_path / "t.k7.gz"
    with gzip.open(recording, "wt") as written:
        written.write(TRACE)
    graph = trace_network(recording)
    # Of 1.0, 0.2 and 0.9 in one direction, and 0.8 in the other, the worse mean is 0.7.
    assert list(graph.edges(data="weight")) == [("m0", "m1", pytest.approx(1 / 0.7))]
    readings = trace_readings(recording, {"m0": "gw-1", "m1": "gw-2"})
    assert [
        (time - START, gateway, event.row[:2], event.delete) for time, gateway, _, event in readings
    ] == [
        (0, "gw-1", ("m0", "m1"), True),  # the last of the second counts
        (0, "gw-2", ("m1", "m0"), False),
        (5_000_000, "gw-2", ("m1", "m2"), False),
        (10_000_000, "gw-1", ("m0", "m1"), False),
    ]
