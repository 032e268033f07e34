"""Care of a lake as a whole: what is asked and what is due is done; what goes wrong is said."""

from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from static_engine.care.care_jobs import JobBook
from static_engine.care.lake_care import LakeCare
from static_engine.care.rollups import ROLLUPS
from static_engine.care.workers import LocalWorkers
from static_engine.lake.lake import Lake
from static_engine.lake.lake_commits import add_batch
from static_engine.lake.lake_errors import LakeError
from static_engine.lake.message_tables import MESSAGE_SCHEMA, SystemTable, ensure_system
from streamsql.catalog.keep_options import DAY
from streamsql.data.events import SourceEvent
from streamsql.data.types import EARLIEST, LATEST
from streamsql.wire.messages import KeptSource
from streamsql.wire.stored_tables.lake_messages import (
    ExportFormat,
    JobState,
    LakeJob,
    LakeRequest,
    LakeTask,
)
from tests.static_engine.care.test_compaction import HEAT, NOON, SECOND, filled, rows_of
from tests.static_engine.lake.lake_rows import keep, lake_in


def care_of(lake: Lake, folder: Path, now: int = NOON) -> LakeCare:
    return LakeCare(
        lake, LocalWorkers, folder / "exports", lambda: now, JobBook(lambda: now, "job-1")
    )


def asked(care: LakeCare, task: LakeTask, **more: object) -> LakeJob:
    request = LakeRequest("0123456789abcdef", 1, task, **more)  # type: ignore[arg-type]
    job, run = care.order(request)
    care.run(job, run)
    return care.jobs.all()[-1]


def test_status_says_what_there_is(tmp_path: Path) -> None:
    care = care_of(filled(tmp_path), tmp_path)
    care.sources = {"heat": KeptSource("heat", "30 days", "1 h")}
    tables, more = care.tables()
    (heat,) = [table for table in tables if table.namespace == "readings"]
    assert (heat.name, heat.rows, heat.files, heat.small_files, more) == ("heat", 27, 9, 9, 0)
    assert (heat.first, heat.last) == (NOON - DAY + SECOND * 0 + 1, NOON + 3 * SECOND + 4)
    assert (heat.keep, heat.rollups, heat.problem) == ("30 days", ("1 h",), "")
    assert [(column.name, column.type) for column in heat.columns][:2] == [
        ("sensor", "string"),
        ("v", "double"),
    ]


def test_what_is_asked_is_done_and_noted(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    before = rows_of(lake)
    care = care_of(lake, tmp_path)
    job = asked(care, LakeTask.COMPACT, table="heat")
    assert (job.state, job.message, job.done, job.total) == (
        JobState.DONE,
        "9 files became 2",
        1,
        1,
    )
    assert asked(care, LakeTask.EXPIRE).state == JobState.DONE
    assert rows_of(lake) == before


@pytest.mark.parametrize("form", list(ExportFormat))
def test_an_interval_is_exported(tmp_path: Path, form: ExportFormat) -> None:
    care = care_of(filled(tmp_path), tmp_path)
    job = asked(
        care, LakeTask.EXPORT, table="readings.heat", since=NOON - 60, until=NOON + 1, form=form
    )
    assert job.message.startswith("4 rows written to ")
    (file,) = (tmp_path / "exports").iterdir()
    assert str(file) in job.message
    (count,) = duckdb.execute(f"SELECT count(*) FROM '{file}'").fetchall()
    assert count == (4,)


def test_what_is_due_is_done_by_itself(tmp_path: Path) -> None:
    lake = filled(tmp_path, batches=8)
    care = care_of(lake, tmp_path, now=NOON + DAY)
    care.sources = {"heat": KeptSource("heat", "1 day", "1 h, 1 day")}
    care.pass_due(0.0)
    job = care.jobs.all()[-1]
    assert job.state == JobState.DONE
    assert "17 files became 2" in job.message
    assert "1 day roll-up of 1 days" in job.message
    assert "24 readings were kept long enough" in job.message
    assert len(lake.plan("heat").files) == 1
    assert len(lake.table("heat__1h", ROLLUPS).scan().to_arrow()) == 5
    care.pass_due(1.0)
    assert care.jobs.all()[-1] == job  # nothing to say


def test_old_messages_of_services_leave(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    readings = rows_of(lake)
    dead = ensure_system(lake, SystemTable.DEAD_LETTERS)
    for day in range(6):
        letter = {"topic": f"t{day}", "_arrived": NOON - day * DAY}
        file = tmp_path / f"dead-{day}.parquet"
        pq.write_table(pa.Table.from_pylist([letter], MESSAGE_SCHEMA), file)
        add_batch(dead, [file.as_uri()], day + 1, "test")
    care = care_of(lake, tmp_path)
    care.pass_due(0.0)
    assert len(dead.refresh().scan().to_arrow()) == 6  # nothing is said: all are kept
    care.system_keep = "2 days"
    care.pass_due(1.0)
    assert "dead_letters: 3 messages were kept long enough" in care.jobs.all()[-1].message
    assert sorted(dead.refresh().scan().to_arrow()["topic"].to_pylist()) == ["t0", "t1", "t2"]
    assert rows_of(lake) == readings
    (shown,) = [table for table in care.tables()[0] if table.namespace == "system"]
    assert (shown.keep, shown.rows) == ("2 days", 3)


def test_a_clock_that_jumps_ahead_removes_nothing(tmp_path: Path) -> None:
    lake = filled(tmp_path, batches=8)
    before, now = rows_of(lake), [NOON + DAY // 2]
    care = care_of(lake, tmp_path)
    care.clock, care.monotonic = lambda: now[0], lambda: now[0] / 1_000_000
    care.sources = {"heat": KeptSource("heat", "2 days")}
    care.pass_due(0.0)
    assert rows_of(lake) == before
    hour, year = DAY // 24, 365 * DAY
    ahead = [0]
    care.clock = lambda: now[0] + ahead[0]
    fresh = Path(lake.table("heat").location().removeprefix("file://")) / "data" / "staged.parquet"
    fresh.write_bytes(b"a writer names it in a moment")
    for _ in range(3):
        ahead[0], now[0] = year, now[0] + hour
        care.pass_due(now[0] / 1_000_000)
        assert "days ahead of what was expected" in care.jobs.all()[-1].message
        assert asked(care, LakeTask.EXPIRE).message.startswith("0 former states discarded, 0 files")
    care = care_of(lake, tmp_path)  # the service is started again, and knows what it knew
    care.clock = lambda: now[0] + year
    care.sources = {"heat": KeptSource("heat", "2 days")}
    care.pass_due(0.0)
    assert rows_of(lake) == before
    assert fresh.exists()
    now[0] += DAY
    care.monotonic = lambda: now[0] / 1_000_000
    care.pass_due(1.0)
    assert not lake.plan("heat").files  # it has gone on for a day: it is right


def test_a_reading_of_the_future_makes_no_other_old(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    before = rows_of(lake)
    heat = SourceEvent(("future", 1.0), LATEST - 1)  # the last microsecond
    keep(lake, HEAT, [heat, SourceEvent(("past", 1.0), EARLIEST)], epoch=9)
    care = care_of(lake, tmp_path, now=NOON + DAY // 2)
    care.sources = {"heat": KeptSource("heat", "2 days", "1 day")}
    care.pass_due(0.0)
    left = rows_of(lake)
    assert len(left) == len(before) + 1
    assert "1 day roll-up of 2 days" in care.jobs.all()[-1].message  # not of the year 9999
    assert not [row for row in left if "past" in row]


def test_a_damaged_table_is_said_and_the_others_have_their_turn(tmp_path: Path) -> None:
    lake = filled(tmp_path, batches=8)
    keep(lake, msgspec.structs.replace(HEAT, name="broken"), [SourceEvent(("s", 1.0), NOON)])
    for path in (tmp_path / "lake" / "readings" / "broken" / "metadata").glob("*.json"):
        path.unlink()
    care = care_of(lake, tmp_path)
    care.pass_due(0.0)
    job = care.jobs.all()[-1]
    assert job.state == JobState.DONE
    assert "broken: " in job.message
    assert "files became" in job.message
    job = asked(care, LakeTask.EXPIRE)
    assert (job.state, "broken: " in job.message) == (JobState.DONE, True)
    job = asked(care, LakeTask.COMPACT)
    assert (job.state, "broken: " in job.message) == (JobState.DONE, True)


def test_a_sample_is_the_newest_rows_and_a_plot(tmp_path: Path) -> None:
    care = care_of(filled(tmp_path), tmp_path)
    sample = care.sample(LakeRequest("a", 1, LakeTask.SAMPLE, "heat", rows=2))
    assert [row[:2] for row in sample.rows] == [("s4", 27.0), ("s2", 25.0)]
    plots = [f"{name}_{what}" for name in ("v", "hum") for what in ("min", "max", "avg")]
    assert sample.series == ("_from", "_count", *plots)
    assert sum(int(row[1] or 0) for row in sample.buckets) == 15
    assert not sample.cut


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    care = care_of(lake_in(tmp_path), tmp_path)
    for task in (LakeTask.COMPACT, LakeTask.EXPIRE, LakeTask.EXPORT):
        with pytest.raises(LakeError, match=r"no table readings\.heat"):
            care.order(LakeRequest("a", 1, task, "heat"))
    with pytest.raises(LakeError, match="no part 'secret'"):
        care.order(LakeRequest("a", 1, LakeTask.COMPACT, "secret.heat"))
    with pytest.raises(LakeError, match="no pipeline"):
        care.order(LakeRequest("a", 1, LakeTask.REPLAY))
    assert care.jobs.all() == ()


def test_a_job_that_is_cancelled_before_it_begins_does_nothing(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    care = care_of(lake, tmp_path)
    job, run = care.order(LakeRequest("a", 1, LakeTask.COMPACT))
    care.jobs.cancel(job.id)
    care.run(job, run)
    assert care.jobs.all()[-1].state == JobState.CANCELLED
    assert len(lake.plan("heat").files) == 9
