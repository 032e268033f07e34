"""What must hold for the edges of every building."""

from collections.abc import Mapping
from math import hypot

from shapely import LineString
from shapely.geometry.base import BaseGeometry

from building.model.site_model import EdgeKind, Site


def check_edges(site: Site, floors: Mapping[int, BaseGeometry]) -> None:
    """Edges are as long as they look, and those of one level stay on it and inside its floor."""
    places = {point.id: point for point in site.points}
    for edge in site.edges:
        a, b = places[edge.src], places[edge.dst]
        straight = hypot(a.x - b.x, a.y - b.y)
        assert edge.distance >= straight - 1e-9
        if edge.kind in {EdgeKind.WALK, EdgeKind.DOOR}:
            assert a.level == b.level
            assert edge.distance <= straight + 0.002
            assert floors[a.level].covers(LineString([(a.x, a.y), (b.x, b.y)])), edge
