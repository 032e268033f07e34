"""OSM features in plan metres: which of them are rooms, walls, doors, stairs and lifts."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import LineString, MultiPolygon, Point, Polygon
from shapely.geometry.base import BaseGeometry
from shapely.validation import explain_validity

from building.model.site_model import SiteError, SpaceKind
from building.osm.geojson_file import Feature

MAX_LEVELS: Final = 200
"""Levels one value may name, and how far from the ground a level may be."""

_TOKEN: Final = re.compile(r"(-?[0-9]{1,4}(?:\.[0-9]{1,3})?)(?:-(-?[0-9]{1,4}(?:\.[0-9]{1,3})?))?")


def parse_levels(text: str, *, label: str, tag: str = "level") -> tuple[int, ...]:
    """Return the whole levels a value names, lowest first.

    Half levels such as `0.5` lie between storeys and are left out, so the result may be empty.

    Raises:
        SiteError: The value does not follow the syntax; the message begins with `label`.

    Examples:
        >>> parse_levels("-1;0", label="x"), parse_levels("1-3", label="x")
        ((-1, 0), (1, 2, 3))
        >>> parse_levels("-2--1; 4;0.5", label="x")
        (-2, -1, 4)
    """
    levels: set[int] = set()
    for token in text.split(";"):
        match = _TOKEN.fullmatch(token.strip())
        if match is None:
            raise _malformed(text, label, tag)
        low = float(match[1])
        high = low if match[2] is None else float(match[2])
        if high < low:
            raise _malformed(text, label, tag)
        if max(abs(low), abs(high)) > MAX_LEVELS:
            raise SiteError(
                f"{label}: {tag}={text!r} is more than {MAX_LEVELS} levels from the ground"
            )
        if low.is_integer():
            levels.update(range(int(low), int(high // 1) + 1))
        elif high > low:
            levels.update(range(int(low // 1) + 1, int(high // 1) + 1))
    return tuple(sorted(levels))


def _malformed(text: str, label: str, tag: str) -> SiteError:
    shown = text if len(text) <= 40 else text[:37] + "..."
    return SiteError(
        f"{label}: {tag}={shown!r} is not a level",
        hint="write a number such as 0, several such as -1;0, or a range such as 1-3",
    )


EARTH_RADIUS: Final = 6_371_008.8
MAX_EXTENT: Final = 3_000.0
"""Metres; a larger map is a town, not a building."""

REPAIRABLE: Final = 0.02
"""Share of its area by which repairing a self-touching outline may change it."""

ROOM_KINDS: Final[Mapping[str, SpaceKind]] = {
    "office": SpaceKind.OFFICE,
    "administration": SpaceKind.OFFICE,
    "laboratory": SpaceKind.LAB,
    "lab": SpaceKind.LAB,
    "class": SpaceKind.LECTURE,
    "classroom": SpaceKind.LECTURE,
    "lecture": SpaceKind.LECTURE,
    "auditorium": SpaceKind.LECTURE,
    "meeting": SpaceKind.MEETING,
    "conference": SpaceKind.MEETING,
    "storage": SpaceKind.SERVICE,
    "technical": SpaceKind.SERVICE,
    "kitchen": SpaceKind.SERVICE,
    "toilet": SpaceKind.TOILETS,
    "toilets": SpaceKind.TOILETS,
    "shop": SpaceKind.SHOP,
    "entrance": SpaceKind.ENTRANCE,
    "corridor": SpaceKind.CORRIDOR,
    "hall": SpaceKind.AREA,
    "lobby": SpaceKind.AREA,
    "stairs": SpaceKind.STAIRS,
    "elevator": SpaceKind.LIFT,
}
"""Kinds by the value of `room=*`; any other value is an ordinary room."""


class Role(Enum):
    """The kind of indoor feature that a map draws."""

    SPACE = auto()
    WALL = auto()
    STEPS = auto()
    LIFT = auto()
    DOOR = auto()
    BUILDING = auto()


@dataclass(frozen=True, slots=True)
class MappedSpace:
    """A room, corridor or area as drawn, with all levels it is on."""

    feature: Feature
    kind: SpaceKind
    levels: tuple[int, ...]
    parts: tuple[Polygon, ...]


@dataclass(frozen=True, slots=True)
class MappedPoint:
    """A door, entrance or lift drawn as a point."""

    feature: Feature
    levels: tuple[int, ...]
    point: Point


@dataclass(frozen=True, slots=True)
class MappedLine:
    """A wall or a flight of steps drawn as a line."""

    feature: Feature
    levels: tuple[int, ...]
    line: LineString


@dataclass
class IndoorMap:
    """The indoor features of a map, in plan metres.

    Attributes:
        origin: Longitude and latitude of the plan's (0, 0).
        spaces: Rooms, corridors and areas.
        doors: Doors and entrances drawn as points.
        buildings: Outlines of whole buildings, which nobody walks through.
        warnings: Omissions and repairs, one sentence each, naming the feature.
    """

    origin: tuple[float, float]
    spaces: list[MappedSpace] = field(default_factory=list)
    walls: list[MappedLine] = field(default_factory=list)
    doors: list[MappedPoint] = field(default_factory=list)
    lifts: list[MappedPoint] = field(default_factory=list)
    steps: list[MappedLine] = field(default_factory=list)
    buildings: list[Polygon] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def indoor_map(features: Sequence[Feature], *, source: str) -> IndoorMap:
    """Sort the features of a map and project them to metres.

    Raises:
        SiteError: Nothing indoors, no level at all, an outline that crosses itself, a level
            that is none, or a map larger than a building.
    """
    indoors = [f for f in features if _role(f) is Role.SPACE and "indoor" in f.tags]
    if not indoors:
        raise SiteError(
            f"{source}: no rooms: no feature has indoor=room, indoor=corridor or indoor=area",
            hint="the map must follow OSM Simple Indoor Tagging",
        )
    if not any("level" in feature.tags for feature in indoors):
        raise SiteError(
            f"{source}: {indoors[0].label} and all other indoor features have no 'level'",
            hint="add a level to every room, such as level=0",
        )
    west, south, east, north = shapely.total_bounds([f.geometry for f in indoors]).tolist()
    origin = (round((west + east) / 2, 7), round((south + north) / 2, 7))
    found = IndoorMap(origin)
    for feature in features:
        role = _role(feature)
        if role is not None:
            _sort_in(found, feature, role, _projected(feature, origin))
    _check_extent(found, source)
    return found


def _role(feature: Feature) -> Role | None:
    tags, geometry = feature.tags, feature.geometry
    indoor = tags.get("indoor")
    if indoor in {"room", "corridor", "area"} or _is_walkable_ground(feature):
        return Role.SPACE
    if indoor == "wall" and isinstance(geometry, LineString):
        return Role.WALL
    if isinstance(geometry, LineString) and tags.get("highway") == "steps":
        return Role.STEPS
    if isinstance(geometry, Point):
        if tags.get("highway") == "elevator" or tags.get("elevator") == "yes":
            return Role.LIFT
        if "door" in tags or "entrance" in tags or indoor == "door":
            return Role.DOOR
    if tags.get("building", "no") not in {"no", "roof"} and isinstance(geometry, Polygon):
        return Role.BUILDING
    return None


def _is_walkable_ground(feature: Feature) -> bool:
    """Whether it is a floor people walk on that is no indoor feature: a parking deck."""
    tags = feature.tags
    is_area = isinstance(feature.geometry, Polygon | MultiPolygon)
    return tags.get("amenity") == "parking" and is_area and "level" in tags and "indoor" not in tags


def _sort_in(found: IndoorMap, feature: Feature, role: Role, geometry: BaseGeometry) -> None:
    if role is Role.BUILDING:
        found.buildings += [p for p in shapely.get_parts(geometry.buffer(0)) if p.area >= 1]
        return
    if "level" not in feature.tags:
        found.warnings.append(f"{_title(feature)} is left out: it has no 'level'")
        return
    levels = _levels(feature)
    if not levels:
        level = feature.tags["level"]
        found.warnings.append(f"{_title(feature)} is left out: level={level} is between storeys")
    elif role is Role.SPACE:
        _add_space(found, feature, levels, geometry)
    elif isinstance(geometry, LineString):
        lines = found.walls if role is Role.WALL else found.steps
        lines.append(MappedLine(feature, levels, geometry))
    elif isinstance(geometry, Point):
        points = found.lifts if role is Role.LIFT else found.doors
        points.append(MappedPoint(feature, levels, geometry))


def _levels(feature: Feature) -> tuple[int, ...]:
    levels = set(parse_levels(feature.tags["level"], label=feature.label))
    if "repeat_on" in feature.tags:
        repeats = feature.tags["repeat_on"]
        levels |= set(parse_levels(repeats, label=feature.label, tag="repeat_on"))
    return tuple(sorted(levels))


def _add_space(
    found: IndoorMap, feature: Feature, levels: tuple[int, ...], geometry: BaseGeometry
) -> None:
    if not isinstance(geometry, Polygon | MultiPolygon):
        found.warnings.append(
            f"{_title(feature)} is left out: a room must be a Polygon, but it is a "
            f"{geometry.geom_type}"
        )
        return
    valid = _repaired(found, feature, geometry)
    parts = tuple(p for p in shapely.get_parts(valid) if isinstance(p, Polygon) and p.area >= 1)
    if parts:
        found.spaces.append(MappedSpace(feature, _kind(feature.tags), levels, parts))
    else:
        found.warnings.append(f"{_title(feature)} is left out: it is smaller than 1 m²")


def _repaired(found: IndoorMap, feature: Feature, geometry: BaseGeometry) -> BaseGeometry:
    """Return a valid outline; a kink of a hand's width is repaired, a crossed one refused."""
    if geometry.is_valid:
        return geometry
    repaired: BaseGeometry = shapely.make_valid(geometry)
    reason = explain_validity(geometry).partition("[")[0] or "invalid"
    if abs(repaired.area - geometry.area) > REPAIRABLE * repaired.area:
        raise SiteError(
            f"{_title(feature)}: broken polygon: its outline is not simple ({reason})",
            hint="list the corners around the room in order, without crossing edges",
        )
    found.warnings.append(f"{_title(feature)}: a small flaw of its outline was repaired ({reason})")
    return repaired


def _kind(tags: Mapping[str, str]) -> SpaceKind:
    room = tags.get("room", "")
    if tags.get("elevator") == "yes" or tags.get("highway") == "elevator":
        return SpaceKind.LIFT
    if tags.get("stairs", "no") != "no" or tags.get("highway") == "steps":
        return SpaceKind.STAIRS
    if tags.get("indoor", "area") in {"corridor", "area"}:
        return SpaceKind(tags.get("indoor", "area"))
    if tags.get("amenity") == "toilets":
        return SpaceKind.TOILETS
    if room in ROOM_KINDS:
        return ROOM_KINDS[room]
    if "shop" in tags:
        return SpaceKind.SHOP
    return SpaceKind.OFFICE if "office" in tags else SpaceKind.ROOM


def _title(feature: Feature) -> str:
    name = feature.tags.get("name")
    return f"{feature.label} ({name[:40]})" if name else feature.label


def _projected(feature: Feature, origin: tuple[float, float]) -> BaseGeometry:
    """Return the geometry in metres east and north of the origin (equirectangular)."""
    longitude, latitude = origin
    scale = math.radians(1) * EARTH_RADIUS

    def metres(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
        east = (degrees[:, 0] - longitude) * scale * math.cos(math.radians(latitude))
        return np.stack([east, (degrees[:, 1] - latitude) * scale], axis=1).round(3)

    projected: BaseGeometry = shapely.transform(feature.geometry, metres)
    return projected


def _check_extent(found: IndoorMap, source: str) -> None:
    for space in found.spaces:
        x0, y0, x1, y1 = shapely.total_bounds(list(space.parts)).tolist()
        farthest = max(abs(x0), abs(y0), abs(x1), abs(y1))
        if farthest > MAX_EXTENT / 2:
            raise SiteError(
                f"{source}: {_title(space.feature)} lies {farthest:.0f} m from the middle "
                f"of the map; the max is {MAX_EXTENT / 2:.0f} m are accepted",
                hint="cut one building out of the larger map",
            )


def all_levels(found: IndoorMap) -> Iterator[int]:
    """Yield every level with a space, lowest first."""
    yield from sorted({level for space in found.spaces for level in space.levels})
