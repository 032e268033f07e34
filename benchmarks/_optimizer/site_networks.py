"""Ways between sites: over the links of a recorded network, by the shortest path."""

import tarfile
from collections.abc import Mapping
from pathlib import Path

import networkx as nx

from benchmarks._optimizer.worlds import BASE, START, STATIC, Readings
from gateway.connectors.replay.readers import read_k7
from streamsql.data.events import SourceEvent
from streamsql.data.types import Value

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
ZOO = Path("topology-zoo") / "graphml.tar.gz"
TRACE = Path("link-traces") / "grenoble-sample.k7.gz"
LEAST_RATIO = 0.5


def zoo_network(archive: Path, name: str) -> "nx.Graph[str]":
    """Return a network of the Topology Zoo without parallel links.

    Raises:
        ValueError: The archive has none of the name.
    """
    with tarfile.open(archive) as packed:
        for member in packed:
            if Path(member.name).name == f"{name}.graphml":
                content = packed.extractfile(member)
                if content is not None:
                    read = nx.parse_graphml(content.read().decode())
                    ends = [(f"n{a}", f"n{b}") for a, b in read.edges() if a != b]
                    return nx.Graph(sorted(ends))
    raise ValueError(f"{archive} has no network {name}")


def sites_of(graph: "nx.Graph[str]", gateways: tuple[str, ...]) -> dict[str, str]:
    """Return the node of each site: base and tables in the middle, gateways all over the network.

    The base has the least sum of ways to all others, the static engine is next to it.
    """
    ways = dict(nx.all_pairs_dijkstra_path_length(graph))
    middle = min(graph, key=lambda node: (sum(ways[node].values()), node))
    beside = min((node for node in graph[middle]), key=lambda n: (sum(ways[n].values()), n))
    others = sorted(
        (n for n in graph if n not in (middle, beside)), key=lambda n: (ways[middle][n], n)
    )
    found = {BASE: middle, STATIC: beside}
    for number, gateway in enumerate(gateways):
        found[gateway] = others[number * len(others) // len(gateways)]
    return found


def distances_of(graph: "nx.Graph[str]", sites: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Return how long the way from each site to each other one is."""
    ways = dict(nx.all_pairs_dijkstra_path_length(graph))
    return {(a, b): round(ways[sites[a]][sites[b]], 3) for a in sites for b in sites if a != b}


def owners_of(graph: "nx.Graph[str]", sites: Mapping[str, str]) -> dict[str, str]:
    """Return the gateway of each node: the nearest one."""
    ways = dict(nx.all_pairs_dijkstra_path_length(graph))
    gateways = [site for site in sites if site not in (BASE, STATIC)]
    return {node: min(gateways, key=lambda g: (ways[node][sites[g]], g)) for node in sorted(graph)}


def trace_network(recording: Path) -> "nx.Graph[str]":
    """Return the largest part of a trace's network: links that delivered most both ways.

    The weight of a link is the number of transmissions until a packet is delivered.
    """
    heard: dict[tuple[str, str], list[float]] = {}
    for reading in read_k7(recording, None, 1e-9):
        values: dict[str, object] = reading.values
        ends = (f"m{values['src']}", f"m{values['dst']}")
        ratio = values.get("pdr")
        heard.setdefault(ends, []).append(ratio if isinstance(ratio, float) else 0.0)
    ratios = {ends: sum(all_) / len(all_) for ends, all_ in heard.items()}
    graph: nx.Graph[str] = nx.Graph()
    for (a, b), ratio in sorted(ratios.items()):
        back = ratios.get((b, a), 0.0)
        if min(ratio, back) >= LEAST_RATIO:
            graph.add_edge(a, b, weight=1 / min(ratio, back))
    return graph.subgraph(max(nx.connected_components(graph), key=len)).copy()


def trace_readings(recording: Path, owner: Mapping[str, str]) -> Readings:
    """Return the links of a trace as readings of the source `Link`, from `START` on.

    What a second reports of a link on several channels is one reading: the last.
    """
    newest: dict[tuple[int, str, str], SourceEvent] = {}
    first: int | None = None
    for reading in read_k7(recording, None, LEAST_RATIO):
        first = reading.ts if first is None else first
        time = START + reading.ts - first
        values = reading.values
        source, target = f"m{values['src']}", f"m{values['dst']}"
        row: tuple[Value, ...] = (
            source,
            target,
            _number(values, "cost"),
            _number(values, "pdr"),
            time,
        )
        if source in owner:
            newest[time, source, target] = SourceEvent(row, time, reading.gone)
    return [(time, owner[source], "Link", event) for (time, source, _), event in newest.items()]


def _number(values: Mapping[str, object], name: str) -> float | None:
    value = values.get(name)
    return value if isinstance(value, float) else None
