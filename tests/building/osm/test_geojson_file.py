"""Broken GeoJSON files: each gets an error that names the feature, none gets a crash."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building.model.site_model import SiteError
from building.osm import geojson_file
from building.osm.geojson_file import read_features
from streamsql.errors import DeploymentError

SQUARE = [[[0, 0], [0, 1], [1, 1], [1, 0], [0, 0]]]


def feature(**changes: Any) -> dict[str, Any]:
    base = {
        "type": "Feature",
        "id": "way/12",
        "properties": {"indoor": "room", "level": "0"},
        "geometry": {"type": "Polygon", "coordinates": SQUARE},
    }
    return {**base, **changes}


def write(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "map.geojson"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def collection(*features: object) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features)}


def polygon(coordinates: object) -> dict[str, Any]:
    return feature(geometry={"type": "Polygon", "coordinates": coordinates})


def test_a_good_file(tmp_path: Path) -> None:
    point = {"type": "Point", "coordinates": [2.5, 48.9, 35.0]}
    door = feature(id=None, geometry=point, properties={"door": "yes", "width": 2, "@id": "node/3"})
    nowhere = feature(geometry=None)
    room, place = read_features(write(tmp_path, collection(feature(), nowhere, door)))
    assert (room.label, room.key, room.tags["level"]) == ("feature 'way/12' (#0)", "way-12", "0")
    assert room.geometry.area == 1
    assert place.tags["width"] == "2"
    assert (place.geometry.x, place.geometry.y) == (2.5, 48.9)  # type: ignore[attr-defined]


def test_features_of_one_id_get_keys_of_their_own(tmp_path: Path) -> None:
    keys = [f.key for f in read_features(write(tmp_path, collection(feature(), feature())))]
    assert keys == ["way-12", "way-12-f1"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON: .*line 1, column 2"),
        ("[]", "expected a GeoJSON FeatureCollection, found a list"),
        ('{"type": "Feature"}', "found type 'Feature'"),
        ('{"type": "FeatureCollection"}', "'features' must be a list, found nothing"),
        ('{"type": "FeatureCollection", "features": {}}', "'features' must be a list"),
        ('{"type": "FeatureCollection", "features": [NaN]}', "NaN is not a number"),
        ("[" * 200_000, "not usable JSON|not JSON"),
        ("1" * 10_000, "not usable JSON"),
        (collection(3), "feature #0: expected an object, found 3"),
        (collection(feature(), feature(properties=[])), r"#1.*'properties' must be an object"),
        (collection(feature(geometry=7)), "way/12.*'geometry' must be an object"),
        (collection(feature(geometry={"type": "Blob"})), "way/12.*'Blob' is not a GeoJSON type"),
        (collection(polygon(None)), "way/12.*coordinates must be a list, found nothing"),
        (collection(polygon([])), "way/12.*needs an outline"),
        (collection(polygon([[[0, 0], [0, 1], [0, 0]]])), "way/12.*3 positions, at least 4"),
        (
            collection(polygon([[[0, 0], [0, 1], [1, 1], [1, 0]]])),
            r"way/12.*not closed: it starts at \(0.0, 0.0\) and ends at \(1.0, 0.0\)",
        ),
        (collection(polygon([[[0, 0], [0], [1, 1], [0, 0]]])), "way/12.*a position must be"),
        (collection(polygon([[[0, 0], ["0", 1], [1, 1], [0, 0]]])), "way/12.*must be a number"),
        (collection(polygon([[[0, 0], [True, 1], [1, 1], [0, 0]]])), "way/12.*must be a number"),
        (collection(polygon([[[0, 0], [10**400, 1], [1, 1], [0, 0]]])), "way/12.*not a finite"),
        (collection(polygon([[[0, 0], [0, 1e300], [1, 1], [0, 0]]])), "way/12.*not a finite"),
        (collection(polygon([[[0, 0], [500, 1], [1, 1], [0, 0]]])), "way/12.*outside longitude"),
        (
            collection(feature(geometry={"type": "LineString", "coordinates": [[0, 0]]})),
            "way/12.*1 positions, at least 2",
        ),
    ],
)
def test_the_error_names_the_place(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(SiteError, match=message):
        read_features(write(tmp_path, content))


def test_infinite_numbers_are_refused(tmp_path: Path) -> None:
    text = json.dumps(collection(feature())).replace("[0, 1]", "[0, 1e999]")
    with pytest.raises(SiteError, match=r"way/12.*not a finite"):
        read_features(write(tmp_path, text))


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"cannot read .*absent\.geojson"):
        read_features(tmp_path / "absent.geojson")
    with pytest.raises(SiteError, match="cannot read"):
        read_features(tmp_path)
    path = tmp_path / "map.geojson"
    path.write_bytes(b"\x1f\x8b\x00\xff")
    with pytest.raises(SiteError, match="not UTF-8 text"):
        read_features(path)


def test_too_many_features_positions_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, collection(*[feature()] * 5))
    with monkeypatch.context() as patch:
        patch.setattr(geojson_file, "MAX_FEATURES", 4)
        with pytest.raises(SiteError, match="5 features; the max is 4"):
            read_features(path)
    with monkeypatch.context() as patch:
        patch.setattr(geojson_file, "MAX_POSITIONS", 12)
        with pytest.raises(SiteError, match=r"#2.*more than 12 positions"):
            read_features(path)
    with monkeypatch.context() as patch:
        patch.setattr(geojson_file, "MAX_BYTES", 100)
        with pytest.raises(SiteError, match="the max is 100"):
            read_features(path)


def test_the_bound_of_features_is_the_documented_one() -> None:
    assert geojson_file.MAX_FEATURES == 20_000


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["type", "coordinates", "level", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    value=JSON, place=st.sampled_from(["feature", "geometry", "coordinates", "properties", "id"])
)
def test_any_json_in_any_place_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, value: object, place: str
) -> None:
    contents = {
        "feature": collection(value),
        "geometry": collection(feature(geometry=value)),
        "coordinates": collection(polygon(value)),
        "properties": collection(feature(properties=value)),
        "id": collection(feature(id=value)),
    }
    path = write(tmp_path_factory.mktemp("any"), contents[place])
    try:
        features = read_features(path)
    except DeploymentError as error:
        complaint = str(error)
    else:
        complaint = "#0"
        assert len(features) <= 1
    assert "#0" in complaint
