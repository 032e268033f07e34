"""The ground around a building, for maps whose parts are joined only by walking outside."""

from collections.abc import Iterable, Sequence
from typing import Final

import networkx as nx
import shapely

from building.model.site_model import OUTSIDE, Connector, Door, Space, SpaceKind
from building.osm.osm_features import IndoorMap

GROUND: Final = 0

SURROUNDINGS: Final = 6.0
"""Metres one may walk away from the building."""

GAP: Final = 0.3
"""Half the width of the gaps between rooms that are walls, not alleys."""


def surroundings(found: IndoorMap, spaces: Sequence[Space]) -> Space | None:
    """Return the ground level's outside, without buildings and courtyards, or None.

    It reaches a few metres beyond the hull of the rooms on the ground level.
    """
    floors = [space.polygon for space in spaces if space.level == GROUND]
    if not floors:
        return None
    hull = shapely.union_all(floors).convex_hull.buffer(SURROUNDINGS, join_style="mitre")
    solid = shapely.union_all(floors).buffer(GAP, join_style="mitre")
    solid = solid.buffer(-GAP, join_style="mitre")
    # Buildings with mapped rooms are as solid as their rooms: passages through them are open.
    empty = [b for b in found.buildings if not any(b.intersects(floor) for floor in floors)]
    free = shapely.difference(hull, shapely.union_all([solid, *floors, *empty]))
    largest = max(shapely.get_parts(free), key=lambda part: part.area, default=None)
    if largest is None or largest.is_empty:
        return None
    return Space(OUTSIDE, "Outside", SpaceKind.OUTSIDE, GROUND, largest)


def parts_on_ground(
    spaces: Sequence[Space], doors: Iterable[Door], connectors: Iterable[Connector]
) -> list[set[str]]:
    """Return the sets of spaces connected indoors that have a space on the ground level."""
    graph = space_graph(spaces, doors, connectors)
    ground = {space.id for space in spaces if space.level == GROUND}
    return [part for part in nx.connected_components(graph) if part & ground]


def space_graph(
    spaces: Iterable[Space], doors: Iterable[Door], connectors: Iterable[Connector]
) -> "nx.Graph[str]":
    """Return which spaces one can walk between, as a graph over their ids."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(space.id for space in spaces)
    for door in doors:
        if door.spaces[1] is not None:
            graph.add_edge(door.spaces[0], door.spaces[1])
    for connector in connectors:
        nx.add_path(graph, [stop.room for stop in connector.stops])
    return graph
