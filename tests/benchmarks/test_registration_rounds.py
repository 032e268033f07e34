"""A configuration that has used up its time is planned on, and its size is counted."""

import pytest

from benchmarks._argus.arriving_rows import Sizes
from benchmarks._argus.query_sets import SETS
from benchmarks._argus.registration_rounds import Protocol, batches_needed, rounds

NAMES = ("off", "all")


@pytest.mark.timeout(120)
def test_sizes_without_rows_are_those_with_rows() -> None:
    texts = [each.text for each in SETS["med"].queries()[:6]]
    told: list[str] = []

    def measured(budget: float) -> list[dict[str, dict[str, float]]]:
        protocol = Protocol(2, 1, budget, 1_000.0, 2, duckdb=True)
        stream = SETS["med"].stream(Sizes(400, 10, batches_needed(len(texts), protocol)), 3)
        found = rounds(stream, texts, NAMES, protocol, told.append)
        return [one["configurations"] for one in found]

    running, stopped = measured(1_000.0), measured(0.0)
    for name in NAMES:
        assert [one[name]["weighted"] for one in stopped] == [
            one[name]["weighted"] for one in running
        ]
        assert all("update_ms_median" in one[name] for one in running)
        assert ["update_ms_median" in one[name] for one in stopped] == [True, False, False]
    assert "off: stopped at 2 queries; from here on it only plans" in told
    assert "6 queries: the rows of DuckDB" in told  # of the run with time enough
    assert "2 queries: the rows of DuckDB" in told  # before the last one stops


def test_one_that_has_no_time_for_planning_ends() -> None:
    texts = [each.text for each in SETS["med"].queries()[:4]]
    protocol = Protocol(2, 1, 0.0, 0.0, 1, duckdb=False)
    stream = SETS["med"].stream(Sizes(200, 10, 2), 3)
    told: list[str] = []
    found = rounds(stream, texts, ("off",), protocol, told.append)
    assert [one["queries"] for one in found] == [2]
    assert told[-1] == "off: plans no more after 2 queries"
