"""Does an event cost a site more because there are thousands of other queries?

    python -m benchmarks.many_queries [--quick] [--json] [--queries 1 50 500 5000]

Every query reads a source of its own. One source gets an event, the site steps, and says when it
wants to be woken, as a host asks after each step; all other queries have nothing to do.

    rows       a filter over a source with KEY
    expiry     counts per key over a source whose rows live for ten seconds
    window     counts per key over a window of ten seconds
    closing    counts per window of a second that is given when it closes
    stream     the rows of a filter as a stream, behind the clock of the site
    mixed      a fifth of each

    us/event   microseconds of ingest, step and the next time to wake up: the fastest of five
               tenths of the events
    to one     ratio to a site with a single query; 1.0 is flat

`expire` lets a row of every query go at the same time, in one step: that has to reach all of them,
and its cost is told per query.
"""

import argparse
import gc
import json
import time
from statistics import median
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from stream_engine.site.site_engine import SiteEngine
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.operators import Plan, Scan, walk_plan
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.syntax import parse_script
from streamsql.syntax.statements import CreateSource, Query
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SECOND = 1_000_000
SIZES = (1, 50, 500, 5_000)
EVENTS = 2_000
NAME = "the_source_of_this_query"

KINDS = {
    "rows": f"CREATE SOURCE {NAME} (k INTEGER, v INTEGER, ts TIMESTAMP, KEY (k));"
    f"SELECT k, v FROM {NAME} WHERE v < 50",
    "expiry": f"CREATE SOURCE {NAME} (k INTEGER, v INTEGER, ts TIMESTAMP) WITH (ttl = '10 s');"
    f"SELECT k, COUNT(*) AS n FROM {NAME} GROUP BY k",
    "window": f"CREATE SOURCE {NAME} (k INTEGER, v INTEGER, ts TIMESTAMP);"
    f"SELECT k, COUNT(*) AS n FROM {NAME} [RANGE 10 SECONDS] GROUP BY k",
    "closing": f"CREATE SOURCE {NAME} (k INTEGER, v INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts);"
    f"SELECT window_end, k, COUNT(*) AS n FROM TUMBLE({NAME}, ts, INTERVAL '1 s') "
    "GROUP BY window_start, window_end, k EMIT ON WINDOW CLOSE",
    "stream": f"CREATE SOURCE {NAME} (k INTEGER, v INTEGER, ts TIMESTAMP);"
    f"ISTREAM(SELECT k, v FROM {NAME} [RANGE 10 SECONDS] WHERE v < 50)",
}
MIXED = "mixed"
GOING = ("expiry", "window")
"""Whose rows go as time passes."""


def plan_of(kind: str) -> Plan:
    """Return a plan over the source `NAME`."""
    catalog = Catalog()
    create, query = parse_script(KINDS[kind])
    if not isinstance(create, CreateSource) or not isinstance(query, Query):
        raise TypeError(f"the script of {kind!r} is a source and a query")
    catalog.define(define(create, catalog))
    return bind_query(query, catalog).plan


def site_with(kind: str, queries: int) -> RecordedSite:
    """Return a site with so many queries; those over source 0 run as well."""
    site = RecordedSite("here", 1)
    kinds = list(KINDS) if kind == MIXED else [kind]
    bundles = [_bundle(plan_of(each)) for each in kinds]
    for number in range(queries):
        text = bundles[number % len(kinds)]
        bundle = decode_json(text.replace(NAME.encode(), f"s{number}".encode()), FragmentBundle)
        bundle = msgspec.structs.replace(bundle, query=f"q{number}")
        for node in walk_plan(bundle.fragments[0].plan):
            if isinstance(node, Scan):
                site.declare(node)
                break
        site.install(bundle)
    site.step(SECOND)
    return site


def _bundle(plan: Plan) -> bytes:
    fragment = Fragment("f1", Engine.GATEWAY, plan, ("here",))
    return encode_json(FragmentBundle("q", 1, (fragment,), plan.schema))


def event(number: int, now: int) -> SourceEvent:
    """Return a reading."""
    return SourceEvent((number % 100, number % 97, now), now)


def per_event(site: SiteEngine, events: int, done: int) -> float:
    """Return microseconds an event, after some have been done."""
    tenths = []
    for part in range(5):
        began = time.perf_counter_ns()
        for number in range(part * events // 5, (part + 1) * events // 5):
            now = 2 * SECOND + (done + number) * 1_000
            site.ingest("s0", [event(number, now)])
            site.step(now)
            site.next_wakeup()
        tenths.append((time.perf_counter_ns() - began) / (events // 5) / 1_000)
    return min(tenths)


def expire(site: SiteEngine, queries: int, done: int) -> float:
    """Let a row of every query go, after some events; return microseconds a query.

    Raises:
        AssertionError: A query was not reached.
    """
    begin = 2 * SECOND + done * 1_000
    for number in range(queries):
        site.ingest(f"s{number}", [event(number, begin)])
    site.step(begin)
    began = time.perf_counter_ns()
    given = site.step(begin + 10 * SECOND).outgoing
    took = (time.perf_counter_ns() - began) / queries / 1_000
    if len({outgoing.query for outgoing in given}) != queries:
        raise AssertionError(f"time has reached {len(given)} of {queries} queries")
    return took


def measure(kind: str, sizes: list[int], events: int, rounds: int) -> dict[str, Any]:
    """Return microseconds an event, and per query for rows that go, by number of queries."""
    times: dict[int, list[float]] = {size: [] for size in sizes}
    sites = {size: site_with(kind, size) for size in sizes}
    gc.collect()
    gc.freeze()
    for done in range(0, rounds * events, events):
        for size, site in sites.items():
            times[size].append(per_event(site, events, done))
    found = {size: median(values) for size, values in times.items()}
    first = found[sizes[0]]
    gone = {
        size: expire(site, size, rounds * events) for size, site in sites.items() if kind in GOING
    }
    gc.unfreeze()
    return {
        "us_per_event": {str(size): round(value, 2) for size, value in found.items()},
        "to_one": {str(size): round(value / first, 2) for size, value in found.items()},
        "expire_us_per_query": {str(size): round(value, 2) for size, value in gone.items()},
    }


def show(console: Console, result: dict[str, Any], sizes: list[int]) -> None:
    """Print the table."""
    table = Table("us an event (to one query)", *(f"{size} queries" for size in sizes), "expire")
    for kind, row in result["kinds"].items():
        cells = [f"{row['us_per_event'][str(s)]:.1f} ({row['to_one'][str(s)]:.2f})" for s in sizes]
        gone = row["expire_us_per_query"].values()
        table.add_row(kind, *cells, " ".join(f"{value:.1f}" for value in gone))
    console.print(table)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="up to 500 queries, one round")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--queries", type=int, nargs="+", help="numbers of queries")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS, MIXED], help="only these")
    options = parser.parse_args()
    sizes = options.queries or list(SIZES[:3] if options.quick else SIZES)
    events, rounds = (400, 1) if options.quick else (EVENTS, 3)
    kinds = options.kinds or [*KINDS, MIXED]
    result = {
        "quick": options.quick,
        "kinds": {k: measure(k, sizes, events, rounds) for k in kinds},
    }
    if options.json:
        print(json.dumps(result))
    else:
        show(Console(width=150), result, sizes)


if __name__ == "__main__":
    main()
