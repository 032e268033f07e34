"""The network of shared computations as a graph in DOT: sources below, queries above."""

from collections.abc import Iterator

from federated_optimizer.coordinator.contract.network_model import Network, NetworkNode, NodeKind
from streamsql.algebra.plan_graph import graph, quoted

_LONGEST = 60
_COLOURS = {
    NodeKind.SELECTION: "#8fb8de",
    NodeKind.JOIN: "#f0b27a",
    NodeKind.AGGREGATE: "#9fd3a5",
    NodeKind.DISTINCT: "#d7bde2",
    NodeKind.SET_OPERATION: "#f5a3a3",
    NodeKind.RECURSION: "#f7dc6f",
    NodeKind.WINDOW: "#a2d9d9",
    NodeKind.ROWS: "#d5d8dc",
}


def network_dot(network: Network) -> str:
    """Return the network as text; the wider a line, the more queries rest on what it leads to."""
    return graph(_statements(network))


def _statements(network: Network) -> Iterator[str]:
    yield "rankdir=LR;"
    sources = {source for node in network.nodes for source in node.sources}
    for source in sorted(sources):
        yield f"{quoted(f'source {source}')} [label={quoted(source)}, shape=cylinder];"
    for node in network.nodes:
        colour = quoted(_COLOURS[node.kind])
        yield (
            f"{quoted(node.name)} [label={quoted(_label(node))}, shape=box, "
            f"style={quoted('rounded,filled')}, fillcolor={colour}];"
        )
    for node in network.nodes:
        for source in node.sources:
            yield _edge(f"source {source}", node.name, node.resting)
        for read in node.reads:
            yield _edge(read, node.name, node.resting)
        if node.direct:
            said = f"{node.direct} {'query' if node.direct == 1 else 'queries'}"
            name = f"queries of {node.name}"
            yield f"{quoted(name)} [label={quoted(said)}, shape=plaintext];"
            yield _edge(node.name, name, node.direct)


def _label(node: NetworkNode) -> str:
    words = node.computes
    shown = words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
    return f"{node.name} {node.kind}\n{shown}"


def _edge(below: str, above: str, queries: int) -> str:
    width = min(1 + queries.bit_length(), 8)
    return f"{quoted(below)} -> {quoted(above)} [penwidth={width}];"
