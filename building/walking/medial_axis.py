"""Centre lines of a floor: where one walks with the same distance to the walls on both sides.

The chordal axis (Prasad 1997) approximates the medial axis: the floor, its outline sampled
densely, is cut into Delaunay triangles, and the middles of the inner sides are joined inside
each triangle. Triangles are convex, so every piece stays inside a floor of any shape, and the
axis of a connected floor is connected.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from math import hypot
from typing import Final

import networkx as nx
import shapely
from shapely import Point, Polygon

Coordinate = tuple[float, float]

MAX_SAMPLES: Final = 8000
"""Bound of the outline's sample points; the sampling gets coarser beyond."""

SAMPLING: Final = 1.0
"""Metres between sample points: about the width of the narrowest passage."""

CONTAINED: Final = 1.1
"""A circle of free floor counts as part of its neighbour up to this factor of its radius."""

SPUR: Final = 1.5
"""A branch no longer than this many clearances of its root points into a corner (a right angle
gives 1.41)."""


def centre_lines(floor: Polygon) -> "nx.Graph[Coordinate]":
    """Return the chordal axis of a floor as a connected graph of short straight pieces.

    Nodes are coordinates in metres, rounded to millimetres; each edge has its `length`. A floor
    that is a single triangle has one node and no edge.
    """
    sampled = shapely.segmentize(floor, max(SAMPLING, floor.length / MAX_SAMPLES))
    triangles = [
        [(x, y) for x, y in shapely.get_coordinates(triangle).tolist()]
        for triangle in shapely.get_parts(shapely.constrained_delaunay_triangles(sampled))
    ]
    sides = Counter(frozenset(side) for ring in triangles for side in pairwise(ring))
    graph: nx.Graph[Coordinate] = nx.Graph()
    for ring in triangles:
        inner = [side for side in pairwise(ring) if sides[frozenset(side)] == 2]
        middles = [_middle(*side) for side in inner]
        if len(middles) == 2:
            add_path(graph, middles)
        elif len(middles) == 3 or not graph:
            centre = _centroid(ring[:3])
            graph.add_node(centre)
            for middle in middles:
                add_path(graph, [centre, middle])
    graph = _without_spurs(graph, floor)
    _trim_ends(graph, floor)
    return graph


def _trim_ends(graph: "nx.Graph[Coordinate]", floor: Polygon) -> None:
    """Shorten the axis at its ends to where its circle of free floor stops growing.

    At the end of a corridor the axis runs on to the end wall, through circles that lie within
    the last full one.
    """
    boundary = floor.boundary
    leaves = [node for node in graph if graph.degree(node) == 1]
    while leaves and len(graph) > 2:
        leaf = leaves.pop()
        if graph.degree(leaf) != 1:
            continue
        inward = next(iter(graph.neighbors(leaf)))
        reach = graph.edges[leaf, inward]["length"] + boundary.distance(Point(leaf))
        if reach <= CONTAINED * boundary.distance(Point(inward)):
            graph.remove_node(leaf)
            leaves.append(inward)


def _without_spurs(graph: "nx.Graph[Coordinate]", floor: Polygon) -> "nx.Graph[Coordinate]":
    """Remove the branches that run from a centre line into a corner.

    Such a branch ends inside, or just outside, the largest circle round its root: it leads
    nowhere new, and who enters near the corner would walk to it first.
    """
    boundary = floor.boundary
    spurs: set[Coordinate] = set()
    for leaf in [node for node in graph if graph.degree(node) == 1]:
        branch, length = [leaf], 0.0
        following = list(graph.neighbors(leaf))
        while following and graph.degree(branch[-1]) < 3:
            length += graph.edges[branch[-1], following[0]]["length"]
            branch.append(following[0])
            following = [node for node in graph.neighbors(branch[-1]) if node != branch[-2]]
        root = branch[-1]
        if graph.degree(root) >= 3 and length <= SPUR * boundary.distance(Point(root)):
            spurs.update(branch[:-1])
    kept = graph.subgraph(node for node in graph if node not in spurs)
    # In a square all branches are spurs; its centre alone would be no line.
    return nx.Graph(kept) if kept.number_of_edges() else graph


def add_path(graph: "nx.Graph[Coordinate]", coordinates: Iterable[Coordinate]) -> None:
    """Add the straight pieces between consecutive coordinates, with their lengths."""
    for start, end in pairwise(rounded(coordinate) for coordinate in coordinates):
        if start != end:
            graph.add_edge(start, end, length=hypot(start[0] - end[0], start[1] - end[1]))


def rounded(coordinate: Coordinate) -> Coordinate:
    """Return the coordinate in whole millimetres, so that equal places compare equal."""
    x, y = coordinate
    return (round(x, 3) + 0.0, round(y, 3) + 0.0)


def _middle(a: Coordinate, b: Coordinate) -> Coordinate:
    return rounded(((a[0] + b[0]) / 2, (a[1] + b[1]) / 2))


def _centroid(corners: list[Coordinate]) -> Coordinate:
    return rounded((sum(x for x, _ in corners) / 3, sum(y for _, y in corners) / 3))
