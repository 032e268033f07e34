"""The experiments of Liu's thesis on recursive views (figures 10 to 18), run again on this engine.

Sites are simulated in virtual time (see `_recursive/virtual_network.py`). Every figure has four
panels: provenance a row, communication, state, convergence. Charts and a JSON file go to a folder.

    pando bench recursive_figures --quick
    python -m benchmarks.recursive_figures --figures 12,13 --seeds 10 --out docs/results
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks._recursive.charts import METRICS, draw, table
from benchmarks._recursive.figures import FIGURES, Figure, Plan, example_sizes


def run(figure: Figure, seeds: int, limit: float, *, quick: bool, console: Console) -> Any:
    """Run one figure with a progress line."""
    bars = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*bars, console=console, transient=True) as progress:
        task = progress.add_task(f"figure {figure.number}", total=None)

        def step(what: str) -> None:
            progress.update(task, advance=1, description=f"figure {figure.number}: {what}")

        return figure.run(Plan(tuple(range(1, seeds + 1)), limit, quick, step))


def main() -> None:
    """Run the experiments."""
    numbers = [str(figure.number) for figure in FIGURES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--figures", default=",".join(numbers), help=f"of {', '.join(numbers)}")
    parser.add_argument("--seeds", type=int, default=10, help="runs of every point (10)")
    parser.add_argument("--limit", type=float, default=20.0, help="CPU seconds a run may take (20)")
    parser.add_argument("--out", type=Path, help="folder for charts and figures.json")
    parser.add_argument("--quick", action="store_true", help="few points, two seeds, 5 s")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    chosen = [part.strip() for part in options.figures.split(",")]
    unknown = [part for part in chosen if part not in numbers]
    if unknown:
        parser.error(f"no figure {unknown[0]!r}; choose of {', '.join(numbers)}")
    seeds, limit = (2, 5.0) if options.quick else (options.seeds, options.limit)
    console = Console(stderr=True)
    result = _earlier(options.out)
    result["10"] = {"title": "Nodes of one diagram by variable order", "nodes": example_sizes()}
    for figure in FIGURES:
        if str(figure.number) not in chosen:
            continue
        series = run(figure, seeds, limit, quick=options.quick, console=console)
        result[str(figure.number)] = {
            "title": figure.title,
            "x": figure.x_label,
            "claim": figure.claim,
            "seeds": seeds,
            "limit_seconds": limit,
            "load": round(os.getloadavg()[0], 2),
            "series": table(series),
        }
        if options.out is not None:
            name = f"figure-{figure.number}"
            draw(series, figure.title, figure.x_label, options.out, name)
            _save(options.out, result)
        if not options.json:
            show(figure, result[str(figure.number)])
    if options.json:
        json.dump(result, sys.stdout, indent=2)
        sys.stdout.write("\n")


def _earlier(folder: Path | None) -> dict[str, Any]:
    """Return the figures of earlier runs in the folder, so that one can be run again alone."""
    if folder is None or not (folder / "figures.json").exists():
        return {}
    found: dict[str, Any] = json.loads((folder / "figures.json").read_text())
    return found


def _save(folder: Path, result: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(dict(sorted(result.items())), indent=1) + "\n"
    (folder / "figures.json").write_text(text)


def show(figure: Figure, found: dict[str, Any]) -> None:
    """Print a figure as a table: mean and half of the 95 % interval."""
    printed = Table(title=f"Figure {figure.number}: {figure.title}", title_justify="left")
    for column in ("scheme", figure.x_label, "finished", *(label for _, label, _ in METRICS)):
        printed.add_column(column)
    for scheme, points in found["series"].items():
        for x, cell in points.items():
            values = [
                f"{cell[name][0] / unit:.4g} ± {cell[name][1] / unit:.2g}" if name in cell else "-"
                for name, _, unit in METRICS
            ]
            printed.add_row(scheme, x, cell["finished"], *values)
    console = Console()
    console.print(printed)
    console.print(f"The paper: {figure.claim}\n")


if __name__ == "__main__":
    main()
