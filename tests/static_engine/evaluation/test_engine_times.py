"""Times of engines: a floor, and the speed beyond it."""

from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from static_engine.evaluation.engine_times import LARGE_ROWS, EngineTimes
from static_engine.evaluation.evaluations import Evaluations
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.history.past_readings import PastReadings
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from tests.static_engine.rooms_table import ROOMS


class NotLocal:
    """An engine that is not this process."""

    def __init__(self, executor: LocalExecutor) -> None:
        self._executor = executor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


@given(
    st.floats(1e-4, 1.0),
    st.floats(1e3, 1e7),
    st.lists(st.integers(LARGE_ROWS, 10**7), min_size=1, max_size=20),
)
def test_a_line_of_time_over_rows_is_found(floor: float, speed: float, sizes: list[int]) -> None:
    times = EngineTimes()
    times.add(0, floor)
    assert times.figures("spark") == {"spark_floor_us": int(floor * 1e6)}
    for rows in sizes:
        times.add(rows, floor + rows / speed)
    assert times.floor == floor
    assert times.rows_a_second == pytest.approx(speed, rel=1e-3)
    assert times.figures("spark")["spark_rows_per_s"] == int(times.rows_a_second or 0)


def test_without_evaluations_nothing_is_told() -> None:
    times = EngineTimes()
    assert times.figures("local") == {}
    times.add(LARGE_ROWS, 0.5)  # all of it is the floor
    assert times.rows_a_second is None


def test_evaluations_are_timed_by_the_engine_that_did_them(tmp_path: Path) -> None:
    (tmp_path / "rooms.csv").write_text("room,seats\nr1,2\n")
    store = TableStore(Locations(tmp_path), tmp_path / "tables")
    store.load(ROOMS)
    evaluations = Evaluations(store, PastReadings(None))
    assert evaluations.figures == {}
    evaluations.evaluate(ROOMS.scan(), LocalExecutor(store), 0.0)
    assert list(evaluations.figures) == ["local_floor_us"]
    assert 0 < evaluations.figures["local_floor_us"] < 30_000_000
    evaluations.evaluate(ROOMS.scan(), cast(Any, NotLocal(LocalExecutor(store))), 0.0)
    assert list(evaluations.figures) == ["local_floor_us", "spark_floor_us"]
