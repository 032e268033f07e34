"""Import a building from OSM Simple Indoor Tagging in GeoJSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import networkx as nx
from shapely import Polygon

from building.furnishing.furnishing import Furniture, furnish
from building.model.site_model import (
    CIRCULATION,
    VERTICAL,
    Connector,
    Door,
    Level,
    Site,
    SiteError,
    Space,
    SpaceKind,
)
from building.osm.geojson_file import Feature, read_features
from building.osm.osm_connectors import connectors_of
from building.osm.osm_doors import derived_doors, mapped_doors
from building.osm.osm_features import IndoorMap, all_levels, indoor_map
from building.osm.osm_outside import parts_on_ground, space_graph, surroundings
from building.osm.osm_spaces import spaces_by_level

MAX_MACHINES: Final = 60
MACHINES_A_ROOM: Final = 6
FLOOR_A_MACHINE: Final = 20.0
"""Simulated machines: their number, and the square metres of floor each needs."""

NOT_FURNISHED: Final = frozenset({SpaceKind.TOILETS, SpaceKind.SERVICE, SpaceKind.OUTSIDE})
USES: Final = ("drop-in", "teaching", "research", "science", "design", "office")
LEVEL_NAMES: Final = {-1: "Basement", 0: "Ground level"}


def read_osm_indoor(path: Path) -> Site:
    """Return the building of a map, furnished with simulated machines and sensors.

    What is incomplete on the map is left out and named in the site's warnings; what is broken
    is an error.

    Raises:
        SiteError: The file cannot be used; the message names the feature and its property.
    """
    features = read_features(path)
    found = indoor_map(features, source=path.name)
    by_level = spaces_by_level(found)
    spaces = by_level.spaces
    if not any(space.kind not in CIRCULATION | VERTICAL for space in spaces):
        raise SiteError(
            f"{path.name}: no rooms: only corridors, areas, stairs or lifts are left",
            hint="at least one feature must have indoor=room, a level and a polygon",
        )
    connectors = tuple(connectors_of(found, by_level))
    spaces, doors = _with_doors(found, spaces, connectors)
    if not any(door.is_entrance for door in doors):
        found.warnings.append(f"{path.name}: no entrance is mapped, so any place can be a start")
    furniture = _furniture(_reachable_rooms(spaces, doors, connectors))
    site = Site(
        name=_name(features) or path.stem,
        origin=found.origin,
        levels=tuple(Level(level, _level_name(level)) for level in all_levels(found)),
        spaces=tuple(_with_labs(spaces, furniture)),
        doors=doors,
        connectors=connectors,
        warnings=tuple(found.warnings),
    )
    return furnish(site, furniture, host_room=next(iter(furniture), None))


def _name(features: Sequence[Feature]) -> str:
    """Return the name of the largest named outline that is neither a room nor on a level."""
    named = [
        (feature.geometry.area, feature.tags["name"])
        for feature in features
        if isinstance(feature.geometry, Polygon)
        and feature.tags.get("name")
        and not {"indoor", "level"} & feature.tags.keys()
    ]
    return max(named, default=(0.0, ""))[1][:80]


def _level_name(level: int) -> str:
    return LEVEL_NAMES.get(level, f"Level {level}")


def _with_doors(
    found: IndoorMap, spaces: tuple[Space, ...], connectors: Sequence[Connector]
) -> tuple[tuple[Space, ...], tuple[Door, ...]]:
    """Return the spaces with all doors, and with an outside if the building needs one.

    It does when parts of the ground level are joined only by walking outside.
    """
    drawn, warnings = mapped_doors(found, spaces)
    doors = (*drawn, *derived_doors(spaces, drawn, connectors))
    if len(parts_on_ground(spaces, doors, connectors)) > 1:
        outside = surroundings(found, spaces)
        if outside is not None:
            spaces = (*spaces, outside)
            drawn, warnings = mapped_doors(found, spaces)
            doors = (*drawn, *derived_doors(spaces, drawn, connectors))
    found.warnings += warnings
    return spaces, doors


def _reachable_rooms(
    spaces: Sequence[Space], doors: Sequence[Door], connectors: Sequence[Connector]
) -> list[Space]:
    graph = space_graph(spaces, doors, connectors)
    entered = {door.spaces[0] for door in doors if door.is_entrance}
    parts = list(nx.connected_components(graph))
    if not entered:
        entered = max(parts, key=len, default=set())
    reached = {room for part in parts if part & entered for room in part}
    return [space for space in spaces if space.id in reached]


def _furniture(reachable: Sequence[Space]) -> dict[str, Furniture]:
    """Give machines to rooms people can reach, largest first, until there are enough."""
    rooms = [s for s in reachable if s.kind not in CIRCULATION | VERTICAL | NOT_FURNISHED]
    furniture: dict[str, Furniture] = {}
    left = MAX_MACHINES
    for number, room in enumerate(sorted(rooms, key=lambda r: (-r.polygon.area, r.id))):
        desks = min(MACHINES_A_ROOM, int(room.polygon.area / FLOOR_A_MACHINE), left)
        if desks < 1:
            break
        furniture[room.id] = Furniture(desks, USES[number % len(USES)])
        left -= desks
    return furniture


def _with_labs(spaces: Sequence[Space], furniture: Mapping[str, Furniture]) -> Iterator[Space]:
    """Yield the spaces; furnished rooms that are nobody's office count as open labs."""
    for space in spaces:
        is_open = space.id in furniture and furniture[space.id].use != "office"
        yield replace(space, open_lab=is_open)
