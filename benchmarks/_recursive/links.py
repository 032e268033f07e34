"""W1: links of a transit-stub network come and go; time of single updates."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks._recursive.delete_rederive import DeleteRederive
from benchmarks._recursive.measuring import Make, Timing, peers, product, quantile, session
from benchmarks._recursive.targets import Outcome
from benchmarks._recursive.workloads import LinkTrace, w1

DEFAULT = "default"
DRED = "strategy = 'dred'"
BY_HAND = "dred, by hand"
"""Delete-and-rederive written for reachability alone, which is faster than the general one."""


def contestants(query: str, size: int) -> dict[str, Make]:
    """Return the product in several ways and the peers.

    Args:
        query: "reachable" or "cheapest".
        size: Links; ways that slow down with the size of the view take part while it is small.
    """
    found = {DEFAULT: product(query)}
    if size <= 1_600:
        found["ranked"] = product(query, "strategy = 'ranked'")
    if query == "reachable" and size <= 1_600:
        found[BY_HAND] = lambda _trace: DeleteRederive()
    if size <= 400:
        found["dred"] = product(query, DRED)
        found["absorption"] = product(query, "strategy = 'absorption'")
        if query == "reachable":
            found["absorption, bdd"] = product(
                query, "strategy = 'absorption', annotations = 'bdd'"
            )
    return found | peers(query)


def run_links(
    sizes: tuple[int, ...], rounds: int, cap: float
) -> tuple[dict[str, Any], list[Outcome]]:
    """Return the figures by size and query, and the outcomes P1 to P8."""
    figures: dict[str, Any] = {}
    times: dict[tuple[int, str], dict[str, Timing]] = {}
    pathway: dict[int, float | None] = {}
    for size in sizes:
        trace = w1(size)
        for query in ("reachable", "cheapest"):
            makers = contestants(query, size)
            found = session(trace, makers, rounds=rounds, cap=cap)
            times[size, query] = found
            figures[f"{trace.name}, {query}"] = {n: t.summary() for n, t in found.items()}
        if size <= 1_600:
            figure = pathway_figures(trace, cap)
            pathway[size] = figure["delete"] if figure else None
            if figure:
                figures[f"{trace.name}, reachable"]["Pathway"] = figure
    return figures, _outcomes(times, pathway)


def pathway_figures(trace: LinkTrace, cap: float) -> dict[str, float] | None:
    """Return medians of Pathway in milliseconds; None where there is none, or it gives up.

    PATHWAY_PYTHON names the Python of an environment that has it.

    Raises:
        AssertionError: Its view has another number of rows.
    """
    python = os.environ.get("PATHWAY_PYTHON")
    if not python:
        return None
    measured = trace.measured_inserts
    given = {
        "load": trace.links[:-measured],
        "insert": trace.links[-measured:],
        "delete": trace.deletions,
        "cap": cap,
    }
    program = Path(__file__).with_name("pathway_peer.py")
    done = subprocess.run(  # noqa: S603  (our program, with the Python the user names)
        [python, str(program)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300 + 4 * cap,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(f"Pathway gave up on {trace.name}: {done.stderr.strip()[-200:]}\n")
        return None
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return {
        "insert": round(quantile(found["insert"], 0.5), 3),
        "delete": round(quantile(found["delete"], 0.5), 3),
        "delete_p99": round(quantile(found["delete"], 0.99), 3),
        "rows": found["rows"],
    }


def _outcomes(
    times: dict[tuple[int, str], dict[str, Timing]], pathway: dict[int, float | None]
) -> list[Outcome]:
    found: list[Outcome] = []

    def delete(size: int, query: str, name: str, share: float = 0.5) -> float | None:
        timing = times.get((size, query), {}).get(name)
        return None if timing is None else timing.delete.quantile(share)

    def best_recompute(size: int, query: str) -> float | None:
        names = [n for n in times.get((size, query), {}) if n.startswith("recompute")]
        values = [delete(size, query, name) for name in names]
        return min((v for v in values if v is not None), default=None)

    def ratio(letter: str, over: float | None, under: float | None) -> None:
        known = over is not None and under is not None
        found.append(Outcome(letter, over / under if known else None))  # type: ignore[operator]

    for letter, size in (("P1", 400), ("P2", 1_600)):
        baselines = [delete(size, "reachable", name) for name in ("dred", BY_HAND)]
        fastest = min((value for value in baselines if value is not None), default=None)
        ratio(letter, fastest, delete(size, "reachable", DEFAULT))
    for letter, size in (("P3a", 400), ("P3b", 1_600)):
        ratio(letter, pathway.get(size), delete(size, "reachable", DEFAULT))
    for letter, size in (("P5a", 1_600), ("P5b", 6_400)):
        ratio(letter, best_recompute(size, "cheapest"), delete(size, "cheapest", DEFAULT))
    ratio("P6", best_recompute(6_400, "reachable"), delete(6_400, "reachable", DEFAULT))
    ratio(
        "P7",
        delete(400, "reachable", DEFAULT),
        delete(400, "reachable", "recompute, rustworkx"),
    )
    ratio("P8", delete(6_400, "reachable", DEFAULT, 0.99), best_recompute(6_400, "reachable"))
    return found
