"""Doors as gaps in walls: short lines along the wall a door is in."""

import itertools
import math
from typing import Any

Feature = dict[str, Any]
Point = tuple[float, float]

NEAR_METRES = 0.3
MAX_WIDTH = 3.0


def openings(site: dict[str, Any], level: int) -> list[Feature]:
    """Return a level's doors as lines of their width; a door off every wall is left out."""
    walls = _walls(site, level)
    found = []
    for feature in site["features"]:
        properties = feature["properties"]
        if properties["feature_type"] != "door" or properties["level"] != level:
            continue
        x, y = feature["geometry"]["coordinates"]
        near = [w for rid in (properties["room"], properties["to"]) for w in walls.get(rid, ())]
        line = _gap((x, y), near, min(properties.get("width") or 1.0, MAX_WIDTH))
        if line is not None:
            kind = "entrance" if properties.get("entrance") else "door"
            found.append(
                {
                    "type": "Feature",
                    "id": properties["id"],
                    "geometry": {"type": "LineString", "coordinates": line},
                    "properties": {"feature_type": "opening", "kind": kind},
                }
            )
    return found


def _walls(site: dict[str, Any], level: int) -> dict[str, list[tuple[Point, Point]]]:
    walls: dict[str, list[tuple[Point, Point]]] = {}
    for feature in site["features"]:
        properties, geometry = feature["properties"], feature["geometry"]
        if properties["feature_type"] not in ("space", "outside") or properties["level"] != level:
            continue
        polygons = geometry["coordinates"]
        for rings in [polygons] if geometry["type"] == "Polygon" else polygons:
            for ring in rings:
                sides = itertools.pairwise(ring)
                walls.setdefault(properties["id"], []).extend(
                    ((a[0], a[1]), (b[0], b[1])) for a, b in sides
                )
    return walls


def _gap(place: Point, walls: list[tuple[Point, Point]], width: float) -> list[list[float]] | None:
    """Return the two ends of a gap of a width at a place in the nearest of some walls."""
    nearest = min(walls, key=lambda wall: _distance(place, *wall), default=None)
    if nearest is None or _distance(place, *nearest) > NEAR_METRES:
        return None
    (ax, ay), (bx, by) = nearest
    length = math.dist(*nearest)
    if length == 0:
        return None
    half = min(width, length) / 2
    ux, uy = (bx - ax) / length * half, (by - ay) / length * half
    x, y = place
    return [[round(x - ux, 3), round(y - uy, 3)], [round(x + ux, 3), round(y + uy, 3)]]


def _distance(place: Point, a: Point, b: Point) -> float:
    """Return the distance of a place from the segment a-b."""
    length = math.dist(a, b)
    if length == 0:
        return math.dist(place, a)
    along = ((place[0] - a[0]) * (b[0] - a[0]) + (place[1] - a[1]) * (b[1] - a[1])) / length**2
    along = min(max(along, 0.0), 1.0)
    return math.dist(place, (a[0] + along * (b[0] - a[0]), a[1] + along * (b[1] - a[1])))
