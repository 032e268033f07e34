"""Compaction: fewer files, the same rows, whatever else happens to the table meanwhile."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.table import Transaction

from static_engine.care import compaction, file_work
from static_engine.care.compaction import compact, groups_of
from static_engine.care.workers import LocalWorkers, Work
from static_engine.lake.file_swaps import swap_files
from static_engine.lake.lake import Lake
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from tests.static_engine.lake.lake_rows import keep, lake_in

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOON = 20_000 * DAY + DAY // 2
HEAT = SourceDefinition(
    "heat", SourceKind.STREAM, Schema.of(("sensor", DataType.TEXT), ("v", DataType.DOUBLE))
)
WIDER = SourceDefinition(
    "heat",
    SourceKind.STREAM,
    Schema.of(("sensor", DataType.TEXT), ("v", DataType.DOUBLE), ("hum", DataType.INTEGER)),
)


def filled(folder: Path, batches: int = 4) -> Lake:
    """A lake with two days; in the last batch the source has a column more."""
    lake = lake_in(folder)
    first = 0
    for batch in range(batches):
        at = NOON + batch * SECOND
        events = [
            SourceEvent((f"s{n}", 20.0 + n + batch), at + n - (n % 2) * DAY, delete=n == 3)
            for n in range(6)
        ]
        first = keep(lake, HEAT, events, first=first)
    late = [SourceEvent(("s9", None, batch), NOON - batch) for batch in range(3)]
    keep(lake, WIDER, late, first=first)
    return lake


def rows_of(lake: Lake) -> list[tuple[object, ...]]:
    """All rows, by DuckDB from the files that pyiceberg plans."""
    paths = [path.removeprefix("file://") for path in lake.plan("heat").paths]
    columns = "sensor, v, hum, _gateway, _seq, _place, epoch_us(_event_time), _withdrawn"
    query = f"SELECT {columns} FROM read_parquet(?, union_by_name = true) ORDER BY ALL"
    return duckdb.execute(query, [paths]).fetchall()


def go_on(_done: int, _total: int) -> bool:
    return True


def test_a_file_a_day_stays_and_every_row(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    before = rows_of(lake)
    assert len(before) == 27
    assert len(lake.plan("heat").files) == 9
    done = compact(lake.table("heat"), LocalWorkers(), go_on, 2)
    assert (done.groups, done.files_before, done.files_after) == (2, 9, 2)
    assert len(lake.plan("heat").files) == 2
    assert rows_of(lake) == before
    since, until = NOON - DAY, NOON - DAY + 5 * SECOND
    files = lake.plan("heat", since, until).files
    assert len(files) == 1  # statistics still tell days apart
    (times,) = duckdb.execute(
        f"SELECT list(_event_time) FROM '{files[0].path.removeprefix('file://')}'"
    ).fetchall()[0]
    assert times == sorted(times)
    assert groups_of(lake.table("heat"), 2) == []


def test_few_files_wait_for_more(tmp_path: Path) -> None:
    lake = filled(tmp_path, batches=3)
    assert groups_of(lake.table("heat")) == []
    assert [len(group.files) for group in groups_of(lake.table("heat"), 2)] == [3, 4]


class Meanwhile(LocalWorkers):
    """Lets something happen to the table between the first rewriting and its commit."""

    def __init__(self, event: Callable[[], None]) -> None:
        self._event = event

    def run(self, work: Work, tasks: Sequence[bytes], name: str) -> Iterator[bytes]:
        outcomes = list(super().run(work, tasks, name))
        self._event()
        yield from outcomes


def test_rows_that_come_meanwhile_are_kept(tmp_path: Path) -> None:
    lake = filled(tmp_path)

    def arrive() -> None:
        keep(lake, WIDER, [SourceEvent(("new", 1.0, 1), NOON)], first=1_000)

    before = rows_of(lake)
    done = compact(lake.table("heat"), Meanwhile(arrive), go_on, 2)
    assert (done.groups, done.overtaken) == (2, 0)
    after = rows_of(lake)
    assert [row for row in after if row[0] != "new"] == before
    assert len(after) == len(before) + 1


def test_a_batch_between_looking_and_putting_in_place_is_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = filled(tmp_path)
    before = rows_of(lake)
    batches = iter(range(3))

    def swap_after_a_batch(transaction: Transaction, *parts: Any) -> None:
        number = next(batches, None)
        if number is not None:
            late = [SourceEvent((f"late{number}", 1.0, 1), NOON)]
            keep(lake_in(tmp_path), WIDER, late, first=1_000 + number)
        swap_files(transaction, *parts)

    monkeypatch.setattr(compaction, "swap_files", swap_after_a_batch)
    done = compact(lake.table("heat"), LocalWorkers(), go_on, 2)
    assert (done.groups, done.overtaken) == (2, 0)
    after = rows_of(lake)
    assert [row for row in after if not str(row[0]).startswith("late")] == before
    assert len(after) == len(before) + 3


def test_files_that_went_meanwhile_do_not_come_back(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    done = compact(
        lake.table("heat"),
        Meanwhile(lambda: lake.table("heat").delete("sensor IS NOT NULL")),
        go_on,
        2,
    )
    assert (done.groups, done.overtaken) == (0, 2)
    assert lake.plan("heat").rows == 0
    left = {path.name for path in tmp_path.rglob("compacted-*.parquet")}
    assert not left


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    before = rows_of(lake)
    done = compact(lake.table("heat"), LocalWorkers(), lambda done, _total: done < 1, 2)
    assert done.groups == 1
    assert rows_of(lake) == before


def test_what_is_large_in_memory_is_put_together_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of one letter takes a few bytes on disk."""
    lake = lake_in(tmp_path)
    first = 0
    for batch in range(8):
        events = [SourceEvent(("x" * 100_000, float(batch)), NOON + batch)]
        first = keep(lake, HEAT, events, first=first)
    before = sorted(lake.table("heat").scan(selected_fields=("v",)).to_arrow()["v"].to_pylist())
    monkeypatch.setattr(file_work, "MAX_PLAIN_BYTES", 250_000)
    done = compact(lake.table("heat"), LocalWorkers(), go_on, 2)
    assert (done.files_before, done.files_after) == (8, 4)
    after = sorted(lake.table("heat").scan(selected_fields=("v",)).to_arrow()["v"].to_pylist())
    assert after == before
    monkeypatch.setattr(file_work, "MAX_PLAIN_BYTES", 90_000)
    assert compact(lake.table("heat"), LocalWorkers(), go_on, 2).files_before == 0
