"""Walking paths inside one space: from its terminals (doors, desks, …) along its centre lines.

Every returned segment is straight and stays inside the space, so its Euclidean length is the
distance walked. Rooms in which everything is in sight of the middle get a star; corridors,
halls and rooms with corners get the medial axis, reduced to what joins terminals, plus
shortcuts where following it would be a detour.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import ceil, hypot
from typing import Final

import networkx as nx
import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import LineString, Point, Polygon
from shapely.geometry.base import BaseGeometry

from deploy.site.medial_axis import Coordinate, add_path, centre_lines, rounded

TOLERANCE: Final = 0.02
"""Metres a segment may leave the outline: rounding of coordinates."""

MERGE_RADIUS: Final = 0.8
"""Terminals whose nearest points of a centre line are closer than this share one."""

STRAIGHTENING: Final = 0.4
"""Metres a centre line may be moved to make it straight."""

LONGEST_PIECE: Final = 8.0
"""Longer pieces are divided, so that every place has a routing point near it."""

SHORTCUT_STRETCH: Final = 1.2
SHORTCUT_SAVING: Final = 4.0
"""A direct segment is added where the way along the axis is both this many times and this many
metres longer; small corridors keep their plain centre line."""

SHORTCUT_SIGHT: Final = 60.0
"""Metres; longer shortcuts are not looked for."""

ATTACHMENT_TRIALS: Final = 60


@dataclass(frozen=True)
class Terminal:
    """A place paths must lead to: a door, a desk, a stop of a lift or the middle of a room.

    Attributes:
        key: Its routing point's id.
        point: Where it is.
        is_desk: Desks need a path to every door but none to one another.
    """

    key: str
    point: Point
    is_desk: bool = False

    @property
    def coordinate(self) -> Coordinate:
        """Its coordinates, rounded to millimetres like all nodes of the graph."""
        return rounded((self.point.x, self.point.y))


@dataclass
class FloorPaths:
    """Paths of one space: a graph over coordinates, and the coordinate of each terminal.

    Attributes:
        graph: Undirected, each edge with its `length` in metres.
        terminals: Terminal key to its coordinate.
        unattached: Keys of terminals without any path.
    """

    graph: "nx.Graph[Coordinate]"
    terminals: dict[str, Coordinate]
    unattached: list[str] = field(default_factory=list)


class Floor:
    """A space's floor, asked which straight segments stay inside it."""

    def __init__(self, polygon: Polygon, terminals: Iterable[Terminal]) -> None:
        self.polygon = polygon
        region: BaseGeometry = polygon.buffer(TOLERANCE, join_style="mitre")
        for terminal in terminals:
            # A derived door may lie in the gap that stands for a wall's thickness.
            gap = polygon.distance(terminal.point)
            if gap > 0:
                region = region.union(terminal.point.buffer(gap + TOLERANCE))
        self.region = region
        shapely.prepare(self.region)

    def contains(self, start: Coordinate, end: Coordinate) -> bool:
        """Whether one can walk straight from start to end."""
        return bool(self.region.covers(LineString([start, end])))

    def contains_each(self, segments: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether one can walk each of the straight segments, an array (n, 2, 2)."""
        return np.asarray(shapely.covers(self.region, shapely.linestrings(segments)))


def star(floor: Floor, terminals: Sequence[Terminal]) -> FloorPaths | None:
    """Return straight paths between terminals in sight, or None when that does not join them.

    Desks are joined to everything but desks, so that the way to a desk by the door does not go
    over the middle of the room.
    """
    graph: nx.Graph[Coordinate] = nx.Graph()
    graph.add_nodes_from(terminal.coordinate for terminal in terminals)
    for a, b in combinations(terminals, 2):
        if a.is_desk and b.is_desk:
            continue
        if a.coordinate != b.coordinate and not floor.contains(a.coordinate, b.coordinate):
            return None
        add_path(graph, [a.coordinate, b.coordinate])
    return FloorPaths(graph, {terminal.key: terminal.coordinate for terminal in terminals})


def along_centre_lines(
    floor: Floor, terminals: Sequence[Terminal], *, longest_piece: float = LONGEST_PIECE
) -> FloorPaths:
    """Return the centre lines that join the terminals, straightened, with shortcuts.

    Pieces longer than `longest_piece` metres are divided.
    """
    paths = _attach_all(floor, terminals, centre_lines(floor.polygon))
    keep = set(paths.terminals.values())
    _prune(paths.graph, keep)
    graph = _straighten(floor, paths.graph, keep)
    _add_shortcuts(floor, graph)
    graph = _between_terminals(graph, keep)
    return FloorPaths(_divided(graph, longest_piece), paths.terminals, paths.unattached)


def _attach_all(
    floor: Floor, terminals: Sequence[Terminal], graph: "nx.Graph[Coordinate]"
) -> FloorPaths:
    paths = FloorPaths(graph, {})
    anchors: list[Coordinate] = []
    for terminal in terminals:
        if not _attach(floor, terminal.coordinate, graph, anchors):
            paths.unattached.append(terminal.key)
            graph.add_node(terminal.coordinate)
        paths.terminals[terminal.key] = terminal.coordinate
    return paths


def _attach(
    floor: Floor,
    terminal: Coordinate,
    graph: "nx.Graph[Coordinate]",
    anchors: list[Coordinate],
) -> bool:
    """Join a terminal to the nearest point of the graph in sight; tell whether there is one."""
    if terminal in graph:
        return True
    edges = [edge for edge in graph.edges if not graph.edges[edge].get("connector")]
    if not edges:
        return False
    lines = [LineString(edge) for edge in edges]
    place = Point(terminal)
    nearest = np.argsort(shapely.distance(lines, place), kind="stable")[:ATTACHMENT_TRIALS]
    for index in nearest.tolist():
        line = lines[index]
        foot = line.interpolate(line.project(place))
        target = _shared_anchor(foot, anchors) or rounded((foot.x, foot.y))
        if not floor.contains(terminal, target):
            continue
        if target not in graph:
            _split(graph, edges[index], target)
            anchors.append(target)
        if target != terminal:
            add_path(graph, [terminal, target])
            graph.edges[terminal, target]["connector"] = True
        return True
    return False


def _shared_anchor(foot: Point, anchors: Iterable[Coordinate]) -> Coordinate | None:
    near = [anchor for anchor in anchors if foot.distance(Point(anchor)) <= MERGE_RADIUS]
    return min(near, key=lambda anchor: foot.distance(Point(anchor)), default=None)


def _split(
    graph: "nx.Graph[Coordinate]", edge: tuple[Coordinate, Coordinate], middle: Coordinate
) -> None:
    graph.remove_edge(*edge)
    add_path(graph, [edge[0], middle, edge[1]])


def _prune(graph: "nx.Graph[Coordinate]", keep: set[Coordinate]) -> None:
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


def _straighten(
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


def _between_terminals(
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


def _divided(graph: "nx.Graph[Coordinate]", longest_piece: float) -> "nx.Graph[Coordinate]":
    """Return the graph with points along its long edges, so that no piece is longer."""
    divided: nx.Graph[Coordinate] = nx.Graph()
    divided.add_nodes_from(graph)
    for (x0, y0), (x1, y1) in graph.edges:
        parts = ceil(hypot(x1 - x0, y1 - y0) / longest_piece) or 1
        steps = [i / parts for i in range(parts + 1)]
        add_path(divided, [(x0 + (x1 - x0) * t, y0 + (y1 - y0) * t) for t in steps])
    return divided


def _add_shortcuts(floor: Floor, graph: "nx.Graph[Coordinate]") -> None:
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
