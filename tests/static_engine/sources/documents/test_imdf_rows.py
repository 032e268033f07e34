"""IMDF archives, as a folder and as a zip file, and archives that are hostile."""

import json
import zipfile
from pathlib import Path

import pytest

from static_engine.sources.documents import imdf_rows
from static_engine.sources.table_errors import TableMissingError
from tests.static_engine.sources.documents.document_tables import refused, rows

UNIT = {
    "type": "FeatureCollection",
    "features": [
        {
            "id": "11111111-1111-1111-1111-111111111111", "type": "Feature", "feature_type": "unit",
            "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 0]]]},
            "properties": {
                "category": "room", "level_id": "l1", "restriction": None, "accessibility": ["a"],
                "name": {"fr": "Salle 1", "en": "Room 1"},
            },
        },
        {
            "id": "2", "type": "Feature", "geometry": None,
            "properties": {"category": "stairs", "level_id": "l1", "name": None},
        },
    ],
}  # fmt: skip
COLUMNS = "feature_id TEXT, feature_type TEXT, category TEXT, name TEXT, level_id TEXT, lon DOUBLE"
FOUND = [
    ("11111111-1111-1111-1111-111111111111", "unit", "room", "Salle 1", "l1", 1.0),
    ("2", "unit", "stairs", None, "l1", None),
]


def archive(folder: Path, *, zipped: bool, language: str = "fr-FR") -> None:
    files = {
        "manifest.json": json.dumps({"version": "1.0.0", "language": language}),
        "unit.geojson": json.dumps(UNIT),
    }
    if zipped:
        with zipfile.ZipFile(folder / "campus", "w", zipfile.ZIP_DEFLATED) as opened:
            for name, text in files.items():
                opened.writestr(f"campus/{name}", text)
        return
    (folder / "campus").mkdir()
    for name, text in files.items():
        (folder / "campus" / name).write_text(text)


@pytest.mark.parametrize("zipped", [False, True])
def test_a_layer_is_a_table(zipped: bool, tmp_path: Path) -> None:
    archive(tmp_path, zipped=zipped)
    assert rows(tmp_path, COLUMNS, source="imdf", path="campus", layer="unit") == FOUND
    with pytest.raises(TableMissingError, match=r"level\.geojson is missing"):
        rows(tmp_path, COLUMNS, source="imdf", path="campus", layer="level")


def test_without_its_language_a_text_is_english(tmp_path: Path) -> None:
    archive(tmp_path, zipped=True, language="de")
    found = rows(tmp_path, "name TEXT", source="imdf", path="campus", layer="unit")
    assert found == [("Room 1",), (None,)]


def test_hostile_archives_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"source": "imdf", "path": "campus", "layer": "unit"}
    (tmp_path / "campus").write_bytes(b"PK\x03\x04 no zip")
    assert "not a zip file" in refused(tmp_path, COLUMNS, **options)
    with zipfile.ZipFile(tmp_path / "campus", "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("unit.geojson", b" " * 3_000_000)  # a few kilobytes as a file
    monkeypatch.setattr(imdf_rows, "MAX_BYTES", 1 << 20)
    assert "unit.geojson is larger than 1 MB" in refused(tmp_path, COLUMNS, **options)
    archive(tmp_path, zipped=True)
    content = bytearray((tmp_path / "campus").read_bytes())
    content[200:260] = b"\xff" * 60
    (tmp_path / "campus").write_bytes(content)
    assert "table t: campus" in refused(tmp_path, COLUMNS, **options)
    monkeypatch.setattr(imdf_rows, "MAX_ENTRIES", 1)
    archive(tmp_path, zipped=True)
    assert "more than 1 entries" in refused(tmp_path, COLUMNS, **options)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    archive(tmp_path, zipped=False)
    unit = tmp_path / "campus" / "unit.geojson"
    unit.rename(tmp_path / "other.geojson")
    unit.symlink_to(tmp_path / "other.geojson")
    text = refused(tmp_path, COLUMNS, source="imdf", path="campus", layer="unit")
    assert "link out of its folder" in text
