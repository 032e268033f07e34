"""Read a GeoJSON file that may be broken: bounded, and every complaint names the feature."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from shapely import LineString, MultiPolygon, Point, Polygon
from shapely.geometry.base import BaseGeometry

from building.model.site_model import SiteError

MAX_BYTES: Final = 50_000_000
MAX_FEATURES: Final = 20_000
MAX_POSITIONS: Final = 500_000

OTHER_TYPES: Final = frozenset({"MultiPoint", "MultiLineString", "GeometryCollection"})
"""GeoJSON types nothing indoors is drawn with."""

Position = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of the file, its geometry in degrees.

    Attributes:
        label: For messages: the feature's id, or its index in the file.
        key: Identifier made from the id, of letters, digits, `_` and `-`.
        tags: Properties whose values are text; other values as JSON text.
        geometry: A Point, LineString, Polygon or MultiPolygon; polygons may be invalid.
    """

    label: str
    key: str
    tags: Mapping[str, str]
    geometry: BaseGeometry


def read_features(path: Path) -> list[Feature]:
    """Return the features of a GeoJSON FeatureCollection in file order.

    Features without geometry and of types nothing indoors is drawn with are left out.

    Raises:
        SiteError: The file cannot be read, is too large, is not a FeatureCollection, or a
            feature is malformed; the message names the feature.
    """
    document = _load(path)
    kind = document.get("type") if isinstance(document, dict) else None
    if not isinstance(document, dict) or kind != "FeatureCollection":
        found = f"type {_shown(kind)}" if isinstance(document, dict) else _named(document)
        raise SiteError(
            f"{path.name}: expected a GeoJSON FeatureCollection, found {found}",
            hint='the file must look like {"type": "FeatureCollection", "features": [...]}',
        )
    features = document.get("features")
    if not isinstance(features, list):
        raise SiteError(f"{path.name}: 'features' must be a list, found {_named(features)}")
    if len(features) > MAX_FEATURES:
        raise SiteError(
            f"{path.name}: {len(features)} features; the max is {MAX_FEATURES}",
            hint="cut the building out of the larger map",
        )
    reader = _Reader()
    parsed = [reader.feature(index, feature) for index, feature in enumerate(features)]
    return [feature for feature in parsed if feature is not None]


def _load(path: Path) -> object:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise SiteError(
                f"{path.name}: {size} bytes; the max is {MAX_BYTES}",
                hint="cut the building out of the larger map",
            )
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SiteError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SiteError(
            f"{path.name}: not UTF-8 text (byte {error.start})",
            hint="GeoJSON is UTF-8; check the type of the file",
        ) from error
    try:
        document: object = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise SiteError(f"{path.name}: not JSON: {error.msg} at {place}") from error
    except (ValueError, RecursionError) as error:
        raise SiteError(f"{path.name}: not usable JSON: {error}") from error
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


class _Reader:
    """Reads feature by feature, counting positions over the whole file."""

    def __init__(self) -> None:
        self._positions = 0
        self._keys: set[str] = set()

    def feature(self, index: int, value: object) -> Feature | None:
        label = f"feature #{index}"
        if not isinstance(value, dict):
            raise SiteError(f"{label}: expected an object, found {_named(value)}")
        tags = value.get("properties")
        if tags is None:
            tags = {}
        if not isinstance(tags, dict):
            raise SiteError(f"{label}: 'properties' must be an object, found {_named(tags)}")
        identity = value.get("id", tags.get("id", tags.get("@id")))
        if isinstance(identity, str | int) and not isinstance(identity, bool):
            label = f"feature {_shown(identity)} (#{index})"
        geometry = value.get("geometry")
        if geometry is None:
            return None
        shape = self._geometry(label, geometry)
        if shape is None:
            return None
        texts = {str(k): v if isinstance(v, str) else json.dumps(v) for k, v in tags.items()}
        return Feature(label, self._key(identity, index), texts, shape)

    def _key(self, identity: object, index: int) -> str:
        text = str(identity) if isinstance(identity, str | int) else ""
        key = "".join(c if c.isascii() and c.isalnum() else "-" for c in text).strip("-")[:32]
        key = key or f"f{index}"
        if key in self._keys:
            key = f"{key}-f{index}"
        self._keys.add(key)
        return key

    def _geometry(self, label: str, value: object) -> BaseGeometry | None:
        if not isinstance(value, dict):
            raise SiteError(f"{label}: 'geometry' must be an object, found {_named(value)}")
        kind, coordinates = value.get("type"), value.get("coordinates")
        if kind == "Point":
            return Point(self._position(label, coordinates))
        if kind == "LineString":
            return LineString(self._line(label, coordinates, at_least=2))
        if kind == "Polygon":
            return self._polygon(label, coordinates)
        if kind == "MultiPolygon":
            return MultiPolygon([self._polygon(label, p) for p in _list(label, coordinates)])
        if isinstance(kind, str) and kind in OTHER_TYPES:
            return None
        raise SiteError(f"{label}: geometry type {_shown(kind)} is not a GeoJSON type")

    def _polygon(self, label: str, value: object) -> Polygon:
        rings = [self._line(label, ring, at_least=4) for ring in _list(label, value)]
        if not rings:
            raise SiteError(f"{label}: a Polygon needs an outline, its coordinates are empty")
        for ring in rings:
            if ring[0] != ring[-1]:
                raise SiteError(
                    f"{label}: the polygon is not closed: it starts at {ring[0]} "
                    f"and ends at {ring[-1]}",
                    hint="repeat the first position as the last one",
                )
        return Polygon(rings[0], rings[1:])

    def _line(self, label: str, value: object, *, at_least: int) -> list[Position]:
        positions = [self._position(label, position) for position in _list(label, value)]
        if len(positions) < at_least:
            raise SiteError(f"{label}: {len(positions)} positions, at least {at_least} are needed")
        return positions

    def _position(self, label: str, value: object) -> Position:
        self._positions += 1
        if self._positions > MAX_POSITIONS:
            raise SiteError(
                f"{label}: more than {MAX_POSITIONS} positions in the file up to here",
                hint="cut the building out of the larger map",
            )
        if not isinstance(value, list) or len(value) < 2:
            raise SiteError(
                f"{label}: a position must be [longitude, latitude], found {_named(value)}"
            )
        longitude, latitude = (self._degrees(label, v) for v in value[:2])
        if abs(longitude) > 180 or abs(latitude) > 85:
            raise SiteError(
                f"{label}: position [{longitude}, {latitude}] is outside longitude -180..180 "
                "and latitude -85..85",
                hint="coordinates must be WGS84 degrees, longitude first",
            )
        return (longitude, latitude)

    def _degrees(self, label: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SiteError(f"{label}: a coordinate must be a number, found {_named(value)}")
        # Comparing first: a JSON integer may be too large for a float.
        if not -1e6 < value < 1e6 or not math.isfinite(value):
            raise SiteError(
                f"{label}: coordinate {_shown(value)} is not a finite number of degrees"
            )
        return float(value)


def _list(label: str, value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise SiteError(f"{label}: coordinates must be a list, found {_named(value)}")
    return value


def _named(value: object) -> str:
    """Return the JSON name of a value's type, and the value where that is short."""
    names = {dict: "an object", list: "a list", type(None): "nothing"}
    return names.get(type(value)) or _shown(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
