"""Nexmark's standing queries, change by change and in batches, beside DuckDB computing again.

Events come from our own generator. Each query runs in a process of its own: it is loaded, then
events come one by one, by the hundred and by ten thousand. At the end its rows must be DuckDB's
over the same events. Ratios only mean something within one run.

    pando bench nexmark --quick
    python -m benchmarks.nexmark --queries q3,q4 --events 1000000 --json
"""

import argparse
import json
import os
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks._nexmark.contest import Contest, run
from benchmarks._nexmark.peers import compare as beside_peers
from benchmarks._nexmark.queries import QUERIES

LINEAR = ("q1", "q2")
GOALS = {"change": 50.0, "linear": 300_000, "stateful": 100_000}
"""DuckDB over one change; events a second at batches of 10,000, for q1 and q2 and for the rest."""


def main() -> None:
    """Run the benchmark."""
    names = [query.name for query in QUERIES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--events", type=int, default=1_000_000, help="loaded (1,000,000)")
    parser.add_argument("--quick", action="store_true", help="5,000 events, few updates")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    chosen = [part.strip() for part in options.queries.split(",")]
    unknown = [part for part in chosen if part not in names]
    if unknown:
        parser.error(f"no query {unknown[0]!r}; choose of {', '.join(names)}")
    found: dict[str, Any] = {}
    console = Console(stderr=True)
    for name in track(chosen, description="queries", console=console, transient=True):
        contest = (
            Contest(name, 5_000, 100, 3, 1, 3) if options.quick else Contest(name, options.events)
        )
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found[name] = pool.submit(run, contest).result()
        found[name]["peers"] = beside_peers(name, quick=options.quick)
    result = {
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load": [round(value, 2) for value in os.getloadavg()],
        "quick": options.quick,
        "queries": found,
        "goals": _verdicts(found),
    }
    if options.json:
        json.dump(result, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        show(result)


def _verdicts(found: dict[str, Any]) -> dict[str, Any]:
    """Return per goal which queries reach it and which do not."""
    stateful = {query.name for query in QUERIES if query.stateful}
    reached: dict[str, dict[str, list[str]]] = {}

    def judge(goal: str, name: str, *, good: bool) -> None:
        sides = reached.setdefault(goal, {"reached": [], "missed": []})
        sides["reached" if good else "missed"].append(name)

    for name, figures in found.items():
        rate = figures["events_per_second"]["10000"]
        if name in stateful:
            judge("change", name, good=figures["again_over_change"] >= GOALS["change"])
            judge("stateful", name, good=rate >= GOALS["stateful"])
        elif name in LINEAR:
            judge("linear", name, good=rate >= GOALS["linear"])
        for peer, beside in figures["peers"].items():
            judge(f"as fast as {peer}", name, good=beside["least_ratio"] >= 1)
    return reached


def show(result: dict[str, Any]) -> None:
    """Print tables."""
    console = Console()
    peers = list(
        dict.fromkeys(p for figures in result["queries"].values() for p in figures["peers"])
    )
    table = Table(title="Nexmark", title_justify="left", title_style="bold")
    for column in (
        "",
        "rows",
        "p50 µs",
        "p99",
        "again ms",
        "ratio",
        "1",
        "100",
        "10k",
        "MB/M",
        *peers,
    ):
        table.add_column(column, justify="right" if column else "left")
    for name, figures in result["queries"].items():
        rates = figures["events_per_second"]
        beside = figures["peers"]
        table.add_row(
            name,
            f"{figures['rows']:,}",
            f"{figures['change_p50_ms'] * 1_000:.0f}",
            f"{figures['change_p99_ms'] * 1_000:.0f}",
            f"{figures['again_ms']:.1f}",
            f"{figures['again_over_change']:,.0f}",
            *(f"{rates[size] / 1_000:,.0f}" for size in ("1", "100", "10000")),
            f"{figures['megabytes_per_million_events']:,.0f}",
            *(f"{beside[peer]['least_ratio']:.1f}" if peer in beside else "" for peer in peers),
        )
    console.print(table)
    console.print(
        "A change alone: its p50 and p99; DuckDB computing again, and how many changes that "
        "is worth; thousand events a second in batches of 1, 100 and 10,000; megabytes per million "
        "events; how many times faster than each peer at the worst batch size."
    )
    for goal, sides in result["goals"].items():
        missed = ", ".join(sides["missed"]) or "none"
        console.print(f"{goal}: reached by {', '.join(sides['reached'])}; missed by {missed}")
    console.print(f"{result['machine']}, load {result['load'][0]}")


if __name__ == "__main__":
    main()
