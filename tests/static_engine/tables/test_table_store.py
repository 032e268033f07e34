"""Rows that were computed: in memory while they are few, else in the file that holds them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.sources.values.conversion import arrow_schema
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

VIEW = SourceDefinition("v", SourceKind.TABLE, Schema.of(("t", DataType.TEXT)))


def written(folder: Path, texts: list[str]) -> Path:
    path = folder / "v.parquet"
    pq.write_table(pa.table({"c0": texts}).cast(arrow_schema(VIEW.schema)), path, row_group_size=7)
    return path


@pytest.mark.parametrize(
    ("texts", "in_memory"),
    [([], True), (["a"] * 100, True), (["a"] * 101, False), (["x" * 10**6] * 20, False)],
    ids=["none", "few", "many", "long"],
)
def test_few_rows_are_kept_in_memory(tmp_path: Path, texts: list[str], in_memory: bool) -> None:
    store = TableStore(Locations(tmp_path), tmp_path / "snapshots", memory_rows=100)
    path = written(tmp_path, texts)
    store.put(VIEW, path)
    kept = store.find("v")
    assert kept is not None
    assert kept.row_count == len(texts)
    assert (kept.data is not None, kept.snapshot) == (in_memory, None if in_memory else path)
    if kept.data is not None:
        assert kept.data.column(0).to_pylist() == texts


def test_more_rows_than_fit_are_refused_without_snapshots(tmp_path: Path) -> None:
    store = TableStore(Locations(tmp_path), tmp_path / "none", max_rows=3, snapshots=False)
    with pytest.raises(TableError, match="more than 3 rows"):
        store.put(VIEW, written(tmp_path, ["a"] * 4))
    assert store.find("v") is None


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    store = TableStore(Locations(tmp_path), tmp_path / "snapshots")
    with pytest.raises(TableError, match=r"table v: .*gone\.parquet"):
        store.put(VIEW, tmp_path / "gone.parquet")
