"""Cost of a reading in a connector, beside the bare library that reads the same device, in turns.

    python -m benchmarks.connectors [KIND ...] [--quick] [--json]

A peer (a server, a broker, a file) in another process has more than can be read. Per kind of
connector: readings a second and microseconds of this process's CPU a reading, of the connector with
its mapping of payloads to typed rows, and of the bare library that decodes the same payloads to
Python values and nothing else. Medians of the turns.

How to read it: the difference is what mapping, bounds and counting cost. The connector alone is
measured; what a gateway does with a reading afterwards is in `benchmarks/intake.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from importlib import import_module
from pathlib import Path
from statistics import median

from benchmarks._connectors.pair import Cost, Pair
from benchmarks._figures import print_tables

FOLDER = Path(__file__).parent / "_connectors"
KINDS = sorted(
    path.stem for path in FOLDER.glob("*.py") if "PAIR = " in path.read_text(encoding="utf-8")
)


def compare(kind: str, seconds: float, turns: int) -> dict[str, dict[str, float]]:
    """Return the figures of a connector and of its bare library."""
    module = import_module(f"benchmarks._connectors.{kind}")
    pair: Pair = module.PAIR
    costs: dict[str, list[Cost]] = {"connector": [], "bare library": []}
    for _ in range(turns):
        costs["connector"].append(asyncio.run(pair.connector(seconds)))
        costs["bare library"].append(asyncio.run(pair.bare(seconds)))
    return {name: _medians(found) for name, found in costs.items()}


def _medians(costs: list[Cost]) -> dict[str, float]:
    tables = [cost.figures() for cost in costs]
    return {label: median(table[label] for table in tables) for label in tables[0]}


def main() -> None:
    """Measure the connectors that are named, or all."""
    parser = argparse.ArgumentParser(description="What a reading costs a connector.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--quick", action="store_true", help="one short turn: does it run?")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    unknown = set(arguments.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no benchmark of {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    seconds, turns = (0.5, 1) if arguments.quick else (5.0, 3)
    found = {kind: compare(kind, seconds, turns) for kind in arguments.kinds or KINDS}
    if arguments.json:
        print(json.dumps(found))
    else:
        print_tables(found, digits=1)


if __name__ == "__main__":
    main()
