"""INSERT and DELETE on Parquet files: the schema, the compression and the metadata stay."""

import os
import stat
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from static_engine.changing import parquet_table, whole_file
from static_engine.sources import table_locations
from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from tests.static_engine.changing.changes import insert, rows_of, run, table
from tests.static_engine.changing.other_writers import touching

DESKS = "desk TEXT, room TEXT, n INTEGER"
ONE = "source = 'parquet', path = 'desks.parquet'"
MANY = "source = 'parquet', path = 'desks/'"
MICROS = 1_767_225_600_500_000


def stored(file: Path, rows: int = 3, first: int = 0, **options: Any) -> pa.Table:
    """Write a file with more columns than are declared."""
    numbers = range(first, first + rows)
    found = pa.table(
        {
            "n": pa.array([*numbers], pa.int32()),
            "Desk": pa.array([f"d{n}" for n in numbers]).dictionary_encode(),
            "list": pa.array([[n, None] for n in numbers], pa.list_(pa.int16())),
            "ROOM": pa.array(["r"] * rows, pa.large_string()),
            "raw": pa.array([b"\0"] * rows),
            "nan": pa.array([float("nan")] * rows),
        }
    ).replace_schema_metadata({"mine": "kept"})
    pq.write_table(found, file, **options)
    return found


def metadata_of(file: Path) -> pq.FileMetaData:
    return pq.read_metadata(file)


def begin(folder: Path, **options: Any) -> tuple[Path, SourceDefinition, pa.Table]:
    file = folder / "desks.parquet"
    return file, table(DESKS, ONE), stored(file, **options)


@pytest.mark.parametrize("store_schema", [True, False])
@pytest.mark.parametrize("codec", ["zstd", "none", {"n": "gzip", "raw": "snappy", "nan": "lz4"}])
def test_a_file_is_written_again_as_it_was(
    tmp_path: Path, codec: object, store_schema: bool
) -> None:
    file, definition, before = begin(
        tmp_path, compression=codec, store_schema=store_schema, use_dictionary=["n"], version="2.4"
    )
    if not store_schema:
        with pq.ParquetWriter(
            file, before.schema, compression=codec, store_schema=False, use_dictionary=["n"]
        ) as writer:
            writer.write_table(before)
            writer.add_key_value_metadata({"mine": "kept"})
    file.chmod(0o640)
    old = metadata_of(file)
    assert insert(tmp_path, definition, ("x", None, 7), (None, "é", None)) == 2
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n = 1") == 1
    new = metadata_of(file)
    assert new.schema.equals(old.schema)
    assert new.metadata[b"mine"] == b"kept"
    assert (b"ARROW:schema" in new.metadata) == store_schema
    assert new.format_version == old.format_version
    for place in range(old.row_group(0).num_columns):
        was, now = old.row_group(0).column(place), new.row_group(0).column(place)
        assert now.compression == was.compression
        assert any("DICT" in e for e in now.encodings) == any("DICT" in e for e in was.encodings)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [found.name for found in tmp_path.iterdir()] == ["desks.parquet"]
    found = pq.read_table(file)
    kept = [row for row in before.drop(["nan"]).to_pylist() if row["n"] != 1]
    assert found.drop(["nan"]).to_pylist()[:2] == kept
    assert rows_of(tmp_path, definition)[2:] == [("x", None, 7), (None, "é", None)]


def test_row_groups_stay_and_small_ones_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, definition, _ = begin(tmp_path, rows=10, row_group_size=4)
    monkeypatch.setattr(parquet_table, "_ROW_GROUP", 3)

    def groups() -> list[int]:
        found = metadata_of(file)
        return [found.row_group(n).num_rows for n in range(found.num_row_groups)]

    insert(tmp_path, definition, ("x", "r", 10))
    assert groups() == [4, 4, 3]
    insert(tmp_path, definition, ("x", "r", 11))
    assert groups() == [4, 4, 3, 1]
    run(tmp_path, definition, "DELETE FROM desks WHERE n BETWEEN 3 AND 8")
    assert groups() == [3, 2, 1]  # one has none left
    before = file.stat().st_ino
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n > 99") == 0
    assert file.stat().st_ino == before
    assert run(tmp_path, definition, "DELETE FROM desks") == 6
    assert rows_of(tmp_path, definition) == []
    insert(tmp_path, definition, ("y", "r", 1))
    assert rows_of(tmp_path, definition) == [("y", "r", 1)]


def test_values_of_every_type(tmp_path: Path) -> None:
    columns = "a BOOLEAN, b INTEGER, c DOUBLE, d TEXT, e TIMESTAMP, f INTERVAL"
    definition = table(columns, ONE)
    row: Row = (True, 7, 0.25, "é", MICROS, -7)
    zone = pa.timestamp("ns", "Europe/Vienna")
    for kinds in (
        (pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.timestamp("us"), pa.duration("us")),
        (pa.int8(), pa.uint16(), pa.float32(), pa.large_string(), zone, pa.int64()),
        (pa.string(), pa.string(), pa.string(), pa.string(), pa.string(), pa.string()),
        (pa.bool_(), pa.decimal128(9, 2), pa.decimal128(9, 2),
         pa.dictionary(pa.int8(), pa.string()), pa.int64(), pa.duration("ns")),
        (pa.bool_(), pa.float64(), pa.decimal128(30, 5), pa.string(), pa.timestamp("ms"),
         pa.int32()),
    ):  # fmt: skip
        schema = pa.schema([*zip("abcdef", kinds, strict=True)])
        pq.write_table(schema.empty_table(), tmp_path / "desks.parquet")
        insert(tmp_path, definition, row, (None,) * 6)
        insert(tmp_path, definition, (None,) * 6)
        assert rows_of(tmp_path, definition) == [row, (None,) * 6, (None,) * 6]
        assert run(tmp_path, definition, "DELETE FROM desks WHERE a") == 1
        assert pq.read_schema(tmp_path / "desks.parquet").equals(schema)


def test_days_and_old_times(tmp_path: Path) -> None:
    definition = table("d TIMESTAMP, t TIMESTAMP", ONE)
    file = tmp_path / "desks.parquet"
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    first = pa.table(
        {"d": pa.array([moment.date()]), "t": pa.array([moment], pa.timestamp("ns")),
         "x": pa.array([Decimal("1.5")], pa.decimal128(9, 2))}
    )  # fmt: skip
    pq.write_table(first, file, use_deprecated_int96_timestamps=True, store_schema=False,
                   store_decimal_as_integer=True)  # fmt: skip
    before = metadata_of(file).schema
    micros = 1_767_225_600_000_000
    insert(tmp_path, definition, (micros, micros + 1))
    assert rows_of(tmp_path, definition) == [(micros, micros), (micros, micros + 1)]
    assert metadata_of(file).schema.equals(before)
    with pytest.raises(TableError, match="a day has no time"):
        insert(tmp_path, definition, (micros + 1, None))


@pytest.mark.parametrize(
    "options",
    [
        {"version": "1.0"},
        {"data_page_version": "2.0", "write_page_index": True, "compression": "brotli"},
        {"use_dictionary": False, "column_encoding": {"n": "DELTA_BINARY_PACKED"}},
        {"use_compliant_nested_type": False},
        {"store_schema": False},
        {"sorting_columns": [pq.SortingColumn(0)]},
    ],
)
def test_files_of_other_programs(tmp_path: Path, options: dict[str, Any]) -> None:
    file = tmp_path / "desks.parquet"
    found = pa.table(
        {
            "n": pa.array([1, 2], pa.int32()),
            "s": pa.array([{"a": 1, "b": [1]}, None]),
            "l": pa.array([[1], None]),
            "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8())),
            "a.b": pa.array([b"a" * 16, None], pa.binary(16)),
            "t": pa.array([1, 2], pa.time32("ms")),
        }
    )
    pq.write_table(found, file, **options)
    before = metadata_of(file)
    definition = table("n INTEGER", ONE)
    assert insert(tmp_path, definition, (3,)) == 1
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n = 2") == 1
    assert metadata_of(file).schema.equals(before.schema)
    assert metadata_of(file).format_version == before.format_version
    empty = dict.fromkeys(found.column_names)
    assert pq.read_table(file).to_pylist() == [*found.to_pylist()[:1], {**empty, "n": 3}]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (pa.int8(), 300, "not in range"),
        (pa.decimal128(4, 0), 12_345, "precision|loss|fit"),
        (pa.bool_(), 2, "boolean|bool"),
        (pa.float64(), 2**53 + 1, "rounded"),
        (pa.date32(), 2, "cast|supported|Unsupported|day"),
        (pa.list_(pa.int8()), 2, "int8|list"),
    ],
)
def test_values_that_do_not_fit_change_nothing(
    tmp_path: Path, kind: pa.DataType, value: int, said: str
) -> None:
    file = tmp_path / "desks.parquet"
    pq.write_table(pa.schema([("n", kind)]).empty_table(), file)
    before = file.read_bytes()
    with pytest.raises(TableError, match=said):
        insert(tmp_path, table("n INTEGER", ONE), (value,))
    assert file.read_bytes() == before


def test_null_where_the_file_allows_none(tmp_path: Path) -> None:
    file = tmp_path / "desks.parquet"
    fields = [pa.field("n", pa.int8(), nullable=False), pa.field("m", pa.int8(), nullable=False)]
    pq.write_table(pa.schema(fields).empty_table(), file)
    with pytest.raises(TableError, match="column n may not be NULL"):
        insert(tmp_path, table("n INTEGER, m INTEGER", ONE), (None, 1))
    with pytest.raises(TableError, match="column m may not be NULL") as refusal:
        insert(tmp_path, table("n INTEGER", ONE), (1,))
    assert "declare" in refusal.value.hint
    insert(tmp_path, table("n INTEGER, m INTEGER", ONE), (1, 1))


def test_keys(tmp_path: Path) -> None:
    begin(tmp_path)
    definition = table("desk TEXT PRIMARY KEY, n INTEGER", ONE)
    for row in (("d1", 7), (None, 7)):
        with pytest.raises(TableError) as refusal:
            insert(tmp_path, definition, row)
        assert refusal.value.code == "duplicate_key"
    assert insert(tmp_path, definition, ("d7", 7)) == 1


def test_what_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, definition, _ = begin(tmp_path)
    before = file.read_bytes()
    file.chmod(0o440)
    with pytest.raises(TableError, match="read-only"):
        run(tmp_path, definition, "DELETE FROM desks")
    file.chmod(0o640)
    (tmp_path / "desks.txt").write_bytes(before)
    with pytest.raises(TableError, match="plain files named") as refusal:
        run(tmp_path, table(DESKS, "source = 'parquet', path = 'desks.txt'"), "DELETE FROM desks")
    assert refusal.value.code == "not_writable"
    (tmp_path / "none.parquet").write_bytes(b"PAR1")
    with pytest.raises(TableError, match="not readable Parquet"):
        run(tmp_path, table(DESKS, ONE.replace("desks", "none")), "DELETE FROM desks")
    for place, name, said in ((whole_file, "MAX_BYTES", "the max for changes is 10"),
                              (parquet_table, "MAX_UNPACKED", "unpacked")):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(place, name, 10)
            with pytest.raises(TableError, match=said):
                run(tmp_path, definition, "DELETE FROM desks")
    monkeypatch.setattr(os, "fsync", touching(file))
    with pytest.raises(TableError, match="another process"):
        insert(tmp_path, definition, ("d3", "r", 1))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TableError, match="No space left on device; it is unchanged"):
        insert(tmp_path, definition, ("d3", "r", 1))
    assert file.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_a_folder_takes_rows_in_a_file_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "desks"
    folder.mkdir()
    for number in range(3):
        stored(folder / f"part-{number}.parquet", first=number * 3, compression="gzip")
    definition = table("desk TEXT PRIMARY KEY, room TEXT, n INTEGER", MANY)
    assert insert(tmp_path, definition, ("x", "r", 9), number="one") == 1
    assert min(file.name for file in folder.iterdir()) == "inserted-one.parquet"
    assert metadata_of(folder / "inserted-one.parquet").row_group(0).column(0).compression == "GZIP"
    assert max(rows_of(tmp_path, definition)) == ("x", "r", 9)
    with pytest.raises(TableError, match="these rows were already inserted"):
        insert(tmp_path, definition, ("y", "r", 9), number="one")
    with pytest.raises(TableError, match="already"):
        insert(tmp_path, definition, ("d4", "r", 9), number="two")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(TableError, match="in 4 files") as refusal:
        run(tmp_path, definition, "DELETE FROM desks")
    assert refusal.value.code == "not_writable"
    assert refusal.value.hint
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n = 4") == 1
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n = 4") == 0
    after = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert [name for name in before if before[name] != after[name]] == ["part-1.parquet"]
    assert before.keys() == after.keys()
    assert len(rows_of(tmp_path, definition)) == 9


def test_a_folder_of_as_many_files_as_may_be_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one more it could not be read any more."""
    (tmp_path / "desks").mkdir()
    stored(tmp_path / "desks" / "a.parquet")
    definition = table(DESKS, MANY)
    monkeypatch.setattr(table_locations, "MAX_FILES", 2)
    assert insert(tmp_path, definition, ("x", "r", 9), number="one") == 1
    with pytest.raises(TableError, match="has 2 files") as refusal:
        insert(tmp_path, definition, ("y", "r", 9), number="two")
    assert refusal.value.code == "change_failed"
    assert len(rows_of(tmp_path, definition)) == 4


def test_a_link_in_a_folder_stays_one(tmp_path: Path) -> None:
    (tmp_path / "desks").mkdir()
    stored(tmp_path / "elsewhere.parquet")
    link = tmp_path / "desks" / "a.parquet"
    link.symlink_to(tmp_path / "elsewhere.parquet")
    definition = table(DESKS, MANY)
    with pytest.raises(TableError, match="is a symbolic link") as refusal:
        run(tmp_path, definition, "DELETE FROM desks")
    assert refusal.value.code == "change_failed"
    assert link.is_symlink()
    assert insert(tmp_path, definition, ("x", "r", 9)) == 1
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n = 9") == 1
    assert len(rows_of(tmp_path, definition)) == 3
