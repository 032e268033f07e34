"""Bytes of memory of a kept row or group, by kind of operator.

Counted by Python's tracing of allocations, over states of several sizes. The rows themselves belong
to their sources, whatever queries run: only what a query adds counts.
"""

import gc
import tracemalloc
from collections.abc import Iterator
from statistics import fmean

from deploy.calibration.engine_runs import EngineRun
from deploy.calibration.rounds import Measurement, measurement
from deploy.calibration.workloads import JOIN, NOTHING, RECURSION, WINDOW, Source, Workload
from streamsql.data.events import SourceEvent

SIZES = (400, 700, 1_000, 1_300)
"""Rows; tables of a hash grow in jumps, which several sizes smooth."""
NODES = 24
"""Of a recursion over a ring, which derives a row for each pair."""
APART = 1_000
"""Microseconds between two readings: a window keeps rows by their time."""

_GROUP = Workload("SELECT mid, COUNT(*) AS n, SUM(v) AS s FROM sensor GROUP BY mid")
_ORDERS = (
    Workload("SELECT rid, MAX(v) AS m FROM sensor GROUP BY rid"),
    Workload("SELECT DISTINCT v, level FROM sensor"),
    Workload("SELECT mid, v FROM sensor ORDER BY v DESC LIMIT 5"),
)


def kept_bytes(sizes: tuple[int, ...] = SIZES) -> Iterator[Measurement]:
    """Yield the constants of memory.

    Args:
        sizes: Rows that are kept; at least two.
    """
    gc.collect()
    is_frozen = gc.get_freeze_count() > 0  # by our caller, which goes on
    if not is_frozen:
        gc.freeze()  # what was there before is not looked at again and again
    try:
        yield from _kept_bytes(sizes)
    finally:
        if not is_frozen:
            gc.unfreeze()


def _kept_bytes(sizes: tuple[int, ...]) -> Iterator[Measurement]:
    yield measurement("window_bytes", [_added(WINDOW, n) / n for n in sizes])
    yield measurement("join_bytes", [_added(JOIN, n) / (2 * n) for n in sizes])
    yield measurement("group_bytes", [_added(_GROUP, n) / n for n in sizes])
    orders = [fmean(_added(each, n) / n for each in _ORDERS) for n in sizes]
    yield measurement("order_bytes", orders)
    rings = [max(NODES * n // sizes[-1], 2) for n in sizes]
    found = [_added(RECURSION, nodes) / (nodes + nodes * nodes) for nodes in rings]
    yield measurement("recursion_bytes", found)


def _added(workload: Workload, size: int) -> float:
    """Return the bytes that a query adds to a site with so many rows."""
    return _bytes(workload, size) - _bytes(NOTHING[workload.source], size)


def _bytes(workload: Workload, size: int) -> int:
    run = EngineRun(workload, empty=True)
    events = list(_rows(workload.source, size, run.now))
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for source, event in events:
            run.gateway.ingest(source, [event])
            run.now = event.ts
        run.settle()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def _rows(source: Source, size: int, now: int) -> Iterator[tuple[str, SourceEvent]]:
    for n in range(size):
        now += APART
        if source == Source.EDGE:
            yield source, SourceEvent((f"n-{n}", f"n-{(n + 1) % size}", 1.0, now), now)
            continue
        mid, rid = f"m-{n}", f"r-{n % 20}"
        yield source, SourceEvent((mid, rid, n % 4, n / 3, now), now)
        if source == Source.SENSOR:
            yield "place", SourceEvent((mid, rid, 1.0 * n, now), now)
