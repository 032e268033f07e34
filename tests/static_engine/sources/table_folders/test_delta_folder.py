"""Delta tables by path."""

import json
from pathlib import Path

import deltalake
import pyarrow as pa

from tests.static_engine.sources.documents.document_tables import refused, rows

COLUMNS = "id INTEGER, name TEXT"
OPTIONS = {"source": "delta", "path": "orders"}


def made(folder: Path) -> Path:
    data = pa.table({"name": ["a", "b"], "id": [1, 2], "x": [0.5, 1.5]})
    deltalake.write_deltalake(folder / "orders", data)
    deltalake.write_deltalake(folder / "orders", data.slice(0, 1), mode="append")
    deltalake.DeltaTable(folder / "orders").delete("id = 2")
    return folder / "orders"


def test_the_newest_version_is_read(tmp_path: Path) -> None:
    made(tmp_path)
    assert rows(tmp_path, COLUMNS, **OPTIONS) == [(1, "a"), (1, "a")]
    assert "has no column nme" in refused(tmp_path, "nme TEXT", **OPTIONS)


def test_a_damaged_or_missing_table_is_an_error(tmp_path: Path) -> None:
    assert "has no Delta table" in refused(tmp_path, COLUMNS, **OPTIONS)
    folder = made(tmp_path)
    for file in folder.glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:50])
    assert "table t: orders is not a readable Delta table" in refused(tmp_path, COLUMNS, **OPTIONS)
    (folder / "_delta_log" / "00000000000000000000.json").write_text("{")
    assert "table t: orders is not a readable Delta table" in refused(tmp_path, COLUMNS, **OPTIONS)


def test_files_outside_of_open_folders_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    table = made(folder)
    part = next(table.glob("*.parquet"))
    outside = part.rename(tmp_path / "secret.parquet")
    part.symlink_to(outside)
    for log in sorted((table / "_delta_log").glob("*.json")):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        kept = [line for line in lines if "remove" not in line]
        log.write_text("".join(json.dumps(line) + "\n" for line in kept))
    assert "outside the folders that are open" in refused(folder, COLUMNS, **OPTIONS)
