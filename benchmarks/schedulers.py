"""Four schedulers beside each other on bursts: queue memory, latency and throughput of a site.

    python -m benchmarks.schedulers [--quick] [--json]

Events come in bursts, twice as fast as the site can work, with rests in which it catches up.
Time is that of the site's own work: a step's real time moves the clock, and where nothing waits
the clock jumps to the next event. Steps have slices of half a millisecond; what is left waits.

    average   events that wait for a step, and changed rows in all queues, averaged over that time
    peak      the most of them
    latency   milliseconds from an event to the first answer that has it in, per change of an
              answer: mean and 95th percentile
    events/s  all events by the time from the first one to the last answer

`fifo, whole steps` is what a site does without settings: no scheduler, and a step ends when all is
done. Nothing waits between steps, but all that comes during a step waits for its end; what it works
on is counted until then.

Policies take turns, and every figure is a median over the rounds. All of them must give the same
answers. Ratios to FIFO with slices only mean something within one run. First comes the table of the
STREAM thesis, in multiples of a batch.
"""

import argparse
import gc
import json
import os
import time
from collections import deque
from statistics import mean, median, quantiles
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._schedulers import worked_examples
from benchmarks._schedulers.loads import LOADS, SECOND, Burst, arrivals, site_with
from stream_engine.site.site_engine import SiteEngine
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

SLICE = 0.5
OVERLOAD = 2.0
BATCH = 500
"""Events of a step in the flood by which the capacity of a site is measured."""
WHOLE = "fifo, whole steps"
WAYS: dict[str, SiteSettings] = {
    **{
        kind.value: SiteSettings(scheduler=kind, slice_ms=SLICE, queue_rows=10_000_000)
        for kind in SchedulerKind
    },
    WHOLE: SiteSettings(),
}
FIGURES = ("average", "peak", "latency_ms", "latency_p95_ms", "events_per_s")


class Run:
    """One site under one policy, through all bursts.

    Attributes:
        answers: What each query gave.
        figures: As described above.
    """

    def __init__(self, load: str, settings: SiteSettings, events: list[SourceEvent]) -> None:
        self.site = SiteEngine("here", 1, stopwatch=time.perf_counter_ns)
        self._channels = {name: ReceivingChannel(version=1) for name in LOADS[load]}
        site_with(load, self.site)
        self._latencies: list[float] = []
        self._now = float(SECOND)
        self._warm_up(events)
        self.site.configure(settings)
        self._straight = settings == SiteSettings()
        self.figures = self._live(deque(events))
        self.answers: dict[str, Delta] = {
            name: channel.contents.get("f1", {}) for name, channel in self._channels.items()
        }

    def _warm_up(self, events: list[SourceEvent]) -> None:
        """Take the channels' first snapshots."""
        self.site.resync_all()
        self._step(events[0].ts - 1)

    def _step(self, now: int) -> float:
        """Step; return the microseconds that took."""
        began = time.perf_counter_ns()
        done = self.site.step(now)
        took = (time.perf_counter_ns() - began) / 1_000
        if done.failures:
            raise AssertionError(f"a query failed: {done.failures[0]}")
        for outgoing in done.outgoing:
            batch = outgoing.batch
            self._channels[outgoing.query].accept(batch)
            if batch.ts is not None:
                self._latencies.extend([(now + took - batch.ts) / 1_000] * len(batch.deltas))
        return took

    def _live(self, waiting: deque[SourceEvent]) -> dict[str, float]:
        site, meter, count = self.site, self.site.queues, len(waiting)
        began = self._now = float(waiting[0].ts)
        self._latencies.clear()
        rows, peak = float(meter.row_ns), 0
        while waiting or meter.batches:
            if waiting and not meter.batches:
                self._now = max(self._now, float(waiting[0].ts))
            arrived = []
            while waiting and waiting[0].ts <= self._now:
                arrived.append(waiting.popleft())
            rows -= sum(self._now - event.ts for event in arrived) * 1_000
            site.ingest("readings", arrived)
            took = self._step(int(self._now))
            if self._straight:
                rows -= took * 1_000 * len(arrived)
            peak = max(peak, meter.peak_rows, len(arrived))
            self._now += took
        site.step(int(self._now))
        return {
            "average": (meter.row_ns - rows) / (self._now - began) / 1_000,
            "peak": float(peak),
            "latency_ms": mean(self._latencies),
            "latency_p95_ms": quantiles(self._latencies, n=20)[-1],
            "events_per_s": count / (self._now - began) * SECOND,
        }


def capacity(load: str, batches: int) -> float:
    """Return how many events a second a site can do that always finds a batch waiting."""
    site = SiteEngine("here", 1, stopwatch=time.perf_counter_ns)
    site_with(load, site)
    site.configure(WAYS["fifo"])
    events = list(arrivals(Burst(1.0, 0.0, float(batches * BATCH)), 1))
    spent = 0
    for start in range(0, len(events), BATCH):
        batch = events[start : start + BATCH]
        site.ingest("readings", batch)
        began = time.perf_counter_ns()
        site.step(batch[-1].ts)
        while site.queues.batches:
            site.step(batch[-1].ts)
        spent += time.perf_counter_ns() - began
    return len(events) / spent * 1e9


def measure(load: str, *, seconds: float, bursts: int, rounds: int) -> dict[str, Any]:
    """Return the figures of every policy under a load.

    Raises:
        AssertionError: Two policies give different answers.
    """
    rate = OVERLOAD * capacity(load, batches=20)
    happened = list(arrivals(Burst(seconds, OVERLOAD * seconds, rate), bursts))
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    names = list(WAYS)
    answers: dict[str, Delta] | None = None
    for number in range(rounds):
        for way in names[number % len(names) :] + names[: number % len(names)]:
            gc.collect()
            run = Run(load, WAYS[way], happened)
            found[way].append(run.figures)
            if answers is not None and run.answers != answers:
                raise AssertionError(f"{way} gives another answer to {load!r}")
            answers = run.answers
    figures = {
        way: {name: median(run[name] for run in runs) for name in FIGURES}
        for way, runs in found.items()
    }
    fifo = figures["fifo"]
    return {
        "events": len(happened),
        "events_per_s": rate,
        "ways": figures,
        "to_fifo": {
            way: {name: row[name] / fifo[name] for name in FIGURES if fifo[name]}
            for way, row in figures.items()
        },
    }


def show(console: Console, result: dict[str, Any]) -> None:
    """Print the tables."""
    table = Table("rows waiting, in batches", *(f"t={unit}" for unit in range(7)), "average")
    for name, row in result["worked_examples"].items():
        table.add_row(name, *(f"{value:.1f}" for value in row))
    console.print(table)
    for load, figures in result["loads"].items():
        rate = figures["events_per_s"]
        table = Table(f"{load}: {figures['events']:,} events, {rate:,.0f}/s in bursts", *FIGURES)
        for way, row in figures["ways"].items():
            ratios = figures["to_fifo"][way]
            table.add_row(
                way, *(f"{row[name]:,.1f} ({ratios.get(name, 0):.2f})" for name in FIGURES)
            )
        console.print(table)
    console.print("In brackets: ratio to FIFO with slices, of this run.")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short bursts, one round")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    gc.freeze()
    size: dict[str, Any] = (
        {"seconds": 0.02, "bursts": 1, "rounds": 1}
        if options.quick
        else {"seconds": 0.1, "bursts": 2, "rounds": 3}
    )
    result = {
        "load": [round(value, 2) for value in os.getloadavg()],
        "quick": options.quick,
        "worked_examples": worked_examples.table(),
        "loads": {load: measure(load, **size) for load in LOADS},
    }
    if options.json:
        print(json.dumps(result))
    else:
        show(Console(width=150), result)


if __name__ == "__main__":
    main()
