"""Where RFID detectors hang: at corridor crossings and about every 50 feet between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from building.model.site_model import CIRCULATION, Door, EdgeKind, Sensor, SensorKind, Space
from building.walking.walking_graph import WalkingGraph

SPACING: Final = 15.0
"""Metres between detectors: 50 feet."""

DETECTOR_UNIT: Final = "dBm"


@dataclass(frozen=True, slots=True)
class Detector:
    """A detector and the routing point it hangs above."""

    sensor: Sensor
    point: str


def place_detectors(
    spaces: Sequence[Space], doors: Sequence[Door], walking: WalkingGraph
) -> list[Detector]:
    """Return detectors such that every corridor point is within half a spacing of one, straight.

    Crossings and places where corridors meet come first; from there detectors follow at about
    one spacing until all of each corridor is covered.
    """
    corridors = {space.id for space in spaces if space.kind in CIRCULATION}
    openings = {door.id for door in doors if set(door.spaces) <= corridors}
    graph = _corridor_graph(walking, corridors)
    places = {point.id: point for point in walking.points}
    chosen: list[str] = []
    for level in sorted({places[point].level for point in graph}):
        points = sorted(point for point in graph if places[point].level == level)
        meetings = [p for p in points if p in openings]
        crossings = [p for p in points if graph.degree(p) >= 3 and p not in openings]
        chosen += _cover({p: (places[p].x, places[p].y) for p in points}, meetings + crossings)
    numbers: dict[int, int] = {}
    detectors = []
    for point in sorted(chosen, key=lambda p: (places[p].level, places[p].x, places[p].y)):
        place = places[point]
        numbers[place.level] = numbers.get(place.level, 0) + 1
        name = f"rfid-{place.level}-{numbers[place.level]:02d}"
        sensor = Sensor(
            name, SensorKind.RFID, place.room, None, place.x, place.y, place.level, DETECTOR_UNIT
        )
        detectors.append(Detector(sensor, point))
    return detectors


def _corridor_graph(walking: WalkingGraph, corridors: set[str]) -> "nx.Graph[str]":
    """Return the walking edges inside corridors and their points.

    A point all of whose edges are door edges is a door, and no detector hangs in a door.
    """
    inside = {point.id for point in walking.points if point.room in corridors}
    graph: nx.Graph[str] = nx.Graph()
    for edge in walking.edges:
        if edge.kind is EdgeKind.WALK and {edge.src, edge.dst} <= inside:
            graph.add_edge(edge.src, edge.dst, length=edge.distance)
    return graph


def _cover(places: Mapping[str, tuple[float, float]], crossings: Sequence[str]) -> list[str]:
    """Choose points of one level so that none is farther than half a spacing from a chosen one."""
    names = list(places)
    coordinates = np.asarray([places[name] for name in names])
    reach = np.full(len(names), np.inf)
    chosen: list[str] = []

    def metres_from(index: int) -> NDArray[np.float64]:
        return np.asarray(np.hypot(*(coordinates - coordinates[index]).T))

    def choose(index: int) -> None:
        chosen.append(names[index])
        np.minimum(reach, metres_from(index), out=reach)

    for crossing in crossings:
        if reach[names.index(crossing)] > SPACING / 2:
            choose(names.index(crossing))
    while (reach > SPACING / 2).any():
        # Cover the nearest gap from as far away as possible: about one spacing further on.
        gap = int(np.argmin(np.where(reach > SPACING / 2, reach, np.inf)))
        near = metres_from(gap) <= SPACING / 2
        choose(int(np.argmax(np.where(near, reach, -1.0))))
    return chosen
