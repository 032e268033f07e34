"""Bytes, rows and processor time of recursions that derive only what is asked for.

    python -m benchmarks.bounded_recursions [--quick] [--json] [--data FOLDER]

The links of the sample building, of a network of the Topology Zoo and of a recorded trace (K7), as
the gate of the optimizer has them. Each query runs by its whole recursion and by the bounded one:

    B/s               between sites, with headers, in the simulated federation: at the base, and
                      with witnesses, which ship derived rows
    rows derived      that came or went in the recursion, until the end
    rows held         by it at the end
    ms                of processor, for all readings at one site; the two take turns, median
    chosen            1: by the optimizer, by bytes

How to read it: bytes and rows are exact; only the ratio of times within one run means anything.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import median

from benchmarks._figures import print_tables
from benchmarks._optimizer.forced_plans import bound_in, run_plan
from benchmarks._optimizer.gate_worlds import questions
from benchmarks._optimizer.known_facts import known_facts
from benchmarks._optimizer.site_networks import DATA
from benchmarks._optimizer.worlds import START, Readings, World
from federated_optimizer import Topology, colocation_of, normalize, plan
from federated_optimizer.alternatives.method import Method
from federated_optimizer.search.choosing import Search
from stream_engine.testing.circuit_runs import LocalRun
from streamsql.algebra.operators import Plan
from streamsql.data.events import SourceEvent

SEED = 1
WAYS = (Method.CENTRE, Method.WITNESS)
FROM_ONE = "SELECT dst FROM reachable WHERE src = '{first}'"
QUERIES = {
    "reachable from one": FROM_ONE,
    "reachable from ends of costly links": """
        SELECT src, dst FROM reachable WHERE src IN (SELECT src FROM Link WHERE cost > 2.9)""",
    "shortest paths from one": "SELECT dst, path FROM shortest_path WHERE src = '{first}'",
}
OF_TRACE = {
    "reachable from sinks": """
        SELECT r.src, r.dst FROM reachable r JOIN Mote m ON m.mote = r.src
        WHERE m.kind = 'sink'"""
}


def asked(data: Path, *, quick: bool) -> Iterator[tuple[World, str, str]]:
    """Yield worlds of links with the name and the text of a query."""
    for question in questions(data, quick=False):
        if question.name == "reachable":
            world = question.world
            texts = QUERIES | (OF_TRACE if "mote" in world.tables else {})
            for name, text in texts.items():
                yield world, name, text.format(first=min(world.links.owner))
                if quick:
                    return


def compared(world: World, text: str, *, rounds: int) -> dict[str, dict[str, float | None]]:
    """Return the figures of the whole and of the bounded recursion."""
    readings = world.readings(SEED)
    topology = Topology(
        dict.fromkeys(world.gateways, world.heard), colocation=colocation_of(world.catalog)
    )
    bound = bound_in(text, world)
    ready = normalize(bound.plan, topology)
    statistics = known_facts(world, ready, readings)
    search = Search(ready, topology, statistics)
    found: dict[str, dict[str, float | None]] = {}
    plans: dict[str, Plan] = {}
    rows = set()
    for name in ("whole", "bounded"):
        found[name] = {}
        for way in WAYS:
            number = _number(search, way, bounded=name == "bounded")
            plans.setdefault(name, search.plan(number).plan)
            made = plan(replace(bound, asked=number), topology, query="q", statistics=statistics)
            used, shown = run_plan(world, made, readings)
            rows.add(tuple(sorted(shown.items(), key=repr)))
            found[name][f"B/s by {way}"] = used.bytes
    if len(rows) != 1:
        raise RuntimeError(f"plans of {text!r} give other rows")
    chosen = "bounded" if _is_bounded(search, search.taken().number) else "whole"
    times: dict[str, list[float]] = {name: [] for name in plans}
    for number in range(rounds):
        for name in sorted(plans, reverse=bool(number % 2)):
            took, derived, held = _local(world, plans[name], readings)
            times[name].append(took)
            found[name] |= {"rows derived": derived, "rows held": held}
    for name, each in times.items():
        found[name]["ms"] = median(each)
        found[name]["chosen"] = float(name == chosen)
    return found


def _is_bounded(search: Search, number: int) -> bool:
    return any(each.method == Method.BOUND for each in search.memo.selection(number).values())


def _number(search: Search, way: Method, *, bounded: bool) -> int:
    """Return the cheapest plan of a way."""
    numbers = [
        number
        for number in range(1, search.memo.count() + 1)
        if _is_bounded(search, number) == bounded
        and any(each.method == way for each in search.memo.selection(number).values())
    ]
    return min(numbers, key=lambda number: search.plan(number).cost.bytes)


def _local(world: World, whole: Plan, readings: Readings) -> tuple[float, float, float]:
    """Return milliseconds of one site for all readings, and the rows of its recursion."""
    run = LocalRun(whole)
    read = {scan.source.lower() for scan in run.circuit.scans}
    begin = time.process_time()
    for name in read & set(world.tables):
        events = [SourceEvent(row, START) for row in world.tables[name]]
        run.step(START, [(world.source(name).name, event) for event in events])
    for now, group in groupby(readings, key=lambda reading: reading[0]):
        events_of = [(world.source(name).name, event) for _, _, name, event in group]
        run.step(now, events_of)
    took = 1_000 * (time.process_time() - begin)
    (recursion,) = run.circuit.recursion_statistics()
    return took, float(recursion.view_changes), float(recursion.view_rows)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Recursions with bounds pushed in, and whole ones")
    parser.add_argument("--quick", action="store_true", help="one query in the building, one round")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the recorded data")
    options = parser.parse_args(argv)
    found = {
        f"{world.name}: {name}": compared(world, text, rounds=1 if options.quick else 5)
        for world, name, text in asked(options.data, quick=options.quick)
    }
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print_tables(found, digits=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
