"""Walking paths inside one space: from its terminals (doors, desks, …) along its centre lines.

Every returned segment is straight and stays inside the space, so its Euclidean length is the
distance walked. Rooms in which everything is in sight of the middle get a star; corridors,
halls and rooms with corners get the medial axis, reduced to what joins terminals, plus
shortcuts where following it would be a detour.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import dist
from typing import Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from building.walking.floor import Floor, Terminal
from building.walking.medial_axis import Coordinate, add_path, centre_lines, rounded
from building.walking.path_reduction import (
    add_shortcuts,
    between_terminals,
    divided,
    prune,
    straighten,
)

MERGE_RADIUS: Final = 0.8
"""Terminals whose nearest points of a centre line are closer than this share one."""

NEAREST_FIRST: Final = 40
"""Pieces of the axis looked at before all the others: one of them is nearly always in sight."""

LONGEST_PIECE: Final = 8.0
"""Longer pieces are divided, so that every place has a routing point near it."""


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
    prune(paths.graph, keep)
    graph = straighten(floor, paths.graph, keep)
    add_shortcuts(floor, graph)
    graph = between_terminals(graph, keep)
    return FloorPaths(divided(graph, longest_piece), paths.terminals, paths.unattached)


def _attach_all(
    floor: Floor, terminals: Sequence[Terminal], graph: "nx.Graph[Coordinate]"
) -> FloorPaths:
    """Join each terminal to the nearest point of the axis in sight, where it has no other yet."""
    paths = FloorPaths(graph, {})
    axis = _Axis(floor, graph)
    for terminal in terminals:
        paths.terminals[terminal.key] = terminal.coordinate
        if not axis.attach(terminal.coordinate):
            paths.unattached.append(terminal.key)
            graph.add_node(terminal.coordinate)
    return paths


class _Axis:
    """The centre lines of a floor while terminals are attached to them."""

    def __init__(self, floor: Floor, graph: "nx.Graph[Coordinate]") -> None:
        self._floor = floor
        self._graph = graph
        # An axis that is one point is an edge from there to there.
        self._edges = list(graph.edges) or [(node, node) for node in graph]
        self._anchors: list[Coordinate] = []

    def attach(self, terminal: Coordinate) -> bool:
        """Join a terminal to the axis; tell whether any of it is in sight."""
        if terminal in self._graph:
            return True
        feet = self._feet(terminal)
        order = np.argsort(np.hypot(*(feet - terminal).T), kind="stable")
        for batch in (order[:NEAREST_FIRST], order[NEAREST_FIRST:]):
            segments = np.stack([np.broadcast_to(terminal, feet[batch].shape), feet[batch]], axis=1)
            visible = batch[self._floor.contains_each(segments)] if len(batch) else batch
            if len(visible):
                index = int(visible[0])
                foot = rounded((float(feet[index, 0]), float(feet[index, 1])))
                add_path(self._graph, [terminal, self._anchor(terminal, foot, index)])
                return True
        return False

    def _feet(self, terminal: Coordinate) -> NDArray[np.float64]:
        """Return the point of each edge that is nearest to the terminal, an array (n, 2)."""
        ends = np.asarray(self._edges, dtype=float)
        along = ends[:, 1] - ends[:, 0]
        squared = np.maximum((along**2).sum(axis=1), 1e-12)
        share = ((terminal - ends[:, 0]) * along).sum(axis=1) / squared
        return np.asarray(ends[:, 0] + np.clip(share, 0, 1)[:, None] * along)

    def _anchor(self, terminal: Coordinate, foot: Coordinate, index: int) -> Coordinate:
        """Return where to join: an anchor near the foot if in sight, else the foot."""
        for anchor in sorted(self._anchors, key=lambda a: dist(a, foot)):
            if dist(anchor, foot) > MERGE_RADIUS:
                break
            if self._floor.contains(terminal, anchor):
                return anchor
        self._anchors.append(foot)
        if foot not in self._graph:
            start, end = self._edges[index]
            self._graph.remove_edge(start, end)
            add_path(self._graph, [start, foot, end])
            self._edges[index] = (start, foot)
            self._edges.append((foot, end))
        return foot
