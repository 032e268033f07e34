"""The experiments of Liu's thesis on recursive views (figures 10 to 18), run again on this engine.

Sites are simulated in virtual time (see `_recursive/virtual_network.py`). Every figure has four
panels: provenance a row, communication, state, convergence. The thesis' claims are compared with
every point over the runs that both sides finished. Charts, the runs (figures.json) and the
comparison (figures.md) go to a folder; a figure that is run alone replaces itself there.

    pando bench recursive_figures --quick
    python -m benchmarks.recursive_figures --out docs/results
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks._recursive.charts import draw
from benchmarks._recursive.figures import FIGURES, Figure, example_sizes
from benchmarks._recursive.report import chart_name, document, recorded
from benchmarks._recursive.trials import Plan, Runs, Setup


def run(figure: Figure, setup: Setup, options: argparse.Namespace, console: Console) -> Runs:
    """Run one figure in one set-up with a progress line."""
    bars = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*bars, console=console, transient=True) as progress:
        task = progress.add_task(f"figure {figure.number}", total=None)

        def step(what: str) -> None:
            progress.update(task, advance=1, description=f"figure {figure.number}: {what}")

        seeds = tuple(range(1, options.seeds + 1))
        plan = Plan(seeds, options.limit, options.give_up, options.quick, step)
        return figure.run(plan, setup)


def arguments() -> argparse.ArgumentParser:
    """Return the options; what is published was made with their defaults."""
    numbers = ",".join(str(figure.number) for figure in FIGURES)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--figures", default=numbers, help=f"of {numbers}")
    parser.add_argument("--seeds", type=int, default=3, help="runs of every point (3)")
    parser.add_argument("--limit", type=float, default=8.0, help="CPU seconds a run may take (8)")
    parser.add_argument(
        "--give-up", type=int, default=1, help="runs after which a point none finished is left (1)"
    )
    parser.add_argument("--out", type=Path, help="folder for charts, figures.json, figures.md")
    parser.add_argument("--quick", action="store_true", help="few points, one seed, 1 s")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return what decides over the outcome, as it stands beside every figure."""
    return {
        "seeds": options.seeds,
        "limit": options.limit,
        "give_up": options.give_up,
        "quick": options.quick,
    }


def main() -> None:
    """Run the experiments."""
    parser = arguments()
    options = parser.parse_args()
    numbers = [str(figure.number) for figure in FIGURES]
    chosen = [part.strip() for part in options.figures.split(",")]
    unknown = [part for part in chosen if part not in numbers]
    if unknown:
        parser.error(f"no figure {unknown[0]!r}; choose of {', '.join(numbers)}")
    if options.quick:
        options.seeds, options.limit = 1, 1.0
    console = Console(stderr=True)
    result = _earlier(options.out)
    result["10"] = {"title": "Nodes of one diagram by variable order", "nodes": example_sizes()}
    for figure in FIGURES:
        if str(figure.number) not in chosen:
            continue
        by_setup = {setup: run(figure, setup, options, console) for setup in figure.setups}
        result[str(figure.number)] = {
            "title": figure.title,
            "x": figure.x_label,
            "settings": settings(options),
            "load": round(os.getloadavg()[0], 2),
            "setups": {setup.value: recorded(runs) for setup, runs in by_setup.items()},
        }
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            for setup, runs in by_setup.items():
                file = options.out / f"{chart_name(figure.number, setup)}.svg"
                draw(runs, f"{figure.title}\n{setup.value}", figure.x_label, file)
            _save(options.out, result)
    if options.json:
        json.dump(result, sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        Console().print(Markdown(document(result)))


def _earlier(folder: Path | None) -> dict[str, Any]:
    """Return the figures of earlier runs in the folder, so that one can be run again alone."""
    if folder is None or not (folder / "figures.json").exists():
        return {}
    found: dict[str, Any] = json.loads((folder / "figures.json").read_text())
    return found


def _save(folder: Path, result: dict[str, Any]) -> None:
    text = json.dumps(dict(sorted(result.items()))) + "\n"
    (folder / "figures.json").write_text(text)
    (folder / "figures.md").write_text(document(result))


if __name__ == "__main__":
    main()
