"""Managed tables as they were: versions by the time at which they were written."""

import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.history.past_readings import PastReadings
from static_engine.lake.kept_columns import PROPERTY, KeptColumns
from static_engine.lake.kept_readings import iceberg_schema
from static_engine.lake.lake import TABLES, Lake
from static_engine.lake.lake_errors import LakeError
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.history.past_plans import fixed
from tests.static_engine.lake.lake_rows import lake_in
from tests.streamsql.from_text import bound_query

COLUMNS = Schema.of(("desk", DataType.TEXT), ("room", DataType.TEXT))
DESKS = SourceDefinition("desks", SourceKind.TABLE, COLUMNS)
CATALOG = Catalog((DESKS,))


def created(lake: Lake) -> Table:
    columns, added = KeptColumns().grown(DESKS)
    schema = iceberg_schema([(each.column, each.type, each.words) for each in added])
    properties = {PROPERTY: columns.as_property()}
    return lake.catalog.create_table((TABLES, "desks"), schema=schema, properties=properties)


def written(table: Table, *rows: tuple[str, str]) -> int:
    """Replace the rows; return a time at which they were there, in microseconds."""
    names = table.schema().as_arrow().names
    values = [list(column) for column in zip(*rows, strict=True)]
    arrow = table.schema().as_arrow()
    full = [
        pa.array(values[n], arrow.field(name).type)
        if n < len(values)
        else pa.nulls(len(rows), arrow.field(name).type)
        for n, name in enumerate(names)
    ]
    rows_now = pa.Table.from_arrays(full, schema=arrow)
    if table.current_snapshot() is None:
        table.append(rows_now)
    else:
        table.overwrite(rows_now)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    moment = snapshot.timestamp_ms * 1_000 + 999
    while time.time_ns() // 1_000 <= moment:
        pass  # versions have times of their own, in milliseconds
    return moment


def asked(folder: Path, past: PastReadings, at: int) -> Delta:
    store = TableStore(Locations(folder), folder / "snapshots", snapshots=False)
    text = "SELECT desk, room FROM desks FOR SYSTEM_TIME AS OF NOW"
    plan = fixed(bound_query(text, CATALOG).plan, at)
    past.look([plan])
    return LocalExecutor(store, past).evaluate(plan)


def test_a_table_is_read_as_it_was(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    past = PastReadings(lake, lambda: 0.0)
    before = time.time_ns() // 1_000 - 1_000_000
    assert asked(tmp_path, past, before) == {}  # there is no table yet
    table = created(lake)
    first = written(table, ("d1", "r1"), ("d2", "r1"))
    second = written(table, ("d1", "r9"))
    assert asked(tmp_path, past, first) == {("d1", "r1"): 1, ("d2", "r1"): 1}
    assert asked(tmp_path, past, second) == {("d1", "r9"): 1}
    assert asked(tmp_path, past, before) == {}


def test_a_version_that_has_expired_is_an_error_that_says_the_oldest(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    table = created(lake)
    first = written(table, ("d1", "r1"))
    written(table, ("d1", "r2"))
    old = [snapshot.snapshot_id for snapshot in table.snapshots()][:-1]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    with pytest.raises(LakeError, match="its oldest version is of"):
        asked(tmp_path, PastReadings(lake), first)
