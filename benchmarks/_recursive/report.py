"""The figures as they are kept (JSON) and read (Markdown)."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from benchmarks._recursive.charts import interval
from benchmarks._recursive.claims import CLAIMS, ByFigure, Claim, Point
from benchmarks._recursive.trials import Run, Runs, Setup
from benchmarks._recursive.virtual_network import Costs

COLUMNS = (
    ("bytes_per_site", "kB a site", 1e3),
    ("provenance_per_row", "provenance a row (B)", 1.0),
    ("state_per_site", "state a site (MB)", 1e6),
    ("seconds", "seconds (virtual)", 1.0),
)
"""Columns of the tables: metric, heading, unit."""


def recorded(runs: Runs) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return runs as JSON has them: scheme -> x -> one object a seed."""
    return {
        scheme: {f"{x:g}": [_object(run) for run in points] for x, points in by_x.items()}
        for scheme, by_x in runs.items()
    }


def _object(run: Run) -> dict[str, Any]:
    costs = {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in asdict(run.costs).items()
    }
    return {"seed": run.seed, **costs}


def loaded(series: dict[str, Any]) -> Runs:
    """Return runs from JSON."""
    return {
        scheme: {float(x): [_run(run) for run in points] for x, points in by_x.items()}
        for scheme, by_x in series.items()
    }


def _run(found: dict[str, Any]) -> Run:
    return Run(found["seed"], Costs(**{k: v for k, v in found.items() if k != "seed"}))


def chart_name(number: int, setup: Setup) -> str:
    """Return the name of a chart's file without its ending."""
    return f"figure-{number}" + ("" if setup is Setup.ONE_BY_ONE else "-one-batch")


def document(result: dict[str, Any]) -> str:
    """Return tables and verdicts of all figures as Markdown."""
    numbers = sorted(int(number) for number in result if "setups" in result[number])
    return "\n".join([HEAD, *(line for n in numbers for line in _figure(n, result))]) + "\n"


HEAD = """# The figures of the thesis, run again

Written by `python -m benchmarks.recursive_figures --out docs/results` from
[figures.json](figures.json), verdicts included: do not edit. Sites compute in virtual time
([decision 20](../decisions/0020-experiments-run-in-virtual-time.md)). Tables show means over the
runs that finished, and half of the 95 % interval. A comparison is made over the runs that both
sides finished; where one was stopped at its limit, what it had cost until then bounds the ratio
(≥, ≤).
"""


def _figure(number: int, result: dict[str, Any]) -> Iterator[str]:
    found = result[str(number)]
    told = found["settings"]
    yield f"## Figure {number}: {found['title'][:1].lower()}{found['title'][1:]}\n"
    yield (
        f"Seeds: {told['seeds']}. A run may take {told['limit']:g} CPU seconds; a point that the "
        f"first {_runs(told['give_up'])} did not finish is left.\n"
    )
    for name, series in found["setups"].items():
        setup = Setup(name)
        figures: ByFigure = {
            int(other): loaded(parts["setups"][name])
            for other, parts in result.items()
            if name in parts.get("setups", {})
        }
        yield f"### {name[:1].upper()}{name[1:]}\n"
        yield f"![four panels by {found['x']}]({chart_name(number, setup)}.svg)\n"
        yield from _means(loaded(series), found["x"])
        yield from _verdicts(CLAIMS[number], figures)


def _runs(count: int) -> str:
    return "run" if count == 1 else f"{count} runs"


def _means(series: Runs, x_label: str) -> Iterator[str]:
    labels = [label for _, label, _ in COLUMNS]
    yield "| " + " | ".join(["scheme", x_label, "finished", *labels]) + " |"
    yield "|---|" + "---|" * (2 + len(labels))
    for scheme, by_x in series.items():
        for x, runs in sorted(by_x.items()):
            done = [run.costs for run in runs if run.costs.finished]
            cells = [_cell([getattr(c, name) / unit for c in done]) for name, _, unit in COLUMNS]
            yield (
                "| " + " | ".join([scheme, f"{x:g}", f"{len(done)} of {len(runs)}", *cells]) + " |"
            )
    yield ""


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    mean, half = interval(values)
    return f"{mean:.4g} ± {half:.2g}" if half else f"{mean:.4g}"


def _verdicts(claims: tuple[Claim, ...], figures: ByFigure) -> Iterator[str]:
    yield "| the thesis says | measured | it holds |"
    yield "|---|---|---|"
    for claim in claims:
        for number, evidence in enumerate(claim.evidence):
            points = list(evidence.points(figures))
            measured = "; ".join(f"{point.label}: {point.value}" for point in points)
            told = _told(points) if evidence.claimed else ""
            text = claim.text if number == 0 else ""
            yield f"| {text} | {evidence.text}: {measured} | {told} |"
    yield ""


def _told(points: list[Point]) -> str:
    """Return at which points a claim holds, and at which it cannot be told."""
    known = [point for point in points if point.holds is not None]
    held = [point.label for point in known if point.holds]
    open_ = [point.label for point in points if point.holds is None]
    told = f"at {len(held)} of {len(known)} points" if known else "cannot be told"
    if 0 < len(held) < len(known):
        told += f": {', '.join(held)}"
    return told + (f"; open at {', '.join(open_)}" if known and open_ else "")
