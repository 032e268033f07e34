"""Former states of a table that only grows: few stay, and no row is gone."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from static_engine.care.compaction import compact
from static_engine.care.expiry import expire
from static_engine.care.workers import LocalWorkers
from static_engine.lake import former_states
from static_engine.lake.former_states import discard_former_states
from static_engine.lake.lake import TABLE_PROPERTIES, Lake
from static_engine.lake.lake_scan import moment
from streamsql.data.events import SourceEvent
from tests.static_engine.care.test_compaction import HEAT, NOON
from tests.static_engine.lake.lake_rows import keep, lake_in


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(former_states, "NEWEST", 4)
    monkeypatch.setattr(former_states, "SLACK", 3)
    return lake_in(tmp_path)


def grown(lake: Lake, first: int, count: int) -> Table:
    """Commit a reading a time, and discard as the pipeline does."""
    for number in range(first, first + count):
        keep(lake, HEAT, [SourceEvent((f"s{number}", 20.0), NOON)], epoch=number)
        discard_former_states(lake.table("heat"))
    return lake.table("heat")


def rows_by_another(table: Table) -> int:
    files = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    with duckdb.connect() as connection:
        found = connection.execute("SELECT COUNT(*) FROM read_parquet(?)", [files]).fetchone()
    assert found is not None
    return int(found[0])


def test_states_do_not_grow_with_commits(lake: Lake) -> None:
    table = grown(lake, 1, 30)
    states = table.metadata.snapshots
    assert 4 <= len(states) <= 9  # the newest, one of each hour, and those until the next time
    assert len(table.metadata.snapshot_log) <= 9
    assert rows_by_another(table) == len(table.scan().to_arrow()) == 30
    first = min(states, key=lambda state: state.sequence_number or 0)
    assert len(table.scan(snapshot_id=first.snapshot_id).to_arrow()) == 1  # of the hour


def test_as_many_states_stay_as_metadata_files() -> None:
    assert int(TABLE_PROPERTIES["write.metadata.previous-versions-max"]) == former_states.NEWEST


def test_what_a_compaction_took_away_can_be_read_on(lake: Lake) -> None:
    table = grown(lake, 1, 3)
    before = table.current_snapshot()
    assert before is not None
    compact(table, LocalWorkers(), lambda _done, _total: True, 2)
    table = grown(lake, 4, 30)
    assert before.snapshot_id in {state.snapshot_id for state in table.metadata.snapshots}
    assert len(table.metadata.snapshots) <= 12
    expire(table, moment(NOON), lambda _done, _total: True)
    assert len(table.scan(snapshot_id=before.snapshot_id).to_arrow()) == 3
    assert rows_by_another(table) == 33


def test_a_state_with_a_tag_stays_and_the_others_go(lake: Lake) -> None:
    table = grown(lake, 1, 3)
    tagged = table.current_snapshot()
    assert tagged is not None
    table.manage_snapshots().create_tag(tagged.snapshot_id, "audited").commit()
    table = grown(lake, 4, 30)
    assert tagged.snapshot_id in {state.snapshot_id for state in table.metadata.snapshots}
    assert len(table.metadata.snapshots) <= 12
    assert rows_by_another(table) == 33


def test_states_that_are_discarded_meanwhile_are_no_error(lake: Lake) -> None:
    for number in range(1, 12):
        keep(lake, HEAT, [SourceEvent((f"s{number}", 20.0), NOON)], epoch=number)
    table, other = lake.table("heat"), lake.table("heat")
    first = table.metadata.snapshots[1].snapshot_id
    other.maintenance.expire_snapshots().by_ids([first]).commit()
    assert discard_former_states(table) == 0
    assert discard_former_states(lake.table("heat")) >= 3
    assert rows_by_another(lake.table("heat")) == 11


def test_a_clock_that_jumps_ahead_ages_nothing() -> None:
    hour = 3_600_000
    times = [n * 1_000 for n in range(300)]
    states: list[Any] = [
        SimpleNamespace(
            snapshot_id=number,
            timestamp_ms=moment_,
            summary=SimpleNamespace(
                operation=Operation.OVERWRITE if number == 150 else Operation.APPEND
            ),
        )
        for number, moment_ in enumerate([*times, 400 * 24 * hour])
    ]
    gone = set(former_states._needless(states))
    assert len(gone) > 150
    assert not gone & {0, 149, 150}


def test_a_change_by_others_meanwhile_is_no_error(lake: Lake) -> None:
    for number in range(1, 12):
        keep(lake, HEAT, [SourceEvent((f"s{number}", 20.0), NOON)], epoch=number)
    table = lake.table("heat")
    with lake.table("heat").transaction() as change:
        change.set_properties({"somebody": "else"})
    assert discard_former_states(table) in {0, 6}
    assert len(lake.table("heat").scan().to_arrow()) == 11
    assert lake.table("heat").properties["somebody"] == "else"
