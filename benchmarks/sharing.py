"""What do stores that several queries share save, in memory and in time?

    python benchmarks/sharing.py [--rows 10000] [--queries 1 10 50] [--quick] [--json]

Queries over the same windows and joins that differ in what they do above them, at one site, with
sharing off and on in turn, in one process.

    same window     [RANGE w], every query with a filter of its own and counts per key
    ten sizes       [RANGE w/10] to [RANGE w], likewise
    last rows       [ROWS n], likewise
    join            two windows joined by key, every query with another condition on the pairs

    MB              what the queries hold when their windows are full (tracemalloc)
    rows            rows in windows and join sides, those in a store counted once
    us/event        time of ingest and step, by steps of 100 events, windows full (median of steps)

How to read it: only ratios within one run mean anything; `saved` is off / on. The answers of both
settings are compared.
"""

import argparse
import gc
import json
import random
import sys
import time
import tracemalloc
from statistics import median

from gateway.__main__ import COLLECTIONS
from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SiteSettings

MILLISECOND = 1_000
STEP = 100
COLUMNS = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER), ("x", DataType.DOUBLE))
LEFT, RIGHT = (Scan(name, SourceKind.STREAM, COLUMNS) for name in ("left", "right"))
N = Column(1, "n", DataType.INTEGER)
KINDS = ("same window", "ten sizes", "last rows", "join")


def plan(kind: str, number: int, rows: int) -> Plan:
    """Return the plan of a query; one event a millisecond and source fills its windows."""
    size = rows * MILLISECOND
    if kind == "join":
        sides = (Window(LEFT, WindowKind.RANGE, size), Window(RIGHT, WindowKind.RANGE, size))
        pairs = Join(*sides, JoinKind.INNER, ((0, 0),), None)
        chosen = Filter(pairs, _at_least(number))
        columns = (Column(0, "k", DataType.TEXT), N, Column(5, "x", DataType.DOUBLE))
        return Project(chosen, columns, ("k", "n", "x"))
    if kind == "last rows":
        window = Window(LEFT, WindowKind.ROWS, rows)
    else:
        part = size * (number % 10 + 1) // 10 if kind == "ten sizes" else size
        window = Window(LEFT, WindowKind.RANGE, part)
    count = AggregateCall(AggregateFunction.COUNT_ALL, (), "c")
    return Aggregate(Filter(window, _at_least(number)), (0,), (count,))


def _at_least(number: int) -> Call:
    return Call(">=", (N, Literal(900 + number, DataType.INTEGER)), DataType.BOOLEAN)


class Run:
    """A site with some queries of one kind."""

    def __init__(self, kind: str, queries: int, rows: int, *, sharing: bool) -> None:
        self.site = SiteEngine("here", 1)
        self.site.configure(SiteSettings(share_synopses=sharing))
        self.sources = ("left", "right") if kind == "join" else ("left",)
        for number in range(queries):
            plan_of = plan(kind, number, rows)
            fragment = Fragment("f", Engine.BASE, plan_of, ("here",))
            self.site.install(FragmentBundle(f"q{number}", 1, (fragment,), plan_of.schema))
        self._random = random.Random(1)
        self._keys = max(1, rows // 4)
        self._made = 0
        self.answers: dict[str, ReceivingChannel] = {}

    def events(self) -> dict[str, list[SourceEvent]]:
        """Return the events of a step."""
        made = self._made
        self._made += STEP
        return {
            source: [
                SourceEvent(
                    (f"k{self._random.randrange(self._keys)}", self._random.randrange(1000), n / 7),
                    n * MILLISECOND,
                )
                for n in range(made, made + STEP)
            ]
            for source in self.sources
        }

    def step(self) -> float:
        """Make a step; return the microseconds it took for each event."""
        events = self.events()
        began = time.perf_counter()
        for source, happened in events.items():
            self.site.ingest(source, happened)
        result = self.site.step(self._made * MILLISECOND)
        took = time.perf_counter() - began
        for outgoing in result.outgoing:
            channel = self.answers.setdefault(outgoing.query, ReceivingChannel(version=1))
            channel.accept(outgoing.batch)
        return took * 1e6 / (STEP * len(self.sources))

    def rows(self) -> int:
        """Return the rows in windows and join sides, those in a store counted once."""
        own = sum(s.rows for s in self.site.synopses.synopses() if s.store is None)
        return own + sum(store.rows for store in self.site.synopses.stores())


def measure(
    kind: str, queries: int, rows: int, *, sharing: bool
) -> tuple[dict[str, float], object]:
    """Return the figures of one setting, and the answers."""
    filling = rows // STEP + 2
    gc.collect()
    run = Run(kind, queries, rows, sharing=sharing)
    for _ in range(filling):
        run.step()
    took = median(run.step() for _ in range(max(20, filling // 4)))
    answers: dict[str, dict[Row, int]] = {
        name: channel.contents["f"] for name, channel in run.answers.items()
    }
    kept = run.rows()
    del run
    gc.collect()
    tracemalloc.start()
    run = Run(kind, queries, rows, sharing=sharing)
    for _ in range(filling):
        run.step()
    run.answers.clear()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {"us_per_event": took, "mb": size / 1e6, "rows": kept}, answers


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000, help="rows of a full window")
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 10, 50])
    parser.add_argument("--quick", action="store_true", help="1,000 rows, 1 and 10 queries")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.queries = 1_000, [1, 10]
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    figures: list[dict[str, object]] = []
    if not options.json:
        print(f"{'':12} {'queries':>7} {'MB off':>8} {'on':>7} {'saved':>6}", end="")
        print(f" {'rows off':>9} {'on':>8} {'us off':>8} {'on':>7} {'saved':>6}")
    for kind in KINDS:
        for queries in options.queries:
            off, right = measure(kind, queries, options.rows, sharing=False)
            on, answers = measure(kind, queries, options.rows, sharing=True)
            if answers != right:
                raise AssertionError(f"{kind}: {queries} queries answer otherwise when they share")
            figures.append({"kind": kind, "queries": queries, "off": off, "on": on})
            if options.json:
                continue
            print(
                f"{kind:12} {queries:7} {off['mb']:8.1f} {on['mb']:7.1f}"
                f" {off['mb'] / on['mb']:6.1f} {off['rows']:9} {on['rows']:8}"
                f" {off['us_per_event']:8.1f} {on['us_per_event']:7.1f}"
                f" {off['us_per_event'] / on['us_per_event']:6.2f}",
                flush=True,
            )
    if options.json:
        print(json.dumps({"rows": options.rows, "sharing": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
