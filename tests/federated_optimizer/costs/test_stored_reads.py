"""Time of the engines of stored tables."""

from dataclasses import replace

import pytest

from federated_optimizer.costs.stored_reads import looked_up, read_whole
from federated_optimizer.statistics.planning_statistics import Statistics
from federated_optimizer.statistics.speeds import Evaluating, Speeds

SPEEDS = Speeds(local=Evaluating(0.01, 1_000.0), spark=Evaluating(0.5, 100_000.0))
KNOWN = Statistics(local_rows=10_000, speeds=SPEEDS)


def test_small_tables_are_read_locally_and_large_ones_by_spark() -> None:
    assert read_whole(10_000, KNOWN).engine == pytest.approx(1_000 * (0.01 + 10) / 3_600)
    assert read_whole(10_001, KNOWN).engine == pytest.approx(1_000 * (0.5 + 0.10001) / 3_600)
    assert read_whole(10.0, replace(KNOWN, local_rows=None)).engine > 1_000 * 0.5 / 3_600


def test_a_change_waits_for_the_rows_of_its_key() -> None:
    found = looked_up(3.0, KNOWN)
    assert (found.milliseconds, found.engine) == pytest.approx((10.0, 30.0))
    assert looked_up(3.0, replace(KNOWN, local_rows=None)).milliseconds == pytest.approx(500.0)
    assert found.bytes == 0
