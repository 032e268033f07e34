"""Where RFID detectors hang: at corridor crossings and about every 50 feet between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import networkx as nx

from deploy.site.model import CIRCULATION, EdgeKind, Sensor, SensorKind, Space
from deploy.site.walking_graph import WalkingGraph

SPACING: Final = 15.0
"""Metres between detectors: 50 feet."""

DETECTOR_UNIT: Final = "dBm"


@dataclass(frozen=True, slots=True)
class Detector:
    """A detector and the routing point it hangs above."""

    sensor: Sensor
    point: str


def place_detectors(spaces: Sequence[Space], walking: WalkingGraph) -> list[Detector]:
    """Return detectors such that every corridor point is within half a spacing of one.

    Crossings come first; then, as long as some corridor point is farther than half a spacing
    from all detectors, the farthest one gets a detector (Gonzalez' k-centre rule).
    """
    kinds = {space.id: space.kind for space in spaces}
    graph = _corridor_graph(walking, {room for room, kind in kinds.items() if kind in CIRCULATION})
    places = {point.id: point for point in walking.points}
    chosen: list[str] = []
    for part in nx.connected_components(graph):
        chosen += _cover(graph.subgraph(part), sorted(part))
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
    """Return the points and edges inside corridors; a point all of whose edges are door edges
    is a door, and no detector hangs in a door.
    """
    inside = {point.id for point in walking.points if point.room in corridors}
    graph: nx.Graph[str] = nx.Graph()
    for edge in walking.edges:
        if edge.kind is EdgeKind.WALK and {edge.src, edge.dst} <= inside:
            graph.add_edge(edge.src, edge.dst, length=edge.distance)
    return graph


def _cover(graph: "nx.Graph[str]", points: list[str]) -> list[str]:
    crossings = [p for p in points if graph.degree(p) >= 3]
    chosen: list[str] = []
    for crossing in crossings:
        if _distance_to(graph, chosen).get(crossing, SPACING) > SPACING / 2:
            chosen.append(crossing)
    while True:
        reach = _distance_to(graph, chosen)
        farthest = max(points, key=lambda p: (reach.get(p, float("inf")), p))
        if reach.get(farthest, float("inf")) <= SPACING / 2:
            return chosen
        chosen.append(farthest)


def _distance_to(graph: "nx.Graph[str]", chosen: list[str]) -> dict[str, float]:
    if not chosen:
        return {}
    lengths: dict[str, float] = nx.multi_source_dijkstra_path_length(
        graph, set(chosen), weight="length"
    )
    return lengths
