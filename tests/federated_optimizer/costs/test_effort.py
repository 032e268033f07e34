"""Effort: processor time and memory, exchanged by what a row of a join takes of both."""

from dataclasses import replace

import pytest

from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.effort import effort_of, kept_as_work
from federated_optimizer.statistics.default_facts import RENEWALS, ROW_LIFE
from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS, Kept, Micros


def test_a_kept_row_counts_as_much_as_its_usual_changes() -> None:
    rows = 1_000.0
    changes = rows * RENEWALS.value / ROW_LIFE.value
    kept = effort_of(Cost(state=rows * DEFAULT_SPEEDS.kept.join), DEFAULT_SPEEDS)
    worked = effort_of(Cost(cpu=changes * DEFAULT_SPEEDS.base.join / 1_000), DEFAULT_SPEEDS)
    assert kept.value == pytest.approx(worked.value)
    assert (kept.milliseconds, worked.kept) == (0.0, 0.0)


def test_a_megabyte_counts_by_default_as_the_words_say() -> None:
    assert 1e6 * kept_as_work(DEFAULT_SPEEDS) == pytest.approx(0.7, abs=0.05)


def test_a_slow_site_or_small_rows_make_memory_dear() -> None:
    slow = replace(DEFAULT_SPEEDS, base=Micros(join=12.0))
    small = replace(DEFAULT_SPEEDS, kept=Kept(join=70.0))
    for speeds in (slow, small):
        assert kept_as_work(speeds) == pytest.approx(2 * kept_as_work(DEFAULT_SPEEDS))
