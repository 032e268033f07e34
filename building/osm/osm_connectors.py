"""Stairs and lifts of an OSM map: rooms over several levels, lift points, lines of steps."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import shapely
from shapely import Point
from shapely.ops import nearest_points

from building.model.site_model import CIRCULATION, VERTICAL, Connector, Space, SpaceKind, Stop
from building.osm.osm_features import IndoorMap, MappedLine, MappedPoint
from building.osm.osm_spaces import LevelSpaces
from building.walking.walking_graph import middle_of

SAME_LIFT: Final = 3.0
"""Metres: a lift point this near to a lift's outline is that lift."""

STOP_REACH: Final = 8.0
"""Metres from the end of mapped steps, or from a lift, to the floor it is reached from."""

SAME_STAIRWELL: Final = 0.3
"""Share of the smaller outline that stairs on two levels must have in common."""


def connectors_of(found: IndoorMap, by_level: LevelSpaces) -> list[Connector]:
    """Return the stairs and lifts; adds a warning for each that joins no two levels."""
    from_rooms = list(_from_rooms(by_level))
    connectors = [*from_rooms, *_stairwells(by_level.spaces, from_rooms)]
    connectors += _inside_rooms(found, by_level)
    lifts = [space for space in by_level.spaces if space.kind is SpaceKind.LIFT]
    for mapped in found.lifts:
        if not any(s.polygon.distance(mapped.point) <= SAME_LIFT for s in lifts):
            connectors += _checked(found, mapped, _lift_at(mapped, by_level.spaces))
    for steps in found.steps:
        connectors += _checked(found, steps, _steps_along(steps, by_level.spaces))
    return connectors


def _checked(
    found: IndoorMap, mapped: MappedPoint | MappedLine, connector: Connector | None
) -> list[Connector]:
    if connector is None:
        found.warnings.append(
            f"{mapped.feature.label} does not connect two levels: it needs a level such as "
            f"0;1 and a floor within {STOP_REACH:.0f} m on each of them"
        )
        return []
    return [connector]


def _from_rooms(by_level: LevelSpaces) -> Iterator[Connector]:
    for key, spaces in by_level.of_feature.items():
        if spaces[0].kind in VERTICAL and len({space.level for space in spaces}) > 1:
            yield _between(key, spaces)


def _inside_rooms(found: IndoorMap, by_level: LevelSpaces) -> Iterator[Connector]:
    """Yield stairs inside rooms that are on several levels, which maps do not draw.

    Such a room is one feature with several levels, or rooms of one name above one another, as
    the storeys of a shop are. Each assumption becomes a warning.
    """
    storeys = [list(spaces) for spaces in by_level.of_feature.values()]
    storeys = [spaces for spaces in storeys if spaces[0].kind not in CIRCULATION | VERTICAL]
    named: dict[str, list[Space]] = {}
    for space in (space for spaces in storeys for space in spaces):
        if space.name != space.id:
            named.setdefault(space.name.casefold(), []).append(space)
    groups = [spaces for spaces in storeys if len({s.level for s in spaces}) > 1]
    known = {space.id for group in groups for space in group}
    for spaces in named.values():
        ordered = sorted(spaces, key=lambda space: space.level)
        for low, high in pairwise(ordered):
            if not {low.id, high.id} <= known and low.level < high.level and _above(low, high):
                groups.append([low, high])
    for group in groups:
        levels = " and ".join(str(space.level) for space in group)
        found.warnings.append(
            f"{group[0].source} ({group[0].name}): stairs inside it are assumed, "
            f"as it is on levels {levels}"
        )
        yield _between(f"inside-{group[0].id}", group)


def _between(key: str, spaces: Sequence[Space]) -> Connector:
    stops: dict[int, Stop] = {}
    for space in spaces:
        stop = Stop(space.level, space.id, middle_of(space.polygon))
        stops.setdefault(space.level, stop)
    ordered = tuple(stops[level] for level in sorted(stops))
    kind = SpaceKind.LIFT if spaces[0].kind is SpaceKind.LIFT else SpaceKind.STAIRS
    usable = kind is SpaceKind.LIFT and all(space.wheelchair for space in spaces)
    return Connector(key, kind, ordered, wheelchair=usable)


def _stairwells(spaces: Sequence[Space], known: Sequence[Connector]) -> Iterator[Connector]:
    """Join stairs and lifts drawn once a level where they lie above one another."""
    taken = {stop.room for connector in known for stop in connector.stops}
    free = [s for s in spaces if s.kind in VERTICAL and s.id not in taken]
    for start in free:
        if start.id in taken:
            continue
        well = [start]
        for above in free:
            if above.level > well[-1].level and _above(well[-1], above):
                well.append(above)
        if len(well) > 1:
            taken.update(space.id for space in well)
            yield _between(f"well-{start.id}"[:40], well)


def _above(low: Space, high: Space) -> bool:
    common = shapely.intersection(low.polygon, high.polygon).area
    smaller = min(low.polygon.area, high.polygon.area)
    return low.kind is high.kind and common >= SAME_STAIRWELL * smaller


def _lift_at(mapped: MappedPoint, spaces: Sequence[Space]) -> Connector | None:
    stops = [_stop(mapped.point, level, spaces) for level in mapped.levels]
    reached = tuple(stop for stop in stops if stop is not None)
    if len(reached) < 2:
        return None
    usable = mapped.feature.tags.get("wheelchair") != "no"
    return Connector(mapped.feature.key, SpaceKind.LIFT, reached, wheelchair=usable)


def _steps_along(mapped: MappedLine, spaces: Sequence[Space]) -> Connector | None:
    if len(mapped.levels) < 2:
        return None
    ends = [Point(mapped.line.coords[0]), Point(mapped.line.coords[-1])]
    incline = mapped.feature.tags.get("incline", "")
    ways = [ends] if incline == "up" else [ends[::-1]] if incline == "down" else [ends, ends[::-1]]
    low, high = mapped.levels[0], mapped.levels[-1]
    best: tuple[float, tuple[Stop, Stop]] | None = None
    for bottom, top in ways:
        stops = (_stop(bottom, low, spaces), _stop(top, high, spaces))
        if stops[0] is None or stops[1] is None:
            continue
        metres = stops[0].point.distance(bottom) + stops[1].point.distance(top)
        if best is None or metres < best[0]:
            best = (metres, (stops[0], stops[1]))
    if best is None:
        return None
    return Connector(mapped.feature.key, SpaceKind.STAIRS, best[1], wheelchair=False)


def _stop(place: Point, level: int, spaces: Sequence[Space]) -> Stop | None:
    """Return where a place is reached from: the nearest floor, a corridor rather than a room."""
    near = [
        (space.kind not in CIRCULATION, space.polygon.distance(place), space.id, space)
        for space in spaces
        if space.level == level and space.polygon.distance(place) <= STOP_REACH
    ]
    if not near:
        return None
    space = min(near, key=lambda entry: entry[:3])[3]
    on_floor = nearest_points(space.polygon, place)[0]
    return Stop(level, space.id, Point(round(on_floor.x, 3), round(on_floor.y, 3)))
