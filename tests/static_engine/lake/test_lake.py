"""The lake: what is kept is read again, once, in the columns that a definition means."""

import threading
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pytest

from static_engine.lake.kept_readings import EVENT_TIME
from static_engine.lake.lake import Lake
from static_engine.lake.lake_errors import LakeError, NotKeptError
from static_engine.lake.lake_scan import LakeScan
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.readings_files import write_readings
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from tests.static_engine.lake.lake_rows import ORIGIN, keep, lake_in

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOON = 20_000 * DAY + DAY // 2
HEAT = SourceDefinition(
    "heat",
    SourceKind.STREAM,
    Schema.of(
        ("sensor", DataType.TEXT),
        ("v", DataType.DOUBLE),
        ("n", DataType.INTEGER),
        ("on", DataType.BOOLEAN),
        ("at", DataType.TIMESTAMP),
        ("span", DataType.INTERVAL),
    ),
    time_column=4,
)


def reading(ts: int, v: float | None = 20.5, *, delete: bool = False) -> SourceEvent:
    return SourceEvent(("s1", v, 2**60, True, ts, -5), ts, delete)


def rows_of(scan: LakeScan) -> list[dict[str, object]]:
    return [row for batch in scan.batches() for row in batch.to_pylist()]


def times_in(scan: LakeScan) -> list[int]:
    batches = [batch.column(EVENT_TIME).cast("int64").to_pylist() for batch in scan.batches()]
    return sorted(time for batch in batches for time in batch)


def test_what_is_kept_is_read_again_as_it_was(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, HEAT, [reading(NOON), reading(NOON + 1, None, delete=True)], epoch=7, first=3)
    assert lake.kept_sources() == ["heat"]
    rows = sorted(rows_of(lake.plan("heat")), key=lambda row: str(row["_seq"]))
    assert [(r["v"], r["n"], r["span"], r["_seq"], r["_withdrawn"]) for r in rows] == [
        (20.5, 2**60, -5, 3, False),
        (None, 2**60, -5, 4, True),
    ]
    assert {r["_gateway"] for r in rows} == {"gw-1"}
    assert times_in(lake.plan("heat")) == [NOON, NOON + 1]


def test_an_interval_reads_the_files_of_its_days_and_no_row_outside(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    for day in range(-3, 4):  # each its own batch, also before 1970
        keep(lake, HEAT, [reading(day * DAY + hour * 3600 * SECOND) for hour in (0, 12, 23)])
    scan = lake.plan("heat", -DAY, DAY, [EVENT_TIME])
    assert len(scan.files) == 2
    assert scan.rows == 6
    assert scan.bytes > 0
    hours = [-24, -12, -1, 0, 12, 23]
    assert times_in(scan) == [hour * 3600 * SECOND for hour in hours]
    assert rows_of(lake.plan("heat", 1, 2)) == []


def test_a_version_changes_with_the_files_of_its_interval_only(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, HEAT, [reading(NOON)])
    before = lake.plan("heat", NOON - DAY, NOON + DAY).version
    keep(lake, HEAT, [reading(NOON + 5 * DAY)])
    assert lake.plan("heat", NOON - DAY, NOON + DAY).version == before
    keep(lake, HEAT, [reading(NOON - 1)])
    assert lake.plan("heat", NOON - DAY, NOON + DAY).version != before


def test_a_repeated_batch_changes_nothing(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, HEAT, [reading(NOON)])
    table = lake.table("heat")
    again = write_readings(_all(lake), table.location(), "again", table.io)
    assert not lake.commit(table, again, 0, ORIGIN)
    assert lake.plan("heat").rows == 1
    assert lake.commit(table, again, 0, "another origin")
    assert lake.commit(table, [], 1, ORIGIN)
    assert lake.last_batch(table, ORIGIN) == 1
    assert lake.plan("heat").rows == 2


def test_two_that_commit_at_once_both_succeed(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, HEAT, [reading(NOON)])
    table = lake.table("heat")
    rows = _all(lake)
    files = {
        name: [write_readings(rows, table.location(), f"{name}{n}", table.io) for n in range(5)]
        for name in ("a", "b")
    }

    def commit(name: str) -> None:
        mine = lake_in(tmp_path)
        for number, each in enumerate(files[name]):
            assert mine.commit(mine.table("heat"), each, number, name)

    threads = [threading.Thread(target=commit, args=(name,)) for name in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lake.plan("heat").rows == 11


def test_a_definition_that_changes_adds_columns_and_mixes_none(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, HEAT, [reading(NOON)])
    changed = SourceDefinition(
        "heat",
        SourceKind.STREAM,
        Schema.of(("v", DataType.TEXT), ("room", DataType.TEXT), ("_seq", DataType.TEXT)),
    )
    _, words = lake.ensure(changed)
    assert words == [
        "column v is now v TEXT; it is kept as v__2",
        "column room is new",
        "column _seq is new",
    ]
    assert lake.ensure(changed)[1] == []
    keep(lake, changed, [SourceEvent(("warm", "L1", "x"), NOON + 1)])
    keep(lake, HEAT, [reading(NOON + 2, 1.5)])
    kept = lake.columns_of(lake.table("heat"))
    assert [c.column for c in kept.of(changed) if c is not None] == ["v__2", "room", "_seq__2"]
    rows = sorted(rows_of(lake.plan("heat")), key=lambda row: str(row[EVENT_TIME]))
    assert [(r["v"], r["v__2"], r["room"], r["_seq__2"]) for r in rows] == [
        (20.5, None, None, None),
        (None, "warm", "L1", "x"),
        (1.5, None, None, None),
    ]


@pytest.mark.parametrize("name", ["../../out", "a/b", "..", "x y%2F", "Heat", "heat"])
def test_a_table_of_any_name_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    lake = lake_in(tmp_path)
    named = msgspec.structs.replace(HEAT, name=name)
    keep(lake, named, [reading(NOON)])
    assert lake.kept_sources() == [name]
    assert lake.plan(name).rows == 1
    for path in lake.plan(name).paths:
        real = Path(path.removeprefix("file://")).resolve()
        assert real.is_relative_to(tmp_path / "lake" / "readings")
        assert real.parent.parent.parent.parent == tmp_path / "lake" / "readings"


def test_files_are_plain_parquet_for_others(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, HEAT, [reading(NOON + n * DAY, float(n)) for n in range(3)])
    paths = [path.removeprefix("file://") for path in lake.plan("heat", NOON + DAY).paths]
    with duckdb.connect() as other:
        found = other.execute("SELECT sum(v), count(*) FROM read_parquet(?)", [paths]).fetchall()
    assert found == [(3.0, 2)]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    with pytest.raises(NotKeptError, match=r"no table readings\.seat"):
        lake.plan("seat")
    with pytest.raises(LakeError, match="cannot open the lake's catalog"):
        Lake(LakeSettings(f"sqlite:///{tmp_path}/missing/catalog.db", str(tmp_path)))
    for url in ("mysql://host/db", "nothing"):
        with pytest.raises(DeploymentError, match="no address of SQLite or PostgreSQL"):
            Lake(LakeSettings(url, str(tmp_path)))


def _all(lake: Lake) -> pa.Table:
    return pa.Table.from_batches(lake.plan("heat").batches())
