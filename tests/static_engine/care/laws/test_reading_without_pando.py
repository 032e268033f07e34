"""The lake without Pando: pyiceberg knows but the catalog's address, DuckDB the planned files."""

from pathlib import Path

import duckdb
from pyiceberg.catalog.sql import SqlCatalog

from static_engine.care.compaction import compact
from static_engine.care.workers import LocalWorkers
from streamsql.data.events import SourceEvent
from tests.static_engine.care.test_compaction import HEAT, NOON, filled, go_on
from tests.static_engine.lake.lake_rows import keep


def test_pyiceberg_and_duckdb_read_what_is_kept(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    compact(lake.table("heat"), LocalWorkers(), go_on, 2)
    keep(lake, HEAT, [SourceEvent(("after", 1.5), NOON)], first=2_000)
    del lake
    catalog = SqlCatalog(
        "pando",
        uri=f"sqlite:///{tmp_path / 'catalog.db'}",
        warehouse=(tmp_path / "lake").as_uri(),
    )
    table = catalog.load_table("readings.heat")
    rows = table.scan("_event_time >= '2024-10-04T00:00:00+00:00'").to_arrow().to_pylist()
    assert len(rows) == 16
    assert {row["hum"] for row in rows} == {None, 0, 1, 2}
    assert [row["v"] for row in rows if row["sensor"] == "after"] == [1.5]
    catalog.close()
    with table.scan().to_duckdb("heat") as connection:
        grouped = "SELECT sensor, count(*) FROM heat WHERE NOT _withdrawn GROUP BY ALL ORDER BY ALL"
        found = connection.execute(grouped).fetchall()
    expected = [("after", 1), ("s0", 4), ("s1", 4), ("s2", 4), ("s4", 4), ("s5", 4), ("s9", 3)]
    assert found == expected
    files = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    (count,) = duckdb.execute(
        "SELECT count(*), max(v) FROM read_parquet(?, union_by_name = true)", [files]
    ).fetchall()
    assert count == (28, 28.0)
