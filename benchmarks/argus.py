"""Size, updates and registrations of hundreds of queries in one network, by a thesis' protocol.

    python -m benchmarks.argus [--quick | --full] [--scale 0.05] [--sets fed med ...]
        [--configurations off all ...] [--queries N] [--batch ROWS] [--minutes 26] [--json]
        [--out docs/results]

A gateway has a stream, a base site gathers answers; both are in one process, over the simulated
network. Queries are registered one by one into the running network, which has data in it. After
each round of 100 (aggregates: 50) all configurations take the same batches of new rows, in turns.

    fed, med              selections and joins over transfers of money, and over hospital admissions
    fed-sums, med-sums    aggregates
    uniform, normal, mixture    as fed, with drawn parameters in many spellings
    analysts              sequences of one analyst's variations

    QNS      size of the network: selections and joins by the weights of the thesis
    nodes    selections, joins, aggregates and set operations
    ms       CPU of an update: both sites, and what travels between them (median of its batches)
    MB       resident memory that the network's process has grown by
    registration    CPU until the first answer is there: planning, and filling from the history

The thesis has 300,000 transfers (600,000 admissions) and batches of 4,000; --scale multiplies all
of it, --batch sets the rows of a batch alone. What sharing saves grows with the batch: what an
update takes for each answer that changes, besides its rows, is not shared.

Rows of all configurations are compared after each round, and with DuckDB's at the end.
A configuration that has used up --budget seconds of CPU runs no more: its further queries are only
planned, for the size of the network, until it has used up --size-budget. Sets of drawn queries have
a part of both. A set is not begun after --minutes. Rows that differ are an error; a claim that is
refuted is told. Figures are written after each set.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks._argus.arriving_rows import thesis_sizes
from benchmarks._argus.configurations import CONFIGURATIONS, OFF
from benchmarks._argus.query_sets import BATCH, SETS
from benchmarks._argus.registration_rounds import Protocol, batches_needed, rounds
from benchmarks._argus.thesis_claims import ALL, MATCH_PLAN, NO_JOINS, verdicts
from benchmarks._figures import write_results
from benchmarks._published.pages import with_tables

SEED = 1
FILE = "argus.json"
FEW = (OFF, NO_JOINS, MATCH_PLAN, ALL)
"""Configurations of a quick run."""
THESIS = ("fed", "med", "fed-sums", "med-sums")
DRAWN = tuple(name for name in SETS if name not in THESIS)
SCALES = {"quick": 0.005, "default": 0.02, "full": 1.0}
QUERIES = {"quick": 24, "default": 1_000, "full": 1_000}
UPDATES = {"quick": 2, "default": 4, "full": 10}
BUDGETS = {"quick": 20.0, "default": 150.0, "full": 7_200.0}
SIZE_BUDGETS = {"quick": 30.0, "default": 250.0, "full": 14_400.0}
"""Seconds of CPU of a configuration in a set: while it runs, and until it plans no more."""
PART_OF_DRAWN = 0.25
"""The part of budgets that sets of drawn queries have; they come last."""
MINUTES = 26.0
"""After which no further set is begun, but in a full run."""
TOGETHER = 2
LARGEST_BESIDE_DUCKDB = 0.1
"""The scale up to which DuckDB computes all answers at the end."""


def measure(
    options: argparse.Namespace,
    say: Callable[[str], None],
    keep: Callable[[dict[str, Any]], None] = lambda _found: None,
) -> dict[str, Any]:
    """Return the figures of all sets, and the claims; `keep` gets those so far after each set."""
    began = time.monotonic()
    found: dict[str, Any] = {}
    for name in options.sets:
        if time.monotonic() - began > 60 * options.minutes:
            say(f"{SETS[name].title}: not begun, {options.minutes:g} minutes are over")
            continue
        found[name] = _measured(name, options, say)
        keep(_figures(options, found))
    return _figures(options, found)


def _figures(options: argparse.Namespace, found: dict[str, Any]) -> dict[str, Any]:
    return {
        "settings": {
            "seed": SEED,
            "scale": options.scale,
            "queries": options.queries,
            "sets": options.sets,
            "configurations": options.configurations,
            "updates": options.updates,
            **({"batch": options.batch} if options.batch else {}),
            "budget": options.budget,
            "size_budget": options.size_budget,
        },
        "sets": {**found},
        "claims": [verdict._asdict() for verdict in verdicts(found)],
    }


def _measured(name: str, options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    chosen = SETS[name]
    whole = [asked.text for asked in chosen.queries()]
    texts = whole[: options.queries]
    part = PART_OF_DRAWN if name in DRAWN else 1.0
    protocol = Protocol(
        step=min(chosen.step, max(1, len(texts) // 2)),
        updates=options.updates,
        budget=options.budget * part,
        size_budget=options.size_budget * part,
        together=options.together,
        duckdb=options.scale <= LARGEST_BESIDE_DUCKDB,
    )
    batches = batches_needed(len(texts), protocol)
    sizes = thesis_sizes(chosen.history, BATCH, batches, options.scale)
    if options.batch:
        sizes = replace(sizes, batch=options.batch)
    say(f"{chosen.title}: {len(texts)} queries over {sizes.history:,} rows")
    stream = chosen.stream(sizes, SEED)
    return {
        "title": chosen.title,
        "queries": len(whole),
        "history": sizes.history,
        "batch": sizes.batch,
        "rounds": rounds(
            stream,
            texts,
            options.configurations,
            protocol,
            lambda words: say(f"{chosen.title}: {words}"),
        ),
    }


COLUMNS = (
    ("QNS", "weighted", "{:,}"),
    ("nodes", "nodes", "{:,}"),
    ("ms", "update_ms_median", "{:,.1f}"),
    ("mean", "update_ms_mean", "{:,.1f}"),
    ("max", "update_ms_max", "{:,.1f}"),
    ("gateway", "gateway_ms", "{:,.1f}"),
    ("base", "base_ms", "{:,.1f}"),
    ("messages", "messages", "{:,.0f}"),
    ("bytes", "bytes", "{:,}"),
    ("MB", "mb", "{:,.0f}"),
    ("reg. p50", "registration_ms_p50", "{:,.1f}"),
    ("p99", "registration_ms_p99", "{:,.1f}"),
)
"""Of a configuration after a round: title, figure, form."""


def printed(found: dict[str, Any]) -> str:
    """Return the figures as text."""
    lines = []
    for each in found["sets"].values():
        lines.append(f"\n{each['title']}: {each['history']:,} rows, batches of {each['batch']:,}")
        head = "".join(f"{title:>10}" for title, _, _ in COLUMNS)
        lines.append(f"{'queries':>7}  {'configuration':<34}{head}")
        for one in each["rounds"]:
            for name, figures in one["configurations"].items():
                cells = "".join(
                    f"{form.format(figures[key]) if key in figures else '-':>10}"
                    for _, key, form in COLUMNS
                )
                lines.append(f"{one['queries']:>7}  {name:<34}{cells}")
    lines.append("")
    words = {True: "held", False: "REFUTED", None: "-"}
    for claim in found["claims"]:
        thesis = f" (thesis: {claim['thesis']})" if claim["thesis"] else ""
        product = f"; the product's default: {claim['product']}" if claim["product"] else ""
        lines += [f"{words[claim['held']]:<8}{claim['words']}: {claim['ours']}{thesis}{product}"]
    return "\n".join(lines)


def arguments() -> argparse.ArgumentParser:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="24 queries of each set, few rows")
    parser.add_argument("--full", action="store_true", help="the sizes of the thesis, all sets")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--scale", type=float, help="times the rows of the thesis")
    parser.add_argument("--sets", nargs="+", choices=SETS, help="sets of queries")
    parser.add_argument("--configurations", nargs="+", choices=CONFIGURATIONS)
    parser.add_argument("--queries", type=int, help="of each set at most")
    parser.add_argument("--batch", type=int, help="rows of a batch, instead of 4,000 by the scale")
    parser.add_argument("--updates", type=int, help="batches after each round")
    parser.add_argument("--budget", type=float, help="seconds of CPU of a configuration in a set")
    parser.add_argument(
        "--size-budget", type=float, help="seconds of CPU after which it does not even plan"
    )
    parser.add_argument("--minutes", type=float, help="after which no further set is begun")
    parser.add_argument(
        "--together", type=int, default=TOGETHER, help="configurations that register at once"
    )
    parser.add_argument(
        "--out", type=Path, help=f"folder for {FILE}; the tables of its page are written anew"
    )
    return parser


def _complete(options: argparse.Namespace) -> None:
    """Set what was not given by the size of the run."""
    size = "quick" if options.quick else "full" if options.full else "default"
    options.scale = options.scale or SCALES[size]
    options.queries = options.queries or QUERIES[size]
    options.updates = options.updates or UPDATES[size]
    options.budget = options.budget or BUDGETS[size]
    options.size_budget = options.size_budget or max(SIZE_BUDGETS[size], options.budget)
    options.minutes = options.minutes or (24 * 60.0 if size == "full" else MINUTES)
    options.sets = options.sets or list(THESIS if size == "quick" else SETS)
    if not options.configurations:
        options.configurations = list(FEW if options.quick else CONFIGURATIONS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    options = arguments().parse_args(argv)
    _complete(options)
    console = Console(stderr=True)
    began = time.monotonic()

    def say(words: str) -> None:
        console.print(
            f"{time.monotonic() - began:6.0f} s  {words}", highlight=False, soft_wrap=True
        )

    # A set whose rows differ ends the run; what was measured before it is there.
    found = measure(options, say, lambda some: write_results(options.out, FILE, some))
    write_results(options.out, FILE, found)
    if options.out is not None and (page := options.out / "argus.md").exists():
        text = page.read_text(encoding="utf-8")
        text = with_tables("results/argus.md", text, options.out.resolve().parent)
        page.write_text(text, encoding="utf-8")
    print(json.dumps(found, indent=1) if options.json else printed(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
