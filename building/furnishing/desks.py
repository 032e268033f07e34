"""Where desks stand in a room."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

import shapely
from shapely import Point, Polygon
from shapely.geometry.base import BaseGeometry

WALL_DISTANCE: Final = 0.9
DOOR_DISTANCE: Final = 1.5
MIDDLE_DISTANCE: Final = 0.8
CLOSEST: Final = 1.2
"""Metres kept free: from walls, from doors, from the middle of the room, between desks."""


def desk_places(room: Polygon, count: int, doors: Sequence[Point], middle: Point) -> list[Point]:
    """Return up to `count` desk positions in rows, fewer where the room is too small.

    Of all regular grids with enough free places the one with the fewest places too many is
    taken, then the widest. Positions are rounded to centimetres.
    """
    inner = room.buffer(-WALL_DISTANCE, join_style="mitre")
    if inner.is_empty or count < 1:
        return []
    best: list[Point] = []
    best_rank = (0, 0, 0.0)
    for rows, columns, gap in _grids(inner, count):
        free = [p for p in _grid(inner, rows, columns) if _is_free(p, inner, doors, middle)]
        rank = (min(len(free), count), -rows * columns, gap)
        if free and (not best or rank > best_rank):
            best, best_rank = free, rank
    return best[:count]


def _grids(inner: BaseGeometry, count: int) -> Iterator[tuple[int, int, float]]:
    """Yield rows, columns and the smallest gap of the grids that may hold `count` desks."""
    x0, y0, x1, y1 = inner.bounds
    for rows in range(1, count + 2):
        for columns in range(ceil(count / rows), 3 * ceil(count / rows) + 2):
            gap = min(_gap(x1 - x0, columns), _gap(y1 - y0, rows))
            if gap >= CLOSEST:
                yield rows, columns, gap


def _gap(length: float, places: int) -> float:
    return length / (places - 1) if places > 1 else max(length, CLOSEST)


def _grid(inner: BaseGeometry, rows: int, columns: int) -> list[Point]:
    x0, y0, x1, y1 = inner.bounds
    return [
        Point(round(x, 2), round(y, 2))
        for y in _spread(y0, y1, rows)
        for x in _spread(x0, x1, columns)
    ]


def _spread(low: float, high: float, places: int) -> list[float]:
    if places == 1:
        return [(low + high) / 2]
    return [low + (high - low) * i / (places - 1) for i in range(places)]


def _is_free(place: Point, inner: BaseGeometry, doors: Sequence[Point], middle: Point) -> bool:
    return (
        bool(shapely.dwithin(inner, place, 0.01))
        and place.distance(middle) >= MIDDLE_DISTANCE
        and all(place.distance(door) >= DOOR_DISTANCE for door in doors)
    )
