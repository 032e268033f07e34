"""Cost of planning in forked processes, and stalls of the console's event loop.

    python benchmarks/planning_beside.py [--quick] [--json] [--memory MB]

Statements over three gateways, a base site and the sample building are bound and planned in
turns on an event loop (as programs do that serve nobody else) and in a process forked for each
(as the console does). Per statement: milliseconds on the wall from text to plan, and the longest
time for which the loop did not run, which every page of the console waits for. The statements: a
plain filter, the joins of example 14, a list of 10,000 numbers, and a chain of 12 joins. The fork
costs more the more memory the process has: MEMORY MB are filled before.

How to read it: what the fork adds to a plain statement is its price; the longest pause is what it
buys. Only ratios within one run mean anything.
"""

import argparse
import asyncio
import gc
import json
import time
from collections.abc import Sequence
from statistics import mean, median

from benchmarks._figures import print_tables
from benchmarks._optimizer.gate_worlds import SCHEMA, catalog_of
from benchmarks._optimizer.planning_times import BESIDE as SAMPLES
from federated_optimizer import Topology, colocation_of, normalize
from federated_optimizer.coordinator.planning_processes import (
    Beside,
    InProcesses,
    OnTheLoop,
)
from federated_optimizer.cutting.placing import place
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.syntax import Query, parse_statement

BEAT = 0.002
"""Seconds between two looks at the clock."""
SECONDS = 120.0

_CHAIN = " ".join(f"JOIN Machines m{n} ON m{n}.mid = m{n - 1}.mid" for n in range(1, 12))
STATEMENTS = {
    "filter": SAMPLES["filter"],
    "example 14": SAMPLES["example 14"],
    "10,000 numbers": "SELECT mid FROM MachineLoad WHERE cpu IN ("
    + ", ".join(f"{n}.5" for n in range(10_000))
    + ")",
    "12 joins": f"SELECT m0.mid FROM Machines m0 {_CHAIN}",
}


class Beat:
    """Measures how long the loop does not run."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Beat":
        self._task = asyncio.create_task(self._run())
        await asyncio.sleep(2 * BEAT)
        self.longest = 0.0
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(2 * BEAT)
        assert self._task is not None  # noqa: S101
        self._task.cancel()

    async def _run(self) -> None:
        before = time.perf_counter()
        while True:
            await asyncio.sleep(BEAT)
            now = time.perf_counter()
            self.longest = max(self.longest, now - before - BEAT)
            before = now


def planned(text: str, catalog: Catalog, topology: Topology) -> int:
    """Return the number of fragments of a statement, as the coordinator plans it."""
    query = parse_statement(text)
    if not isinstance(query, Query):
        raise TypeError(text)
    ready = normalize(bind_query(query, catalog).plan, topology)
    return len(place(ready, topology, query="q1", text=text).fragments)


async def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Return milliseconds by statement, in turns."""
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"), library=True)
    names = frozenset(source.name for source in catalog.sources)
    gateways = dict.fromkeys(("gw-1", "gw-2", "gw-3"), names)
    topology = Topology(gateways, colocation=colocation_of(catalog))
    ways: dict[str, Beside] = {"loop": OnTheLoop(), "forked": InProcesses(SECONDS)}
    table: dict[str, dict[str, float]] = {}
    for name, text in STATEMENTS.items():
        planned(text, catalog, topology)  # imports and caches
        taken: dict[str, list[float]] = {way: [] for way in ways}
        pauses: dict[str, list[float]] = {way: [] for way in ways}
        answers: set[int] = set()
        for _ in range(rounds):
            for way, beside in ways.items():
                async with Beat() as beat:
                    began = time.perf_counter()
                    answers.add(
                        await beside.run(
                            lambda text=text: planned(text, catalog, topology),  # type: ignore[misc]
                            "planning",
                        )
                    )
                    taken[way].append(time.perf_counter() - began)
                pauses[way].append(beat.longest)
        if len(answers) != 1:
            raise AssertionError(f"{name}: plans differ")
        figures: dict[str, float] = {}
        for way in ways:
            figures |= _summary(f"{way}, ms", taken[way])
            figures |= _summary(f"{way}, loop stands ms", pauses[way])
        figures["fork adds ms (median)"] = figures["forked, ms median"] - figures["loop, ms median"]
        table[name] = figures
    return table


def _summary(what: str, seconds: Sequence[float]) -> dict[str, float]:
    return {
        f"{what} median": median(seconds) * 1e3,
        f"{what} mean": mean(seconds) * 1e3,
        f"{what} max": max(seconds) * 1e3,
    }


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Planning on the loop and beside it.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--memory", type=int, default=150, help="MB that the process has more")
    options = parser.parse_args(argv)
    rounds = 5 if options.quick else 30
    ballast = b"x" * (options.memory * 1_000_000)
    gc.collect()
    table = asyncio.run(measure(rounds))
    settings = {"quick": options.quick, "rounds": rounds, "memory_mb": len(ballast) // 1_000_000}
    if options.json:
        result = {"benchmark": "planning_beside", "settings": settings, "statements": table}
        print(json.dumps(result, indent=1))
        return 0
    print_tables({"milliseconds on the wall": table}, digits=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
