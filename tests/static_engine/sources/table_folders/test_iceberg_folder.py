"""Iceberg tables by path: versions, and metadata that name files elsewhere."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from static_engine.sources.declared_options import table_options
from static_engine.sources.table_errors import TableMissingError
from static_engine.sources.table_locations import Locations, fingerprint
from tests.static_engine.sources.documents.document_tables import refused, rows, table

COLUMNS = "id INTEGER, name TEXT"


def made(folder: Path) -> Path:
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder / 'c.db'}", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    data = pa.table({"name": ["a", "b"], "id": pa.array([1, 2], pa.int32()), "x": [0.5, 1.5]})
    created = catalog.create_table(("n", "orders"), schema=data.schema)
    created.append(data)
    created.append(data.slice(0, 1))
    created.delete("id = 2")
    return folder / "n" / "orders"


def test_the_newest_version_is_read_and_an_older_one_by_its_file(tmp_path: Path) -> None:
    folder = made(tmp_path)
    options = {"source": "iceberg", "path": str(folder)}
    assert rows(tmp_path, COLUMNS, **options) == [(1, "a"), (1, "a")]
    older = min((folder / "metadata").glob("00001-*.metadata.json"))
    found = rows(tmp_path, COLUMNS, source="iceberg", path=str(older))
    assert found == [(1, "a"), (2, "b")]
    assert "has no column nme" in refused(tmp_path, "nme TEXT", **options)


def test_a_commit_changes_the_fingerprint(tmp_path: Path) -> None:
    folder = made(tmp_path)
    options = table_options(table(COLUMNS, source="iceberg", path=str(folder)))
    before = fingerprint(options, Locations(tmp_path))
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path / 'c.db'}", warehouse=f"file://{tmp_path}")
    catalog.load_table(("n", "orders")).delete("id = 1")
    assert fingerprint(options, Locations(tmp_path)) != before


def test_files_outside_of_open_folders_are_not_read(tmp_path: Path) -> None:
    outside = made(tmp_path)
    inside = tmp_path / "open"
    (inside / "orders" / "metadata").mkdir(parents=True)
    newest = max((outside / "metadata").glob("*.metadata.json"))
    (inside / "orders" / "metadata" / newest.name).write_bytes(newest.read_bytes())
    text = refused(inside, COLUMNS, source="iceberg", path="orders")
    assert "outside the folders that are open" in text


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/x", "s3://bucket/x.avro", "/etc/hosts"])
def test_metadata_cannot_make_us_read_elsewhere(address: str, tmp_path: Path) -> None:
    folder = made(tmp_path)
    newest = max((folder / "metadata").glob("*.metadata.json"))
    metadata = json.loads(newest.read_text())
    for snapshot in metadata["snapshots"]:
        snapshot["manifest-list"] = address
    newest.write_text(json.dumps(metadata))
    text = refused(tmp_path, COLUMNS, source="iceberg", path=str(folder))
    assert "not a local file" in text or "outside the folders" in text


@pytest.mark.parametrize("damage", ["metadata", "manifest", "data"])
def test_a_damaged_table_is_an_error(damage: str, tmp_path: Path) -> None:
    folder = made(tmp_path)
    pattern = {"metadata": "metadata/*.json", "manifest": "metadata/*.avro", "data": "data/*"}
    for file in folder.glob(pattern[damage]):
        file.write_bytes(file.read_bytes()[:50] + b"\xff" * 20)
    text = refused(tmp_path, COLUMNS, source="iceberg", path=str(folder))
    assert "is not readable Iceberg" in text


def test_no_table_is_said(tmp_path: Path) -> None:
    with pytest.raises(TableMissingError, match="is missing"):
        fingerprint(
            table_options(table(COLUMNS, source="iceberg", path="none")), Locations(tmp_path)
        )
    assert "has no Iceberg table" in refused(tmp_path, COLUMNS, source="iceberg", path="none")
