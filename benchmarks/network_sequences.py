"""Is every answer right, whatever queries come and go over one network of shared computations?

    python -m benchmarks.network_sequences [--sequences 10000 | --quick] [--from 0] [--actions 30]
        [--processes 1] [--state FILE] [--json]

Each sequence is random: queries of some hundred templates that vary each other begin and end, rows
come, are withdrawn and expire at two gateways, gateways and base sites die and come back, or crash
and go on from their disks. Messages are lost and come twice, and often those of the last change are
still under way. The queries share by one of the strategies, and nodes are made eagerly or when they
are wanted twice. Whenever the sites are at rest the rows of each query are compared with

    from scratch    the reference evaluator's over the events of the gateways that are there
    alone           those of the same query in a run of its own at the same sites
    DuckDB          over the rows of a plain model, at one rest in seven

At the end of each sequence all queries end, and nothing may be left. A sequence that fails ends the
program with its seed and the shortest story found that fails likewise, as Python that a test can
play. With `--state` what is done is kept in a file: the same command goes on where it was ended.
"""

import argparse
import gc
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._sequences.diversity import NEEDED, lacking
from benchmarks._sequences.seed_ranges import SeedRanges
from benchmarks._sequences.seeded_run import Failure, run_seed

ACTIONS = 30
FEW = 20
TOLD_EVERY = 10.0
"""Seconds between two lines of progress."""

CHUNK = 20
"""Sequences that a process runs before what it found is noted."""

MANY = 200
"""Sequences among which everything that is counted should be."""

Range = tuple[int, int]


def main() -> None:
    """Compare, and print what was compared."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="twenty sequences")
    parser.add_argument("--actions", type=int, default=ACTIONS)
    parser.add_argument("--from", dest="first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--state", type=Path, help="file in which it is kept what is done")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.quick:
        asked.sequences = FEW
    ranges = SeedRanges.read(asked.state, asked.actions)
    left = list(ranges.left(asked.first, asked.first + asked.sequences, CHUNK))
    progress = Progress(sum(until - since for since, until in left))
    for done, found in results(left, asked.actions, asked.processes):
        if isinstance(found, Failure):
            sys.exit(f"seed {found.setting.seed} fails\n{found}")
        ranges.add(*done, found)
        progress.add(done[1] - done[0])
        if asked.state:
            ranges.write(asked.state)
    show(ranges, as_json=asked.json)
    if ranges.sequences >= MANY and (missing := lacking(Counter(ranges.counts))):
        sys.exit(f"these sequences prove little, there were no: {', '.join(missing)}")


def results(
    left: list[Range], actions: int, processes: int
) -> Iterator[tuple[Range, Counter[str] | Failure]]:
    """Yield the counts of ranges of seeds, or how a sequence failed, as they are found."""
    if processes == 1:
        for each in left:
            yield each, run_range(each, actions)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            yield from zip(left, pool.map(run_range, left, [actions] * len(left)), strict=True)
        finally:  # after a failure nobody waits for the others
            pool.shutdown(wait=False, cancel_futures=True)


def run_range(seeds: Range, actions: int) -> Counter[str] | Failure:
    """Return the counts of the sequences of some seeds, or how the first one failed."""
    # What is bound and planned once stays: looking through it took a quarter of the time.
    gc.set_threshold(100_000, 50, 100)
    counts: Counter[str] = Counter()
    for seed in range(*seeds):
        found = run_seed(seed, actions)
        if isinstance(found, Failure):
            return found
        counts += found
    return counts


class Progress:
    """Lines on how many are done, how fast, and when all will be.

    Args:
        total: Sequences to run.
    """

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._began = self._told = time.monotonic()

    def add(self, sequences: int) -> None:
        """Note that some more are done."""
        self._done += sequences
        now = time.monotonic()
        if now - self._told >= TOLD_EVERY or self._done == self._total:
            self._told = now
            rate = self._done / (now - self._began)
            left = (self._total - self._done) / rate
            words = f"{self._done:,} of {self._total:,}, {rate:.1f} a second, {left:,.0f} s left"
            print(words, file=sys.stderr, flush=True)


def show(ranges: SeedRanges, *, as_json: bool) -> None:
    """Print the counts of all that is done."""
    counts = ranges.counts
    others = sorted(counts.keys() - set(NEEDED))
    figures = {name: counts.get(name, 0) for name in (*others, *NEEDED)}
    if as_json:
        print(json.dumps({"sequences": ranges.sequences, "wrong": 0} | figures, indent=1))
        return
    table = Table("counted", "", title=f"{ranges.sequences:,} sequences, no wrong row")
    table.columns[1].justify = "right"
    for name, value in figures.items():
        table.add_row(name, f"{value:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
