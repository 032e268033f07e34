"""From drawn OSM rooms to the spaces of each level: disjoint, each with an id of its own."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import shapely
from shapely import Polygon
from shapely.geometry.base import BaseGeometry

from building.model.site_model import CIRCULATION, VERTICAL, Space, SpaceKind
from building.osm.osm_features import IndoorMap, MappedSpace

SMALLEST: Final = 1.0
"""Square metres; smaller remains of overlapping outlines are dropped."""

LARGEST_COLUMN: Final = 5.0
"""Square metres; a larger hole in a floor is not a column."""

WALL_HALF_WIDTH: Final = 0.1


@dataclass(frozen=True, slots=True)
class LevelSpaces:
    """The spaces of all levels, and which spaces were drawn as one feature.

    Attributes:
        spaces: Disjoint spaces, by level.
        of_feature: Feature key to its spaces, lowest level first.
    """

    spaces: tuple[Space, ...]
    of_feature: dict[str, list[Space]]


def spaces_by_level(found: IndoorMap) -> LevelSpaces:
    """Return the spaces of every level, what overlaps cut out of the larger one.

    Rooms stand in corridors and those in areas, and the smaller of two rooms keeps the shared
    floor: a kiosk is not part of the hall around it. Adds to the map's warnings what is lost.
    """
    names = _Names()
    ids = {mapped.feature.key: names.unique(_wanted_id(mapped)) for mapped in found.spaces}
    spaces: list[Space] = []
    of_feature: dict[str, list[Space]] = {}
    for level in sorted({level for mapped in found.spaces for level in mapped.levels}):
        drawn = [mapped for mapped in found.spaces if level in mapped.levels]
        walls = [w.line.buffer(WALL_HALF_WIDTH) for w in found.walls if level in w.levels]
        for mapped, parts in _disjoint(drawn, shapely.union_all(walls)):
            if not parts:
                found.warnings.append(
                    f"{mapped.feature.label} is left out on level {level}: other rooms cover it"
                )
            for number, part in enumerate(parts):
                rid = ids[mapped.feature.key]
                rid = f"{rid}_{level}" if len(mapped.levels) > 1 else rid
                rid = rid if number == 0 else f"{rid}_part{number + 1}"
                space = _space(mapped, rid, level, part)
                spaces.append(space)
                of_feature.setdefault(mapped.feature.key, []).append(space)
    return LevelSpaces(tuple(spaces), of_feature)


def _disjoint(
    drawn: Sequence[MappedSpace], walls: BaseGeometry
) -> Iterator[tuple[MappedSpace, list[Polygon]]]:
    def rank(mapped: MappedSpace) -> tuple[int, float, str]:
        order = 0 if mapped.kind in VERTICAL else 1
        if mapped.kind in CIRCULATION:
            order = 3 if mapped.kind is SpaceKind.AREA else 2
        return (order, sum(part.area for part in mapped.parts), mapped.feature.key)

    taken: list[Polygon] = []
    for mapped in sorted(drawn, key=rank):
        tree = shapely.STRtree(taken)
        left: list[Polygon] = []
        for part in mapped.parts:
            obstacles = [taken[i] for i in sorted(tree.query(part, predicate="intersects"))]
            rest = shapely.difference(part, shapely.union_all(obstacles))
            if mapped.kind in CIRCULATION:
                rest = shapely.difference(rest, walls)
            left += [_without_columns(polygon, tree) for polygon in _polygons(rest)]
        taken += left
        yield mapped, sorted(left, key=lambda polygon: -polygon.area)


def _without_columns(polygon: Polygon, others: shapely.STRtree) -> Polygon:
    """Fill the holes of a floor in which there is no room: one walks round a column."""
    holes = [
        ring
        for ring in polygon.interiors
        if Polygon(ring).area > LARGEST_COLUMN
        or len(others.query(Polygon(ring).buffer(0.05), predicate="contains"))
    ]
    return Polygon(polygon.exterior, holes)


def _polygons(geometry: BaseGeometry) -> list[Polygon]:
    """Return the parts worth having, without hair-thin spikes left by the difference."""
    parts: list[Polygon] = []
    for part in shapely.get_parts(geometry):
        if isinstance(part, Polygon) and part.area >= SMALLEST:
            opened = part.buffer(-0.02, join_style="mitre").buffer(0.02, join_style="mitre")
            kept = shapely.intersection(opened, part)
            parts += [p for p in shapely.get_parts(kept) if isinstance(p, Polygon)]
    return [part for part in parts if part.area >= SMALLEST]


def _space(mapped: MappedSpace, rid: str, level: int, polygon: Polygon) -> Space:
    tags = mapped.feature.tags
    name = tags.get("name") or tags.get("ref") or rid
    # Of stairs the tag is about the flights; their landing is as accessible as its doors.
    denied = tags.get("wheelchair") == "no" and mapped.kind is not SpaceKind.STAIRS
    return Space(
        id=rid,
        name=" ".join(name.split())[:80],
        kind=mapped.kind,
        level=level,
        polygon=polygon,
        wheelchair=not denied,
        source=mapped.feature.label,
    )


def _wanted_id(mapped: MappedSpace) -> str:
    tags = mapped.feature.tags
    return slug(tags.get("ref", "")) or slug(tags.get("name", "")) or mapped.feature.key


def slug(text: str) -> str:
    """Return the text as an identifier of at most 32 characters, or an empty string.

    Examples:
        >>> slug("L'Univers de Léo"), slug("H&M"), slug("地下")
        ('L-Univers-de-Leo', 'H-M', '')
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")[:32].strip("-")


class _Names:
    """Hands out ids that differ even where case does not matter, as in file names."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def unique(self, wanted: str) -> str:
        name, number = wanted, 1
        while name.lower() in self._used:
            number += 1
            name = f"{wanted}-{number}"
        self._used.add(name.lower())
        return name
