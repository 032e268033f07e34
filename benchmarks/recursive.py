"""Does the recursive engine reach its goals? Everything in one session, with its peers.

Links of transit-stub networks, regions of sensors and the nearest free machine of a building come
and go; each update is timed alone, with StreamSQL in and the view readable after it. Contestants
take turns at every update. Peers: our own DRed, scipy and rustworkx recomputing, and Pathway where
PATHWAY_PYTHON names the Python of an environment that has it. Every contestant must end with the
same view. Ratios only mean something within one session.

    pando bench recursive --quick
    python -m benchmarks.recursive --parts links,shipping --out docs/results
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._recursive.links import run_links
from benchmarks._recursive.overheads import run_overheads
from benchmarks._recursive.shipping import run_shipping
from benchmarks._recursive.spaces import run_building, run_regions
from benchmarks._recursive.targets import TARGETS, Outcome

PARTS = ("links", "overheads", "regions", "building", "shipping")
COLOURS = {"stretch": "bold green", "pass": "green", "miss": "red", "not measured": "dim"}


def run_part(part: str, options: argparse.Namespace) -> tuple[dict[str, Any], list[Outcome]]:
    """Return the figures and outcomes of one part."""
    quick, rounds = options.quick, options.rounds
    match part:
        case "links":
            sizes = (400,) if quick else (400, 1_600, 6_400)
            return run_links(sizes, rounds, cap=options.cap)
        case "overheads":
            return run_overheads(quick=quick, rounds=rounds, cap=options.cap)
        case "regions":
            return run_regions(10 if quick else 5, rounds)
        case "building":
            return run_building(quick=quick)
        case _:
            return run_shipping(quick=quick)


def arguments() -> argparse.ArgumentParser:
    """Return the options; what is published was made with their defaults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, few seconds each")
    parser.add_argument("--rounds", type=int, default=1, help="of every contestant (1)")
    parser.add_argument(
        "--cap", type=float, default=2.0, help="CPU seconds a contestant may take for a phase (2)"
    )
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, help="folder for goals.json; parts not run are kept")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return what decides over the outcome, as it stands beside every part."""
    return {"rounds": options.rounds, "cap": options.cap, "quick": options.quick}


def main() -> None:
    """Run the benchmark."""
    parser = arguments()
    options = parser.parse_args()
    parts = [part.strip() for part in options.parts.split(",")]
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}; choose of {', '.join(PARTS)}")
    if options.quick:
        options.rounds, options.cap = 1, min(options.cap, 0.5)
    console = Console(stderr=True)
    file = None if options.out is None else options.out / "goals.json"
    result: dict[str, Any] = json.loads(file.read_text()) if file and file.exists() else {}
    for part in parts:
        with console.status(f"{part}: every update is timed alone"):
            figures, reached = run_part(part, options)
        result[part] = {
            "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
            "load": [round(value, 2) for value in os.getloadavg()],
            "settings": settings(options),
            "figures": figures,
            "targets": {outcome.letter: outcome.record() for outcome in reached},
        }
        if file:
            file.write_text(json.dumps(result, indent=1) + "\n")
        console.print(f"[green]done[/] {part}")
    if options.json:
        json.dump(result, sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        show(result)


def show(result: dict[str, Any]) -> None:
    """Print tables."""
    console = Console()
    for part in result.values():
        for name, rows in part["figures"].items():
            _show_figures(console, name, rows)
    table = Table(title="Goals", title_justify="left", title_style="bold")
    for column in ("", "what", "goal", "stretch", "measured", ""):
        table.add_column(column, justify="right" if column == "measured" else "left")
    reached = {
        letter: found for part in result.values() for letter, found in part["targets"].items()
    }
    for letter in (letter for letter in TARGETS if letter in reached):
        found = reached[letter]
        verdict = found["verdict"]
        table.add_row(
            letter,
            found["what"],
            found["goal"],
            found["stretch"],
            _number(found["value"]),
            f"[{COLOURS[verdict]}]{verdict}[/]",
        )
    console.print(table)


def _show_figures(console: Console, name: str, rows: dict[str, Any]) -> None:
    table = Table(title=name, title_justify="left", title_style="bold")
    lines = {label: _flat(values) for label, values in _labelled(rows).items()}
    columns = list(dict.fromkeys(c for values in lines.values() for c in values))
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    for label, values in lines.items():
        table.add_row(label, *(_number(values.get(column)) for column in columns))
    console.print(table)


def _labelled(rows: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return rows if all(isinstance(value, dict) for value in rows.values()) else {"": rows}


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= {f"{name} {inner}": v for inner, v in value.items()}
        else:
            flat[name] = value
    return flat


def _number(value: Any) -> str:
    return "" if value is None else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    main()
