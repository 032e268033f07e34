"""What do snapshots and the journal cost, and how long does a site take to come back?

    python benchmarks/restart.py [--rows 100000] [--json]

Milliseconds, median of three, of one process; every kind of state holds as many rows.

    take      a snapshot between two steps: the site stands still meanwhile
    restore   a fresh site with its queries from that snapshot, up to its first answer
    again     the same site given all events again instead: what a restart without snapshot would do
              if somebody had kept them all
    journal   microseconds an event that the journal adds, written to a file as a gateway does

How to read it: only ratios within one run mean anything; `gain` is again / restore. Every restored
site must give the answer of the one that was saved.
"""

import argparse
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from gateway.__main__ import COLLECTIONS
from gateway.state.state_files import StateFiles
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    Join,
    JoinKind,
    Plan,
    Scan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SECOND = 1_000_000
COLUMNS = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER), ("x", DataType.DOUBLE))
LOG = Scan("log", SourceKind.STREAM, COLUMNS)
KEYED = Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0,), ttl=10**15)
X = Column(2, "x", DataType.DOUBLE)
BATCH = 1_000


def _kinds() -> dict[str, Plan]:
    """Return plans by what they remember."""
    count, total = AggregateCall(F.COUNT_ALL, (), "n"), AggregateCall(F.AVG, (X,), "a")
    median_call = AggregateCall(F.PERCENTILE_CONT, (X,), "m")
    window = Window(LOG, WindowKind.RANGE, 10**9 * SECOND)
    return {
        "keyed source, filtered": Aggregate(KEYED, (1,), (count,)),
        "window over a log": Aggregate(window, (1,), (count,)),
        "groups over a log": Aggregate(LOG, (0,), (count, total)),
        "median over a log": Aggregate(LOG, (1,), (median_call,)),
        "join of a log": Aggregate(
            Join(LOG, KEYED, JoinKind.INNER, ((0, 0),), None), (1,), (count,)
        ),
    }


def _events(rows: int) -> list[SourceEvent]:
    return [SourceEvent((f"key{n}", n % 100, n * 0.37), SECOND + n) for n in range(rows)]


def _site(plan: Plan, record: Callable[[bytes], None] | None = None) -> RecordedSite:
    site = RecordedSite("here", 1) if record is None else RecordedSite("here", 1, record)
    for scan in (LOG, KEYED):
        site.declare(scan)
    fragment = Fragment("f0", Engine.GATEWAY, plan, ("here",))
    site.install(FragmentBundle("q", 1, (fragment,), plan.schema))
    return site


def _feed(site: RecordedSite, events: list[SourceEvent]) -> None:
    site.step(SECOND)
    for start in range(0, len(events), BATCH):
        part = events[start : start + BATCH]
        site.take_in({"keyed": part, "log": part})
        site.step(SECOND + start)


def _answer(site: RecordedSite) -> Delta:
    site.resync("q", "")
    answer: Delta = {}
    for outgoing in site.step(SECOND + 10**7).outgoing:
        answer.update({row.row: row.weight for row in outgoing.batch.deltas})
    return answer


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return (time.perf_counter() - began) * 1_000, result


def measure(plan: Plan, events: list[SourceEvent], rounds: int) -> dict[str, float]:
    """Return the figures of one kind of state."""
    taken, restored, again = [], [], []
    size = 0
    for _ in range(rounds):

        def read_all() -> RecordedSite:
            fresh = _site(plan)
            _feed(fresh, events)
            return fresh

        took, site = _timed(read_all)
        again.append(took)
        took, content = _timed(site.snapshot)
        taken.append(took)
        size = len(content)

        def bring_back(content: bytes = content) -> RecordedSite:
            fresh = RecordedSite("here", 2)
            for scan in (LOG, KEYED):
                fresh.declare(scan)
            result = fresh.restore(content, [], SECOND + 10**7)
            if result.unsaved:
                raise AssertionError(f"not restored: {result.unsaved}")
            fresh.step(SECOND + 10**7)
            return fresh

        took, back = _timed(bring_back)
        restored.append(took)
        if _answer(back) != _answer(site):
            raise AssertionError("the restored site gives another answer")
    return {
        "take": median(taken),
        "restore": median(restored),
        "again": median(again),
        "gain": median(again) / median(restored),
        "bytes_per_row": size / len(events),
    }


def journal_microseconds(events: list[SourceEvent], batch: int) -> float:
    """Return what an event costs in the journal, batches of so many."""
    with tempfile.TemporaryDirectory() as folder:
        files = StateFiles(Path(folder) / "state", 10**9)
        files.load()
        files.next_journal()
        costs = []
        for record in (None, files.append):
            site = RecordedSite("here", 1) if record is None else RecordedSite("here", 1, record)
            site.declare(KEYED)
            began = time.perf_counter()
            for start in range(0, len(events), batch):
                site.ingest("keyed", events[start : start + batch])
                site.step(SECOND)
            costs.append(time.perf_counter() - began)
        files.close()
    return (costs[1] - costs[0]) / len(events) * 1e6


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="rows of each kind of state")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="2,000 rows, one round")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.rounds = 2_000, 1
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    events = _events(options.rows)
    figures = {name: measure(plan, events, options.rounds) for name, plan in _kinds().items()}
    journal = {size: journal_microseconds(events, size) for size in (1, 100, 10_000)}
    if options.json:
        print(json.dumps({"rows": options.rows, "state": figures, "journal": journal}))
        return 0
    print(f"{options.rows} rows; milliseconds")
    print(f"{'state':24} {'take':>8} {'restore':>8} {'again':>8} {'gain':>6} {'bytes/row':>10}")
    for name, row in figures.items():
        print(
            f"{name:24} {row['take']:8.1f} {row['restore']:8.1f} {row['again']:8.1f} "
            f"{row['gain']:6.1f} {row['bytes_per_row']:10.0f}"
        )
    for size, cost in journal.items():
        print(f"journal, batches of {size:6}: {cost:6.2f} us an event")
    return 0


if __name__ == "__main__":
    sys.exit(main())
