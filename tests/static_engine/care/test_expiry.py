"""Expiry: former snapshots and files that nothing names go; what is read or written stays."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from static_engine.care.compaction import compact
from static_engine.care.expiry import expire, named_files
from static_engine.care.workers import LocalWorkers
from static_engine.lake.lake import Lake
from tests.static_engine.care.test_compaction import filled, go_on, rows_of

NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=3)


def files_of(lake: Lake) -> set[str]:
    folder = Path(lake.table("heat").location().removeprefix("file://"))
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def test_what_compaction_left_goes_and_nothing_else(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    compact(lake.table("heat"), LocalWorkers(), go_on, 2)
    before, rows = files_of(lake), rows_of(lake)
    done = expire(lake.table("heat"), LATER, go_on)
    after = files_of(lake)
    assert done.snapshots >= 5
    assert done.files == len(before - after)
    assert done.bytes > 0
    assert len([path for path in after if path.endswith(".parquet")]) == 2
    assert after == named_files(lake.table("heat"))
    assert rows_of(lake) == rows
    assert len(lake.table("heat").metadata.snapshots) == 1


def test_what_is_young_stays(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    compact(lake.table("heat"), LocalWorkers(), go_on, 2)
    before = files_of(lake)
    assert expire(lake.table("heat"), NOW, go_on).snapshots == 0
    assert files_of(lake) == before
    # Snapshots may be old while a writer has written a file just now.
    data = next(path for path in before if path.endswith(".parquet"))
    fresh = Path(data).with_name("pipeline-7.parquet")
    fresh.write_bytes(b"not named yet")
    os.utime(fresh, (LATER.timestamp(), LATER.timestamp()))
    expire(lake.table("heat"), LATER + timedelta(minutes=50), go_on)
    assert fresh.exists()


def test_a_scan_that_was_planned_before_still_reads(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    scan = lake.plan("heat")
    compact(lake.table("heat"), LocalWorkers(), go_on, 2)
    expire(lake.table("heat"), datetime.now(UTC) + timedelta(minutes=30), go_on)
    assert sum(batch.num_rows for batch in scan.batches()) == 27
