"""GeoJSON: features as rows, against shapely's boxes, and files that are none."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import shapely.geometry
from hypothesis import given
from hypothesis import strategies as st

from static_engine.sources.documents import geo_rows, offered_rows
from static_engine.sources.documents.geo_rows import features_in
from tests.static_engine.sources.documents.document_tables import refused, rows


def feature(geometry: object, number: object = None, **properties: object) -> dict[str, Any]:
    return {"type": "Feature", "id": number, "geometry": geometry, "properties": properties}


def write(folder: Path, *features: dict[str, Any]) -> None:
    document = {"type": "FeatureCollection", "features": features, "name": "ignored"}
    (folder / "t.geojson").write_text(json.dumps(document))


def read(folder: Path, columns: str) -> list[Any]:
    return rows(folder, columns, source="geojson", path="t.geojson")


def test_properties_and_the_geometry_are_columns(tmp_path: Path) -> None:
    square = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 2], [0, 2], [0, 0]]]}
    write(
        tmp_path,
        feature(square, "way/1", Name="hall", level=1, tags=["a"]),
        feature({"type": "Point", "coordinates": [7.5, 1, 200]}, 2, name=None, seats="12"),
        feature(None, name="nowhere"),
    )
    columns = (
        "feature_id TEXT, name TEXT, level INTEGER, tags TEXT, seats INTEGER, geometry_type TEXT, "
        "lon DOUBLE, lat DOUBLE, max_lon DOUBLE"
    )
    assert read(tmp_path, columns) == [
        ("way/1", "hall", 1, '["a"]', None, "Polygon", 2.0, 1.0, 4.0),
        ("2", None, None, None, 12, "Point", 7.5, 1.0, 7.5),
        (None, "nowhere", None, None, None, None, None, None, None),
    ]
    ((text,), *_) = read(tmp_path, "geometry TEXT")
    assert json.loads(text) == square


NUMBER = st.floats(-180, 180, allow_nan=False)
POSITION = st.tuples(NUMBER, NUMBER)
GEOMETRY = st.one_of(
    POSITION.map(lambda p: {"type": "Point", "coordinates": p}),
    st.lists(POSITION, min_size=2).map(lambda ps: {"type": "LineString", "coordinates": ps}),
    st.lists(st.lists(POSITION, min_size=2), min_size=1).map(
        lambda lines: {"type": "MultiLineString", "coordinates": lines}
    ),
    st.lists(POSITION, min_size=3).map(
        lambda ring: {"type": "MultiPolygon", "coordinates": [[[*ring, ring[0]]]]}
    ),
)
COLLECTION = st.lists(GEOMETRY, min_size=1).map(
    lambda each: {"type": "GeometryCollection", "geometries": each}
)


@given(geometry=GEOMETRY | COLLECTION)
def test_boxes_are_those_of_shapely(geometry: dict[str, Any]) -> None:
    content = json.dumps(feature(geometry)).encode()
    (row,) = features_in(content, "t")
    box = tuple(row[name] for name in ("min_lon", "min_lat", "max_lon", "max_lat"))
    assert box == shapely.geometry.shape(geometry).bounds


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not GeoJSON"),
        (b"[1, 2", "is not GeoJSON"),
        (b'{"type": "Topology"}', "is not GeoJSON"),
        (b'{"type": "FeatureCollection"}', "features"),
        (b'{"type": "FeatureCollection", "features": [7]}', r"features\[0\]"),
        (b'\xff\xfe{"type"', "is not GeoJSON"),
        (b'{"type": "Feature", "properties": {"a": "\xff"}}', "is not GeoJSON"),
        (b'{"type": "Feature", "geometry": ' + b'{"geometries": [' * 50_000, "is not GeoJSON"),
        (b'{"type": "Feature", "geometry": {"coordinates": ' + b"[" * 99_999, "is not GeoJSON"),
        (
            b'{"type": "Feature", "geometry": {"coordinates": ' + b"[" * 40 + b"]" * 40 + b"}}",
            "nests more than",
        ),
        (b'{"type": "Feature", "geometry": {"coordinates": ["a", 2]}}', "is no position"),
        (b'{"type": "Feature", "geometry": {"coordinates": [1]}}', "is no position"),
        (b'{"type": "Feature", "geometry": {"coordinates": [[1, 2], 3]}}', "is no position"),
        (
            b'{"type": "Feature", "geometry": {"coordinates": [1e999, 0]}}',
            "(not Geo|no pos)",
        ),
    ],
)
def test_a_hostile_file_is_an_error_with_its_place(
    content: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / "t.geojson").write_bytes(content)
    text = refused(tmp_path, "feature_id TEXT", source="geojson", path="t.geojson")
    assert text.startswith("table t: t.geojson")
    assert re.search(said, text)


def test_bounds_and_columns_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, feature(None, name="a"), feature(None, name="b"))
    options = {"source": "geojson", "path": "t.geojson"}
    assert "has no column nme" in refused(tmp_path, "nme TEXT", **options)
    assert "was nme renamed to name?" in refused(tmp_path, "nme TEXT", **options)
    assert "row 1, column name" in refused(tmp_path, "name INTEGER", **options)
    monkeypatch.setattr(geo_rows, "MAX_FEATURES", 1)
    assert "more than 1 features" in refused(tmp_path, "name TEXT", **options)
    monkeypatch.setattr(offered_rows.content_of, "__defaults__", (10,))
    assert "is larger than" in refused(tmp_path, "name TEXT", **options)
