"""The rows of a refresh on disk: all of them, or those of the refresh before."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from static_engine.evaluation.bags import Bag
from static_engine.refreshing.rows_file import Header, RowsFolder
from static_engine.sources.table_errors import TableError
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refresh_times import RefreshSchedule
from streamsql.data.delta import Delta, expand
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

VIEW = SourceDefinition(
    "busy",
    SourceKind.TABLE,
    Schema.of(
        ("room", DataType.TEXT), ("n", DataType.INTEGER), ("x", DataType.DOUBLE),
        ("at", DataType.TIMESTAMP), ("ok", DataType.BOOLEAN),
    ),
    refresh=RefreshSchedule("SELECT …", (840,)),
)  # fmt: skip
HEADER = Header(VIEW, 17, 0.5)
ROWS = st.dictionaries(
    st.tuples(
        st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False),
        st.none() | st.integers(0, 2**60),
        st.none() | st.booleans(),
    ),
    st.integers(1, 3),
    max_size=6,
)
ONE: Delta = {("a", 1, 0.5, 0, True): 1}


def batches(rows: Delta) -> Iterator[pa.RecordBatch]:
    return Bag.of_rows(VIEW.schema, rows).batches()


@given(ROWS)
def test_rows_come_back_as_they_were(rows: Delta) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = RowsFolder(Path(folder))
        files.write(HEADER, batches(rows))
        kept = files.read(VIEW)
        assert kept is not None
        assert kept.header == HEADER
        assert kept.rows == sum(rows.values())
        columns = [column.to_pylist() for column in pq.read_table(kept.path).columns]
        assert sorted(map(repr, zip(*columns, strict=True))) == sorted(map(repr, expand(rows)))


def test_any_name_has_a_file_of_its_own_inside_the_folder(tmp_path: Path) -> None:
    files = RowsFolder(tmp_path)
    names = ["a", "A", "../a", "a/b", "..", "ä" * 128, "ä" * 127 + "a", ""]
    paths = {files.path_of(name) for name in names}
    assert len(paths) == len(names)
    assert all(path.parent == tmp_path and len(path.name) < 200 for path in paths)


def test_a_full_disk_keeps_the_rows_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RowsFolder(tmp_path)
    files.write(HEADER, batches(ONE))

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(TableError, match="No space left on device") as refusal:
            files.write(HEADER, batches({("b", 2, 0.5, 0, True): 1}))
    assert "free space" in refusal.value.hint
    kept = files.read(VIEW)
    assert kept is not None
    assert pq.read_table(kept.path).column(0).to_pylist() == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == [kept.path.name]


def test_rows_of_another_definition_are_not_taken(tmp_path: Path) -> None:
    files = RowsFolder(tmp_path)
    files.write(HEADER, batches(ONE))
    schedule = RefreshSchedule("SELECT other", (840,))
    other = SourceDefinition("busy", SourceKind.TABLE, VIEW.schema, refresh=schedule)
    assert files.read(other) is None


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all" * 40])
def test_a_damaged_file_is_said(tmp_path: Path, damage: bytes) -> None:
    files = RowsFolder(tmp_path)
    files.path_of("busy").write_bytes(damage)
    with pytest.raises(TableError, match="cannot be read"):
        files.read(VIEW)


def test_a_parquet_file_of_somebody_else_is_said(tmp_path: Path) -> None:
    files = RowsFolder(tmp_path)
    kept = files.write(HEADER, batches(ONE))
    pq.write_table(pq.read_table(kept.path).replace_schema_metadata(None), kept.path)
    with pytest.raises(TableError, match="cannot be read"):
        files.read(VIEW)


def test_files_of_views_that_are_gone_are_deleted(tmp_path: Path) -> None:
    files = RowsFolder(tmp_path)
    kept = files.write(HEADER, batches(ONE))
    (tmp_path / "gone-1.parquet").write_bytes(b"x")
    (tmp_path / "busy-1.parquet.new").write_bytes(b"x")
    files.keep_only(["busy"])
    assert list(tmp_path.iterdir()) == [kept.path]
