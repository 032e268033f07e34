"""GeoJSON (RFC 7946): one row per feature.

A feature offers its properties by name, and of its own:

| column | holds |
|---|---|
| `feature_id` | the feature's `id`, as text |
| `geometry_type` | `Point`, `Polygon`, … |
| `geometry` | the geometry as GeoJSON text |
| `lon`, `lat` | of a point; of anything else the middle of its box |
| `min_lon`, `min_lat`, `max_lon`, `max_lat` | its box |

A property of such a name is hidden by the feature's own column.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

from static_engine.sources.documents.offered_rows import batches_of, content_of, where_of
from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition

OWN = (
    "feature_id", "geometry_type", "geometry", "lon", "lat", "min_lon", "min_lat", "max_lon",
    "max_lat",
)  # fmt: skip
MAX_FEATURES = 1_000_000
_MAX_NESTING = 32
"""Of positions: a MultiPolygon nests four arrays, a collection of geometries a little more."""

Row = dict[str, object]


class Feature(msgspec.Struct, tag_field="type", tag="Feature"):
    """A feature as it is written."""

    geometry: dict[str, object] | None = None
    properties: dict[str, object] | None = None
    id: str | float | int | None = None
    feature_type: str | None = None


class FeatureCollection(msgspec.Struct, tag_field="type", tag="FeatureCollection"):
    """A document of features."""

    features: list[Feature]


_decoder = msgspec.json.Decoder(FeatureCollection | Feature)


def read_geojson(definition: SourceDefinition, files: tuple[Path, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the features of GeoJSON files in the declared types.

    Raises:
        TableError: A file is no GeoJSON or too large, lacks a column, or holds a value of another
            type.
    """
    for file in files:
        content = content_of(definition, file)
        rows = features_in(content, where_of(definition, file.name))
        offered = [*OWN, *(name for row in rows for name in row)]
        yield from batches_of(definition, rows, offered, file.name)


def features_in(content: bytes, where: str) -> list[Row]:
    """Return the features of a GeoJSON document, each as its columns by name in lower case.

    Raises:
        TableError: It is no such document.
    """
    try:
        document = _decoder.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TableError(
            f"{where} is not GeoJSON: {error}",
            hint="expected one FeatureCollection, or one Feature",
        ) from None
    features = document.features if isinstance(document, FeatureCollection) else [document]
    if len(features) > MAX_FEATURES:
        raise TableError(f"{where} has more than {MAX_FEATURES} features")
    rows = []
    for number, feature in enumerate(features, 1):
        try:
            rows.append(_row(feature))
        except (ValueError, OverflowError) as error:
            raise TableError(f"{where}: feature {number}: {error}") from None
    return rows


def _row(feature: Feature) -> Row:
    row = {name.strip().lower(): value for name, value in (feature.properties or {}).items()}
    row["feature_id"] = None if feature.id is None else str(feature.id)
    if feature.feature_type is not None:  # IMDF has it next to the properties
        row.setdefault("feature_type", feature.feature_type)
    geometry = feature.geometry
    row.update(dict.fromkeys(OWN[1:]))
    if geometry is None:
        return row
    row["geometry_type"] = geometry.get("type")
    row["geometry"] = msgspec.json.encode(geometry).decode()
    box = _Box()
    box.take_geometry(geometry)
    if not box.is_empty:
        row |= {
            "min_lon": box.west,
            "min_lat": box.south,
            "max_lon": box.east,
            "max_lat": box.north,
            "lon": (box.west + box.east) / 2,
            "lat": (box.south + box.north) / 2,
        }
    return row


class _Box:
    """The smallest box, in degrees, around positions."""

    def __init__(self) -> None:
        self.west = self.south = math.inf
        self.east = self.north = -math.inf

    @property
    def is_empty(self) -> bool:
        return self.west > self.east

    def take_geometry(self, geometry: dict[str, object]) -> None:
        """Take in a geometry, or a collection of them.

        Raises:
            ValueError: It nests too deeply, or a position is none.
        """
        waiting: list[tuple[object, int]] = [(geometry, 0)]
        while waiting:
            value, depth = waiting.pop()
            if depth > _MAX_NESTING:
                raise ValueError(f"its geometry nests more than {_MAX_NESTING} levels")
            if isinstance(value, dict):
                waiting.append((value.get("coordinates") or [], depth + 1))
                waiting.extend((inner, depth + 1) for inner in value.get("geometries") or [])
            elif not isinstance(value, list):
                raise ValueError(f"{value!r:.60} is no position")
            elif value and not isinstance(value[0], list | dict):
                self._take(value)
            else:
                waiting.extend((inner, depth + 1) for inner in value)

    def _take(self, position: list[object]) -> None:
        lon, lat = (*position, None)[:2]
        if not (_is_number(lon) and _is_number(lat)):
            raise ValueError(f"{position!r:.60} is no position (longitude, latitude)")
        self.west, self.east = min(self.west, float(lon)), max(self.east, float(lon))  # type: ignore[arg-type]
        self.south, self.north = min(self.south, float(lat)), max(self.north, float(lat))  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
