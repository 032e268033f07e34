"""Accuracy of the library's positions on recorded signals with known truth; cost of a sighting.

Two public sets (see `benchmarks/_positions/README.md`): a robot with a beacon in a furnished flat
with six receivers and true places, and a phone in four rooms with seven access points. Beside the
views: k nearest neighbours in numpy, always guessing the middle of the map, and no hysteresis.

    python -m benchmarks.positions
    python -m benchmarks.positions --json > docs/results/positions.json
"""

import argparse
import json
from typing import Any

from benchmarks._figures import print_tables
from benchmarks._positions.accuracy import Figures, between_two_receivers, in_flat, in_rooms
from benchmarks._positions.costs import costs


def accuracy() -> dict[str, Figures]:
    """Return the figures that come out the same each time, by table."""
    return {**in_flat(), **in_rooms()}


def markdown(table: Figures) -> str:
    """Return a table of figures as docs/positions.md shows it."""
    columns = list(dict.fromkeys(c for row in table.values() for c in row))
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for name, row in table.items():
        shown = [f"{row[c]:g}" if c in row else "" for c in columns]
        lines.append(f"| {_code(name)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _code(name: str) -> str:
    view, comma, more = name.partition(",")
    return f"`{view}`{comma}{more}" if "_" in view else name


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=3600, help="between two receivers")
    parser.add_argument("--badges", type=int, default=20, help="badges whose sightings cost")
    parser.add_argument("--turns", type=int, default=30, help="sightings that are measured")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--quick", action="store_true", help="a small size")
    return parser


def main() -> None:
    """Measure and print."""
    chosen = arguments().parse_args()
    if chosen.quick:
        chosen.seconds, chosen.badges, chosen.turns = 120, 4, 3
    found: dict[str, Figures] = {
        **accuracy(),
        **between_two_receivers(chosen.seconds),
        "cost": costs(chosen.badges, chosen.turns),
    }
    settings = {name: getattr(chosen, name) for name in ("seconds", "badges", "turns")}
    document: dict[str, Any] = {"benchmark": "positions", "settings": settings, "tables": found}
    if chosen.json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print_tables(found, digits=2)


if __name__ == "__main__":
    main()
