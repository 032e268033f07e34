"""Scans of the past: their versions, their columns, and what cannot be read."""

from pathlib import Path

import pytest

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import EvaluationError
from static_engine.history.past_readings import NoLakeError, PastReadings
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.errors import DeploymentError
from streamsql.history.past_plans import fixed
from tests.static_engine.lake.lake_rows import keep, lake_in
from tests.streamsql.from_text import bound_query, catalog_of

DAY = 86_400_000_000
NOON = 20_000 * DAY + DAY // 2
CLIMATE = "CREATE SOURCE climate (room TEXT, celsius DOUBLE, ts TIMESTAMP)"
HOUR = "SELECT room FROM climate FOR SYSTEM_TIME FROM NOW - INTERVAL '1 h' TO NOW"


def defined(text: str = CLIMATE) -> SourceDefinition:
    found = catalog_of(text).find("climate")
    assert isinstance(found, SourceDefinition)
    return found


def plan_of(text: str, definition: str = CLIMATE) -> Plan:
    return fixed(bound_query(text, catalog_of(definition)).plan, NOON)


def executor(folder: Path, past: PastReadings, **bounds: int) -> LocalExecutor:
    store = TableStore(Locations(folder), folder / "snapshots", snapshots=False)
    return LocalExecutor(store, past, **bounds)


def reading(minutes: int, room: str = "r1") -> SourceEvent:
    ts = NOON + minutes * 60_000_000
    return SourceEvent((room, 20.0, ts), ts)


def test_only_new_rows_of_its_interval_make_another_version(tmp_path: Path) -> None:
    lake, plan = lake_in(tmp_path), plan_of(HOUR)
    past = PastReadings(lake, lambda: 0.0)
    keep(lake, defined(), [reading(-30)])
    assert past.versions(plan) is None  # not looked at yet
    past.look([plan])
    first = past.versions(plan)
    assert first is not None
    keep(lake, defined(), [reading(-2 * 24 * 60), reading(60)], first=1)
    past.look([plan])
    assert past.versions(plan) == first
    keep(lake, defined(), [reading(-10, "late")], first=3)
    past.look([plan])
    assert past.versions(plan) != first
    assert executor(tmp_path, past).evaluate(plan) == {("r1",): 1, ("late",): 1}


def test_a_column_of_another_unit_or_type_is_null_in_the_past(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, defined(), [reading(-1)])
    kelvin = CLIMATE.replace("celsius DOUBLE", "celsius DOUBLE UNIT 'K', lux INTEGER")
    keep(
        lake,
        defined(kelvin + " WITH (connector = 'mqtt', topic = 't/{room}')"),
        [SourceEvent(("r2", 293.0, 7, NOON), NOON)],
        first=1,
    )
    text = "SELECT room, celsius, lux FROM climate FOR SYSTEM_TIME ALL"
    source = kelvin + " WITH (connector = 'mqtt', topic = 't/{room}')"
    found = executor(tmp_path, PastReadings(lake)).evaluate(plan_of(text, source))
    assert found == {("r1", None, None): 1, ("r2", 293.0, 7): 1}
    before = "SELECT room, celsius FROM climate FOR SYSTEM_TIME ALL"
    found = executor(tmp_path, PastReadings(lake)).evaluate(plan_of(before))
    assert found == {("r1", 20.0): 1, ("r2", None): 1}


def test_more_rows_than_this_process_reads_are_refused_in_words(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, defined(), [reading(-n) for n in range(1, 6)])
    few = executor(tmp_path, PastReadings(lake), max_past_rows=4)
    with pytest.raises(EvaluationError, match="at most 4 rows of the past") as refused:
        few.evaluate(plan_of(HOUR))
    assert "shorter time" in refused.value.hint


def test_where_nothing_is_kept_the_reason_is_said(tmp_path: Path) -> None:
    plan, past = plan_of(HOUR), PastReadings(None)
    past.look([plan])
    assert past.versions(plan) is None
    assert isinstance(past.problem(plan), NoLakeError)
    with pytest.raises(NoLakeError):
        executor(tmp_path, past).evaluate(plan)


def test_a_source_without_a_reading_has_an_empty_past_until_the_first_comes(
    tmp_path: Path,
) -> None:
    lake = lake_in(tmp_path)
    now = [0.0]
    plan, past = plan_of(HOUR), PastReadings(lake, lambda: now[0])
    past.look([plan])
    before = past.versions(plan)
    assert past.problem(plan) is None
    assert executor(tmp_path, past).evaluate(plan) == {}
    keep(lake, defined(), [reading(-1)])
    now[0] = 60.0
    past.look([plan])
    assert past.versions(plan) not in (None, before)
    assert len(executor(tmp_path, past).evaluate(plan)) == 1


def test_files_that_are_gone_are_an_error_that_names_the_source(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    keep(lake, defined(), [reading(-1)])
    for file in (tmp_path / "lake").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(DeploymentError, match="cannot read the past of climate"):
        executor(tmp_path, PastReadings(lake)).evaluate(plan_of(HOUR))


def test_a_lake_that_takes_long_to_look_at_is_looked_at_less_often(tmp_path: Path) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.5  # each look takes half a second
        return now[0]

    lake, plan = lake_in(tmp_path), plan_of(HOUR)
    past = PastReadings(lake, clock)
    keep(lake, defined(), [reading(-30)])
    past.look([plan])
    first = past.versions(plan)
    keep(lake, defined(), [reading(-20)], first=1)
    past.look([plan])
    assert past.versions(plan) == first
    now[0] += 11.0
    past.look([plan])
    assert past.versions(plan) != first


def test_a_catalog_that_does_not_answer_is_a_problem_and_not_the_end(tmp_path: Path) -> None:
    lake, plan = lake_in(tmp_path), plan_of(HOUR)
    past = PastReadings(lake)
    keep(lake, defined(), [reading(-30)])
    lake.catalog.destroy_tables()
    past.look([plan])
    assert "cannot read the lake" in str(past.problem(plan))


def test_an_hour_of_a_day_likely_has_its_share_of_the_rows(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    past = PastReadings(lake)
    keep(lake, defined(), [reading(-15 * n) for n in range(48)])
    plan = plan_of(HOUR)
    past.look([plan])
    assert (past.rows(plan), past.likely_rows(plan)) == (48, 2)
    plan = plan_of("SELECT room FROM climate FOR SYSTEM_TIME ALL")
    past.look([plan])
    assert past.likely_rows(plan) == past.rows(plan) == 48
