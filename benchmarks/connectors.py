"""Cost of a reading in a connector, beside the bare library that reads the same device, in turns.

    python -m benchmarks.connectors [KIND ...] [--quick] [--json] [--out FOLDER]

A peer (a server, a broker, a file) in another process has more than can be read. Per kind of
connector: readings a second and microseconds of this process's CPU a reading, of the connector with
its mapping of payloads to typed rows, and of the bare library that decodes the same payloads to
Python values and nothing else. Medians of the turns, in which the two go first by turns. The first
thousand rows of both are compared: exits with 1 when they differ.

Where a device gives fewer readings than either can take ("limited by peer") only the CPU compares.

How to read it: the difference is what mapping, bounds and counting cost. The connector alone is
measured; what a gateway does with a reading afterwards is in `benchmarks/intake.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._connectors.pair import Cost, Pair
from benchmarks._figures import print_tables, write_results

FOLDER = Path(__file__).parent / "_connectors"
SECONDS, TURNS = 2.0, 3
KINDS = sorted(
    path.stem for path in FOLDER.glob("*.py") if "PAIR = " in path.read_text(encoding="utf-8")
)


def compare(kind: str, seconds: float, turns: int) -> dict[str, Any]:
    """Return the figures of a connector and of its bare library, and how their rows differ."""
    module = import_module(f"benchmarks._connectors.{kind}")
    pair: Pair = module.PAIR
    runs = {"connector": pair.connector, "bare library": pair.bare}
    costs: dict[str, list[Cost]] = {name: [] for name in runs}
    for turn in range(turns):
        for name in sorted(runs, reverse=turn % 2 == 0):
            costs[name].append(asyncio.run(runs[name](seconds)))
    differences = [
        difference
        for connector, bare in zip(costs["connector"], costs["bare library"], strict=True)
        if (difference := pair.difference(connector, bare))
    ]
    return {
        "figures": {name: _medians(found) for name, found in costs.items()},
        "limited by peer": pair.limited_by_peer,
        "rows compared": min(len(cost.rows) for found in costs.values() for cost in found),
        "differences": differences,
    }


def _medians(costs: list[Cost]) -> dict[str, float]:
    tables = [cost.figures() for cost in costs]
    return {label: median(table[label] for table in tables) for label in tables[0]}


def main() -> int:
    """Measure the connectors that are named, or all; return the exit status."""
    parser = argparse.ArgumentParser(description="What a reading costs a connector.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--quick", action="store_true", help="one short turn: does it run?")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="folder for connectors.json")
    arguments = parser.parse_args()
    unknown = set(arguments.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no benchmark of {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    seconds, turns = (0.5, 1) if arguments.quick else (SECONDS, TURNS)
    kinds = {kind: compare(kind, seconds, turns) for kind in arguments.kinds or KINDS}
    found = {
        "benchmark": "connectors",
        "settings": {"seconds": seconds, "turns": turns},
        "kinds": kinds,
    }
    write_results(arguments.out, "connectors.json", found)
    if arguments.json:
        print(json.dumps(found))
    else:
        titles = {
            kind: f"{kind} (limited by peer)" if each["limited by peer"] else kind
            for kind, each in kinds.items()
        }
        print_tables({titles[kind]: each["figures"] for kind, each in kinds.items()}, digits=1)
    wrong = [f"{kind}: {text}" for kind, each in kinds.items() for text in each["differences"]]
    for line in wrong:
        print(f"WRONG: {line}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
