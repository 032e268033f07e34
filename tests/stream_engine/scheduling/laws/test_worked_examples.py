"""The two bursts of the STREAM thesis, section 2.3, in a site.

Batches of n rows arrive at t = 0 to 6, an operator run takes one unit of time, and the figure is
what waits in all queues, in multiples of n, before the run of that unit.
"""

import pytest

from benchmarks._schedulers.worked_examples import UNITS, Burst, N
from streamsql.wire.site_settings import SchedulerKind

FIFO, GREEDY, CHAIN, TURNS = SchedulerKind

TABLE = [
    ("1", FIFO, [1.0, 1.2, 2.0, 2.2, 3.0, 3.2, 4.0], 2.4),
    ("1", GREEDY, [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2], 1.6),
    ("1", CHAIN, [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2], 1.6),
    ("2", FIFO, [1.0, 1.9, 2.9, 3.0, 3.9, 4.9, 5.0], 3.2),
    ("2", GREEDY, [1.0, 1.9, 2.8, 3.7, 4.6, 5.5, 6.4], 3.7),
    ("2", CHAIN, [1.0, 1.9, 2.9, 3.0, 3.9, 4.9, 5.0], 3.2),
]


@pytest.mark.parametrize(("example", "scheduler", "queued", "average"), TABLE)
def test_the_queues_of_the_thesis(
    example: str, scheduler: SchedulerKind, queued: list[float], average: float
) -> None:
    burst = Burst(example, scheduler)
    assert [burst.unit() for _ in range(UNITS)] == queued
    assert burst.average() == pytest.approx(sum(queued) / UNITS)
    assert round(burst.average(), 1) == average
    assert burst.site.queues.peak_rows == max(queued) * N


@pytest.mark.parametrize("example", ["1", "2"])
def test_chain_is_as_good_as_the_better_one(example: str) -> None:
    averages = {}
    for scheduler in SchedulerKind:
        burst = Burst(example, scheduler)
        for _ in range(UNITS):
            burst.unit()
        averages[scheduler] = burst.average()
    assert averages[CHAIN] == min(averages[FIFO], averages[GREEDY])


@pytest.mark.parametrize("scheduler", SchedulerKind)
def test_the_queues_are_empty_when_all_work_is_done(scheduler: SchedulerKind) -> None:
    burst = Burst("1", scheduler)
    waiting = [burst.unit(arrives=unit < UNITS) for unit in range(2 * UNITS + 1)]
    assert all(rows > 0 for rows in waiting[:-1])
    assert waiting[-1] == 0
    assert burst.site.next_wakeup() is None
