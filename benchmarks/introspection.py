"""What it costs a site to tell of itself: throughput with nobody reading, and with a reader.

    python -m benchmarks.introspection [--quick] [--json]

One site runs a filter, a grouping and a join over one stream, fed with events as fast as it takes
them. Ways take turns, so that a machine that slows down slows all of them; figures are medians
over rounds, and ratios to `nobody reads` only mean something within one run.

    nobody reads     reports are possible; nothing is measured or made
    read, every 1 s  a query reads sys_stream: everything is measured, a report a second goes in,
                     and the query takes its rows through a filter at the site
    read, every 0.1 s likewise, ten times as often
"""

import argparse
import gc
import json
import random
import time
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from gateway.site.system_reports import SystemReports
from host.clocks import wall_clock
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.syntax import CreateSource, Query, parse_script
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SCRIPT = """
CREATE SOURCE heat (room INTEGER, celsius INTEGER, ts TIMESTAMP) WITH (ttl = '1 h');
SELECT room, celsius FROM heat WHERE celsius >= 30;
SELECT room, COUNT(*) AS n, AVG(celsius) AS mean FROM heat [ROWS 1000] GROUP BY room;
SELECT a.room FROM heat [PARTITION BY room ROWS 1] a
JOIN heat [PARTITION BY room ROWS 1] b ON a.room = b.room WHERE a.celsius > 35;
"""
READER = "SELECT site, entity, value FROM sys_stream WHERE property = 'selectivity'"
WAYS: dict[str, float | None] = {
    "nobody reads": None,
    "read, every 1 s": 1.0,
    "read, every 0.1 s": 0.1,
}
BATCH = 100
ROOMS = 500


def bundles(with_reader: bool) -> list[FragmentBundle]:
    """Return the queries of the site."""
    catalog = Catalog()
    made: list[FragmentBundle] = []
    for statement in parse_script(SCRIPT + (READER if with_reader else "")):
        if isinstance(statement, CreateSource):
            catalog.define(define(statement, catalog))
        elif isinstance(statement, Query):
            plan = bind_query(statement, catalog).plan
            fragment = Fragment("f0", Engine.BASE, plan, ("base",))
            made.append(FragmentBundle(f"q{len(made) + 1}", 1, (fragment,), plan.schema))
    return made


def events_per_second(seconds: float | None, events: list[tuple[int, int]], size: int) -> float:
    """Return how many events a site takes in a second.

    Args:
        seconds: Between two reports; None: nobody reads them.
        events: Room and degrees of each.
        size: Events of a step.
    """
    site = RecordedSite("base", 1, stopwatch=time.perf_counter_ns)
    reports = SystemReports(site, wall_clock)
    if seconds is not None:
        reports.seconds = seconds
    for bundle in bundles(with_reader=seconds is not None):
        site.install(bundle)
    site.step(wall_clock())
    gc.collect()
    began = time.perf_counter()
    for start in range(0, len(events), size):
        now = wall_clock()
        part = events[start : start + size]
        site.ingest("heat", [SourceEvent((room, degrees, now), now) for room, degrees in part])
        reports.publish(time.monotonic())
        site.step(now)
    took = time.perf_counter() - began
    if seconds is not None and reports.count < took / seconds / 2:
        raise RuntimeError(f"{reports.count} reports in {took:.1f} s: they were not made")
    return len(events) / took


def measured(rounds: int, count: int) -> list[dict[str, Any]]:
    """Return a row per size of step and way."""
    rng = random.Random(7)
    events = [(rng.randrange(ROOMS), rng.randrange(40)) for _ in range(count)]
    rows: list[dict[str, Any]] = []
    for size in (1, BATCH):
        part = events if size > 1 else events[: count // 4]
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, seconds in WAYS.items():
                found[way].append(events_per_second(seconds, part, size))
        still = median(found["nobody reads"])
        rows.extend(
            {"batch": size, "way": way, "events_per_s": median(f), "ratio": median(f) / still}
            for way, f in found.items()
        )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What it costs a site to tell of itself")
    parser.add_argument("--quick", action="store_true", help="a few seconds")
    parser.add_argument("--json", action="store_true", help="one object instead of a table")
    given = parser.parse_args()
    rounds, count = (1, 10_000) if given.quick else (3, 120_000)
    rows = measured(rounds, count)
    if given.json:
        print(json.dumps({"benchmark": "introspection", "rows": rows}, indent=2))
        return
    table = Table("events a step", "way", "events/s", "ratio")
    for row in rows:
        table.add_row(
            str(row["batch"]), row["way"], f"{row['events_per_s']:,.0f}", f"{row['ratio']:.2f}"
        )
    Console().print(table)


if __name__ == "__main__":
    main()
