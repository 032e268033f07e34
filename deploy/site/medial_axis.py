"""Centre lines of a floor: the part of its Voronoi diagram that lies inside.

The medial axis keeps as far from walls as possible, which is where people walk in corridors
and around what stands in halls. It is approximated by the Voronoi edges of points sampled
along the outline (Attali, Boissonnat, Edelsbrunner 2009), so a floor of any shape will do.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import networkx as nx
import shapely
from shapely import LineString, MultiPoint, Polygon

Coordinate = tuple[float, float]

MAX_SAMPLES: Final = 6000
"""Bound of the outline's sample points; the sampling gets coarser beyond."""

FINEST_SPACING: Final = 0.25
COARSEST_SPACING: Final = 1.0


def centre_lines(floor: Polygon) -> "nx.Graph[Coordinate]":
    """Return the medial axis of a floor as a graph of short straight pieces.

    Nodes are coordinates in metres, rounded to millimetres; each edge has its `length`. The
    graph may have several components where the floor is narrower than the sampling.
    """
    perimeter = floor.length
    mean_width = 2 * floor.area / perimeter
    spacing = min(max(mean_width / 4, FINEST_SPACING), COARSEST_SPACING)
    spacing = max(spacing, perimeter / MAX_SAMPLES)
    outline = shapely.get_coordinates(shapely.segmentize(floor.boundary, spacing))
    diagram = shapely.voronoi_polygons(MultiPoint(outline), only_edges=True)
    pieces = shapely.get_parts(shapely.get_parts(shapely.node(diagram)))
    shapely.prepare(floor)
    inside = pieces[shapely.contains_properly(floor, pieces)]
    graph: nx.Graph[Coordinate] = nx.Graph()
    for piece in inside:
        add_path(graph, shapely.get_coordinates(piece).tolist())
    return graph


def triangle_paths(floor: Polygon) -> "nx.Graph[Coordinate]":
    """Return paths that cross the floor's triangulation through the middles of its diagonals.

    Coarser than the medial axis but always connected, however narrow the floor. Each edge has
    its `length`.
    """
    triangles = shapely.get_parts(shapely.constrained_delaunay_triangles(floor))
    sides: dict[tuple[Coordinate, Coordinate], int] = {}
    corners = [[_rounded(c) for c in shapely.get_coordinates(t)] for t in triangles]
    for ring in corners:
        for side in pairwise(ring):
            sides[_ordered(*side)] = sides.get(_ordered(*side), 0) + 1
    graph: nx.Graph[Coordinate] = nx.Graph()
    for ring in corners:
        middles = [_middle(*side) for side in pairwise(ring) if sides[_ordered(*side)] == 2]
        centre = _rounded((sum(c[0] for c in ring[:3]) / 3, sum(c[1] for c in ring[:3]) / 3))
        for middle in middles:
            add_path(graph, [centre, middle])
        if not middles:
            graph.add_node(centre)
    return graph


def add_path(graph: "nx.Graph[Coordinate]", coordinates: Iterable[Iterable[float]]) -> None:
    """Add the straight pieces between consecutive coordinates, with their lengths."""
    path = [_rounded(coordinate) for coordinate in coordinates]
    for start, end in pairwise(path):
        if start != end:
            graph.add_edge(start, end, length=LineString([start, end]).length)


def _rounded(coordinate: Iterable[float]) -> Coordinate:
    x, y = coordinate
    return (round(x, 3) + 0.0, round(y, 3) + 0.0)


def _ordered(a: Coordinate, b: Coordinate) -> tuple[Coordinate, Coordinate]:
    return (a, b) if a <= b else (b, a)


def _middle(a: Coordinate, b: Coordinate) -> Coordinate:
    return _rounded(((a[0] + b[0]) / 2, (a[1] + b[1]) / 2))
