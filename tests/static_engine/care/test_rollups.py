"""Roll-ups beside DuckDB on the same files, and days that are summed up again or stay."""

from pathlib import Path

import duckdb
import pyarrow as pa

from static_engine.care.retention import drop_before
from static_engine.care.rollups import ROLLUPS, roll_up
from static_engine.care.workers import LocalWorkers
from static_engine.lake.kept_readings import EVENT_TIME
from static_engine.lake.lake import Lake
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.keep_options import DAY, RollUp
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from tests.static_engine.lake.lake_rows import keep, lake_in

SECOND = 1_000_000
NOON = 20_000 * DAY + DAY // 2
CLIMATE = SourceDefinition(
    "climate",
    SourceKind.STREAM,
    Schema.of(
        ("device", DataType.TEXT),
        ("temp", DataType.DOUBLE),
        ("hits", DataType.INTEGER),
        ("on", DataType.BOOLEAN),
    ),
)
SUMS = """
SELECT time_bucket(INTERVAL '{width}', _event_time AT TIME ZONE 'UTC') AS f, device, count(*),
  count(temp), min(temp), max(temp), sum(temp), avg(temp),
  count(hits), min(hits)::DOUBLE, max(hits)::DOUBLE, sum(hits)::DOUBLE, avg(hits)
FROM readings WHERE NOT _withdrawn GROUP BY ALL ORDER BY f, device
"""


def filled(folder: Path) -> Lake:
    lake = lake_in(folder)
    events = [
        SourceEvent(
            (f"d{n % 3}", None if n % 7 == 0 else n * 0.5, n if n % 5 else None, None),
            NOON + n * 17 * SECOND - (n % 2) * DAY,
            delete=n % 11 == 0,
        )
        for n in range(200)
    ]
    events.append(SourceEvent((None, 1.0, None, True), -1))  # before 1970, of an unnamed device
    keep(lake, CLIMATE, events)
    return lake


def rolled(lake: Lake, rollup: RollUp = RollUp.MINUTE, since: int | None = None) -> int:
    return roll_up(
        lake,
        "climate",
        rollup,
        (),
        workers=LocalWorkers(),
        progress=lambda _done, _total: True,
        since=since,
    )


def sums_of(lake: Lake, rollup: RollUp) -> list[tuple[object, ...]]:
    table = lake.table(f"climate__{rollup.suffix}", ROLLUPS).scan().to_arrow()
    sorted_rows = table.sort_by([("_from", "ascending"), ("device", "ascending")])
    naive = sorted_rows.set_column(0, "_from", sorted_rows["_from"].cast(pa.timestamp("us")))
    return [tuple(row.values()) for row in naive.to_pylist()]


def expected(lake: Lake, width: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.register("readings", pa.Table.from_batches(lake.plan("climate").batches()))
        found = connection.execute(SUMS.format(width=width)).fetchall()
    return sorted(found, key=lambda row: (row[0], row[1] is None, row[1]))


def test_minutes_hours_and_days_are_as_duckdb_has_them(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    for rollup, width in (
        (RollUp.MINUTE, "1 minute"),
        (RollUp.HOUR, "1 hour"),
        (RollUp.DAY, "1 day"),
    ):
        assert rolled(lake, rollup) == 3
        assert sums_of(lake, rollup) == expected(lake, width)


def test_only_days_with_news_are_summed_up_again(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    assert rolled(lake) == 3
    assert rolled(lake) == 0
    keep(lake, CLIMATE, [SourceEvent(("d9", 3.0, 1, None), NOON)], first=1_000)
    assert rolled(lake) == 1
    assert sums_of(lake, RollUp.MINUTE) == expected(lake, "1 minute")


def test_a_column_more_is_summed_up_from_the_start(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    assert rolled(lake, RollUp.DAY) == 3
    wider = SourceDefinition(
        "climate", SourceKind.STREAM, Schema.of(("device", DataType.TEXT), ("hum", DataType.DOUBLE))
    )
    keep(lake, wider, [SourceEvent(("d1", 40.0), NOON)], first=1_000)
    assert rolled(lake, RollUp.DAY) == 3
    rows = lake.table("climate__1d", ROLLUPS).scan().to_arrow().to_pylist()
    assert {row["hum_max"] for row in rows} == {None, 40.0}


def test_sums_stay_when_their_readings_go(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    rolled(lake, RollUp.DAY)
    before = sums_of(lake, RollUp.DAY)
    today = NOON // DAY * DAY
    gone = drop_before(lake.table("climate"), today, EVENT_TIME)
    assert gone == 101
    assert {time >= today for time in _times(lake)} == {True}
    keep(lake, CLIMATE, [SourceEvent(("late", 3.0, 1, None), NOON - DAY)], first=1_000)
    assert rolled(lake, RollUp.DAY, since=today) == 0
    assert sums_of(lake, RollUp.DAY) == before


def _times(lake: Lake) -> list[int]:
    rows = pa.Table.from_batches(lake.plan("climate").batches())
    return list(rows[EVENT_TIME].cast(pa.int64()).to_pylist())
