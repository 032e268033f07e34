"""Tables of a database are offered with the column that likely grows."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from gateway.connectors.sql.sql_connector import SqlConnector
from streamsql.data.types import DataType
from streamsql.mapping.offers import OfferedRecord, OfferedValue
from tests.gateway.connectors.browsed import browsed
from tests.gateway.connectors.serving import in_loop

METERS = """
CREATE TABLE reading (id INTEGER PRIMARY KEY, meter TEXT, kwh REAL, at DATETIME);
INSERT INTO reading VALUES (7, 'm1', 12.5, '2026-06-01 12:00:00');
CREATE TABLE log (at DATETIME, line TEXT);
CREATE VIEW heavy AS SELECT meter, kwh FROM reading WHERE kwh > 10;
"""


@in_loop
async def test_tables_and_views_come_with_types_and_a_row(tmp_path: Path) -> None:
    file = tmp_path / "meters.db"
    with contextlib.closing(sqlite3.connect(file)) as base, base:
        base.executescript(METERS)
    records, notes = await browsed(SqlConnector(), {"url": f"sqlite:///{file}"})
    at = "2026-06-01T12:00:00"
    reading = OfferedRecord(
        "reading",
        (
            OfferedValue("id", "id", DataType.INTEGER, sample=7),
            OfferedValue("meter", "meter", DataType.TEXT, sample="m1"),
            OfferedValue("kwh", "kwh", DataType.DOUBLE, sample=12.5),
            OfferedValue("at", "at", DataType.TIMESTAMP, sample=None),
        ),
        {"table": "reading", "watermark": "id"},
    )
    by_name = {record.name: record for record in records}
    assert by_name.keys() == {"reading", "log", "heavy"}
    assert by_name["reading"].options == reading.options
    assert by_name["reading"].values[:3] == reading.values[:3]
    assert str(by_name["reading"].values[3].sample).replace(" ", "T") == at
    assert by_name["log"].options == {"table": "log", "watermark": "at"}
    assert by_name["heavy"].options == {"table": "heavy"}
    assert notes == ["heavy: no column seems to grow; name the watermark"]


@in_loop
async def test_a_database_that_is_away_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match="there is no file"):
        await browsed(SqlConnector(), {"url": f"sqlite:///{tmp_path}/none.db"})
