"""Reduce centre lines to few straight pieces: what joins terminals, and shortcuts."""

from itertools import pairwise
from math import ceil, hypot
from typing import Final

import networkx as nx
import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import LineString

from building.walking.floor import Floor
from building.walking.medial_axis import Coordinate, add_path

STRAIGHTENING: Final = 0.4
"""Metres a centre line may be moved to make it straight."""

SHORTCUT_STRETCH: Final = 1.2
SHORTCUT_SAVING: Final = 4.0
"""A direct segment is added where the way along the axis is both this many times and this many
metres longer; small corridors keep their plain centre line."""

SHORTCUT_SIGHT: Final = 60.0
"""Metres; longer shortcuts are not looked for."""


def prune(graph: "nx.Graph[Coordinate]", keep: set[Coordinate]) -> None:
    """Remove the dead ends that lead to no terminal, and components without one."""
    leaves = [node for node in graph if graph.degree(node) <= 1 and node not in keep]
    while leaves:
        leaf = leaves.pop()
        if leaf not in graph:
            continue
        neighbours = list(graph.neighbors(leaf))
        graph.remove_node(leaf)
        leaves += [n for n in neighbours if graph.degree(n) <= 1 and n not in keep]
    for component in list(nx.connected_components(graph)):
        if not component & keep:
            graph.remove_nodes_from(component)


def straighten(
    floor: Floor, graph: "nx.Graph[Coordinate]", keep: set[Coordinate]
) -> "nx.Graph[Coordinate]":
    """Replace each chain of short pieces by few straight ones."""
    corners = {node for node in graph if graph.degree(node) != 2} | keep
    result: nx.Graph[Coordinate] = nx.Graph()
    result.add_nodes_from(node for node in graph if node in corners)
    walked: set[frozenset[Coordinate]] = set()
    for corner in list(result):
        for neighbour in graph.neighbors(corner):
            if frozenset((corner, neighbour)) in walked:
                continue
            chain = _chain(graph, corner, neighbour, corners)
            walked.update(frozenset(piece) for piece in pairwise(chain))
            add_path(result, _simplified(floor, chain))
    return result


def _chain(
    graph: "nx.Graph[Coordinate]",
    start: Coordinate,
    following: Coordinate,
    corners: set[Coordinate],
) -> list[Coordinate]:
    chain = [start, following]
    while chain[-1] not in corners:
        chain.append(next(n for n in graph.neighbors(chain[-1]) if n != chain[-2]))
    return chain


def _simplified(floor: Floor, chain: list[Coordinate]) -> list[Coordinate]:
    is_loop = chain[0] == chain[-1]
    for tolerance in (STRAIGHTENING, STRAIGHTENING / 4):
        line = LineString(chain).simplify(tolerance)
        simple = [(x, y) for x, y in shapely.get_coordinates(line).tolist()]
        if is_loop and len(simple) < 4:
            continue
        if all(floor.contains(a, b) for a, b in pairwise(simple)):
            return simple
    return chain if is_loop else _pulled(floor, chain)


def _pulled(floor: Floor, chain: list[Coordinate]) -> list[Coordinate]:
    """Return the chain with each piece as long as one sees from its start."""
    result = [chain[0]]
    start = 0
    while start < len(chain) - 1:
        end = len(chain) - 1
        while end > start + 1 and not floor.contains(chain[start], chain[end]):
            end -= 1
        result.append(chain[end])
        start = end
    return result


def between_terminals(
    graph: "nx.Graph[Coordinate]", keep: set[Coordinate]
) -> "nx.Graph[Coordinate]":
    """Return what shortest paths between terminals use; a lone terminal keeps everything."""
    if len(keep) < 2:
        return graph
    used: nx.Graph[Coordinate] = nx.Graph()
    used.add_nodes_from(node for node in graph if node in keep)
    for terminal in list(used):
        came_from = nx.single_source_dijkstra_path(graph, terminal, weight="length")
        for other in used.nodes & came_from.keys() & keep:
            nx.add_path(used, came_from[other])
    for start, end in used.edges:
        used.edges[start, end]["length"] = graph.edges[start, end]["length"]
    return used


def divided(graph: "nx.Graph[Coordinate]", longest_piece: float) -> "nx.Graph[Coordinate]":
    """Return the graph with points along its long edges, so that no piece is longer."""
    result: nx.Graph[Coordinate] = nx.Graph()
    result.add_nodes_from(graph)
    for (x0, y0), (x1, y1) in graph.edges:
        parts = ceil(hypot(x1 - x0, y1 - y0) / longest_piece) or 1
        steps = [i / parts for i in range(parts + 1)]
        add_path(result, [(x0 + (x1 - x0) * t, y0 + (y1 - y0) * t) for t in steps])
    return result


def add_shortcuts(floor: Floor, graph: "nx.Graph[Coordinate]") -> None:
    """Join points in sight of each other whose way along the graph is a detour.

    Greedy, shortest first, as in a greedy geometric spanner; all distances are kept in one
    matrix and repaired after each addition.
    """
    nodes = list(graph)
    places = np.asarray(nodes, dtype=float).reshape(-1, 2)
    walked = np.asarray(nx.floyd_warshall_numpy(graph, nodes, weight="length"))
    straight = np.hypot(*(places[:, None, :] - places[None, :, :]).transpose(2, 0, 1))
    for i, j in _detours(floor, places, straight, walked):
        length = straight[i, j]
        if not _is_detour(length, walked[i, j]):
            continue
        graph.add_edge(nodes[i], nodes[j], length=float(length))
        via = walked[:, i, None] + length + walked[None, j, :]
        walked = np.minimum(walked, np.minimum(via, via.T))


def _detours(
    floor: Floor,
    places: NDArray[np.float64],
    straight: NDArray[np.float64],
    walked: NDArray[np.float64],
) -> list[tuple[int, int]]:
    wanted = np.triu((straight <= SHORTCUT_SIGHT) & _is_detour(straight, walked), k=1)
    pairs = np.argwhere(wanted)
    if not len(pairs):
        return []
    visible = pairs[floor.contains_each(places[pairs])]
    order = np.argsort(straight[visible[:, 0], visible[:, 1]], kind="stable")
    return [(int(i), int(j)) for i, j in visible[order].tolist()]


def _is_detour(straight: NDArray[np.float64], walked: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(walked > np.maximum(SHORTCUT_STRETCH * straight, straight + SHORTCUT_SAVING))
