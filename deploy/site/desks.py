"""Where desks stand in a room."""

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Final

import shapely
from shapely import Point, Polygon

WALL_DISTANCE: Final = 0.9
DOOR_DISTANCE: Final = 1.5
MIDDLE_DISTANCE: Final = 0.8
CLOSEST: Final = 1.2
"""Metres kept free: from walls, from doors, from the middle of the room, between desks."""


def desk_places(room: Polygon, count: int, doors: Sequence[Point], middle: Point) -> list[Point]:
    """Return up to `count` desk positions in rows, fewer where the room is too small.

    Rows run along the room's longer side. Positions are rounded to centimetres.
    """
    inner = room.buffer(-WALL_DISTANCE, join_style="mitre")
    if inner.is_empty or count < 1:
        return []
    x0, y0, x1, y1 = inner.bounds
    width, depth = x1 - x0, y1 - y0
    best: list[Point] = []
    for wanted in range(count, 3 * count + 12):
        rows = max(1, round(sqrt(wanted * depth / max(width, 0.1))))
        columns = ceil(wanted / rows)
        if min(_step(width, columns), _step(depth, rows)) < CLOSEST:
            break
        grid = [
            Point(round(x, 2), round(y, 2))
            for y in _spread(y0, y1, rows)
            for x in _spread(x0, x1, columns)
        ]
        free = [p for p in grid if _is_free(p, inner, doors, middle)]
        if len(free) > len(best):
            best = free
        if len(best) >= count:
            break
    return best[:count]


def _step(length: float, places: int) -> float:
    return length / (places - 1) if places > 1 else CLOSEST


def _spread(low: float, high: float, places: int) -> list[float]:
    if places == 1:
        return [(low + high) / 2]
    return [low + (high - low) * i / (places - 1) for i in range(places)]


def _is_free(place: Point, inner: Polygon, doors: Sequence[Point], middle: Point) -> bool:
    return (
        bool(shapely.dwithin(inner, place, 0.01))
        and place.distance(middle) >= MIDDLE_DISTANCE
        and all(place.distance(door) >= DOOR_DISTANCE for door in doors)
    )
