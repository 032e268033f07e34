"""Where two spaces share a wall, and the passage a shared wall suggests."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import Point, Polygon

WALL_THICKNESS: Final = 0.6
"""Metres by which outlines of neighbouring rooms may be apart on a map."""

SHORTEST_SHARED_WALL: Final = 0.8
"""Metres; a shorter contact leaves no room for a door."""

SAMPLING: Final = 0.2
"""Metres between the places of an outline that are looked at."""

STRAIGHT: Final = 0.9
"""Cosine of the sharpest bend (about 25 degrees) that still counts as the same wall."""


@dataclass(frozen=True, slots=True)
class SharedWall:
    """The longest straight stretch two spaces share.

    Attributes:
        length: Metres.
        middle: Its middle, on the outline of the first space or in the gap between the two.
    """

    length: float
    middle: Point


def shared_wall(a: Polygon, b: Polygon) -> SharedWall | None:
    """Return the longest straight stretch of a's outline behind which b lies.

    A place of a's outline counts when b is met within a wall's thickness straight behind it, so
    rooms that touch at a corner only, or end at the same third wall, share nothing.
    """
    if a.distance(b) > WALL_THICKNESS:
        return None
    stretches = [
        stretch for ring in _rings(a) for stretch in _straight_runs(*_places_before(ring, b))
    ]
    longest = max(stretches, key=lambda wall: wall.length, default=None)
    if longest is None or longest.length < SHORTEST_SHARED_WALL:
        return None
    return longest


def _rings(polygon: Polygon) -> list[NDArray[np.float64]]:
    """Return the outlines with the floor to their left."""
    oriented = shapely.orient_polygons(polygon)
    return [shapely.get_coordinates(ring) for ring in (oriented.exterior, *oriented.interiors)]


def _places_before(
    ring: NDArray[np.float64], b: Polygon
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the small pieces (n, 2, 2) of a ring, and which of them have b behind them."""
    fine = shapely.get_coordinates(shapely.segmentize(shapely.linestrings(ring), SAMPLING))
    pieces = np.stack([fine[:-1], fine[1:]], axis=1)
    along = pieces[:, 1] - pieces[:, 0]
    lengths = np.hypot(along[:, 0], along[:, 1])
    pieces, along = pieces[lengths > 1e-9], along[lengths > 1e-9]
    along /= np.hypot(along[:, 0], along[:, 1])[:, None]
    outwards = np.stack([along[:, 1], -along[:, 0]], axis=1)
    middles = pieces.mean(axis=1)
    whiskers = np.stack([middles - 0.05 * outwards, middles + WALL_THICKNESS * outwards], axis=1)
    shapely.prepare(b)
    return pieces, np.asarray(shapely.intersects(b, shapely.linestrings(whiskers)))


def _straight_runs(pieces: NDArray[np.float64], shared: NDArray[np.bool_]) -> Iterator[SharedWall]:
    along = pieces[:, 1] - pieces[:, 0]
    lengths = np.hypot(along[:, 0], along[:, 1])
    directions = along / lengths[:, None]
    bends = np.einsum("ij,ij->i", directions, np.roll(directions, 1, axis=0)) < STRAIGHT
    starts = shared & (bends | ~np.roll(shared, 1))
    if not shared.any():
        return
    # A ring that is shared all round without a bend has no start: begin anywhere.
    first = int(np.argmax(starts)) if starts.any() else 0
    order = np.roll(np.arange(len(pieces)), -first)
    run: list[int] = []
    for index in order.tolist():
        if run and (starts[index] or not shared[index]):
            yield _wall(pieces[run], lengths[run])
            run = []
        if shared[index]:
            run.append(index)
    if run:
        yield _wall(pieces[run], lengths[run])


def _wall(pieces: NDArray[np.float64], lengths: NDArray[np.float64]) -> SharedWall:
    line = shapely.linestrings(np.concatenate([pieces[:, 0], pieces[-1:, 1]]))
    middle = shapely.get_coordinates(shapely.line_interpolate_point(line, 0.5, normalized=True))[0]
    return SharedWall(float(lengths.sum()), Point(round(middle[0], 3), round(middle[1], 3)))
