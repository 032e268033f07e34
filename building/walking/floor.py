"""A space's floor and the places on it that walking paths must lead to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import LineString, Point, Polygon
from shapely.geometry.base import BaseGeometry

from building.walking.medial_axis import Coordinate, rounded

TOLERANCE: Final = 0.02
"""Metres a segment may leave the outline: rounding of coordinates."""


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
