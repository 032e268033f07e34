"""The route of the network of shared computations."""

from typing import Any

import httpx

from federated_optimizer.coordinator.contract.network_model import (
    DifferenceKind,
    IndexDifference,
    IndexReport,
    Network,
    NetworkNode,
    NodeKind,
    NodeQuery,
)

LEAF = NetworkNode(
    name="17/f1",
    run="q17",
    fragment="f1",
    kind=NodeKind.SELECTION,
    computes="seatsensor WHERE weightlevel > 5",
    sites=("gw-1", "gw-2"),
    sources=("seatsensor",),
    readers=("17",),
    more_readers=9_900,
    resting=41,
    owner="busy",
    since=1_770_000_000_000_000,
    messages=2.5,
    bytes=310.25,
)
RESULT = NetworkNode(
    name="17",
    run="q17",
    fragment="f0",
    kind=NodeKind.JOIN,
    computes='SELECT mid FROM node 17/f1 JOIN "x" USING (rid)',
    sites=("base",),
    reads=("17/f1",),
    queries=(NodeQuery("q17", "busy"), NodeQuery("q18", "same")),
    direct=41,
    resting=41,
    owner="busy",
    since=1_770_000_000_000_000,
    rows=9,
)
KEPT = NetworkNode(
    name="16",
    run="q16",
    fragment="f0",
    kind=NodeKind.AGGREGATE,
    computes="SELECT rid, COUNT(*) AS n FROM roomsensor GROUP BY rid",
    sites=("base",),
    sources=("roomsensor",),
    kept=True,
    since=1_770_000_000_000_000,
)
NETWORK = Network((RESULT, LEAF, KEPT), queries=41, hidden=3)


def test_nodes_are_objects(client: httpx.Client, console: Any) -> None:
    assert client.get("/api/network").json() == {
        "nodes": [],
        "queries": 0,
        "hidden": 0,
        "unlisted": 0,
    }
    console.coordinator.nodes = NETWORK
    found = client.get("/api/network").json()
    assert (found["queries"], found["hidden"], found["unlisted"]) == (41, 3, 0)
    result, leaf, kept = found["nodes"]
    assert result["queries"] == [{"id": "q17", "name": "busy"}, {"id": "q18", "name": "same"}]
    assert (result["direct"], result["resting"], result["rows"]) == (41, 41, 9)
    assert (leaf["node"], leaf["kind"], leaf["sources"]) == ("17/f1", "selection", ["seatsensor"])
    assert (leaf["messages_per_second"], leaf["bytes_per_second"]) == (2.5, 310.25)
    assert (leaf["readers"], leaf["more_readers"]) == (["17"], 9_900)
    assert leaf["since"] == "2026-02-02T02:40:00Z"
    assert (kept["kept"], kept["owner"]) == (True, "")


def test_only_so_many_are_listed(client: httpx.Client, console: Any) -> None:
    console.coordinator.nodes = NETWORK
    found = client.get("/api/network", params={"most": 1}).json()
    assert ([node["node"] for node in found["nodes"]], found["unlisted"]) == (["17"], 2)
    for most in ("0", "1001", "many"):
        assert client.get("/api/network", params={"most": most}).status_code == 422


def test_the_network_is_a_graph(client: httpx.Client, console: Any) -> None:
    console.coordinator.nodes = NETWORK
    text = client.get("/api/network", params={"format": "dot"}).json()["text"]
    assert text.startswith("digraph")
    for line in (
        '"source seatsensor" -> "17/f1" [penwidth=7];',
        '"17/f1" -> "17" [penwidth=7];',
        '"17" -> "queries of 17" [penwidth=7];',
    ):
        assert line in text
    assert r"JOIN \"x\" USING (rid)" in text
    assert client.get("/api/network", params={"format": "svg"}).status_code == 422


def test_the_index_is_compared_and_rebuilt(client: httpx.Client, console: Any) -> None:
    difference = IndexDifference("q7", "inputs", DifferenceKind.SURPLUS, "q7/f1 | seatsensor")
    console.coordinator.index_report = IndexReport(3, (difference,), moving=1)
    found = client.get("/api/network/index").json()
    row = {"run": "q7", "relation": "inputs", "kind": "surplus", "row": "q7/f1 | seatsensor"}
    assert found == {"runs": 3, "differences": [row], "moving": 1, "rebuilt": False}
    assert client.post("/api/network/index", json={}).json() == found | {"rebuilt": True}
