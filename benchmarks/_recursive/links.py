"""W1: links of a transit-stub network come and go; time of single updates."""

import json
import os
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._recursive.delete_rederive import DeleteRederive
from benchmarks._recursive.measuring import (
    Make,
    Phase,
    Timing,
    peers,
    product,
    quantile,
    same_updates,
    session,
)
from benchmarks._recursive.targets import Outcome
from benchmarks._recursive.workloads import Link, w1

DEFAULT = "default"
DRED = "strategy = 'dred'"
BY_HAND = "dred, by hand"
"""Delete-and-rederive written for reachability alone, which is faster than the general one."""

PATHWAY = "Pathway"
LISTED = ", rows listed"


class Pathway:
    """The peer Pathway as a process of its own; a pipe's way there and back is in its time."""

    def __init__(self, python: str) -> None:
        program = Path(__file__).with_name("pathway_peer.py")
        self._process = subprocess.Popen(  # noqa: S603  (our program, the Python the user names)
            [python, str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def load(self, links: tuple[Link, ...]) -> None:
        """Insert many links."""
        self._ask({"sign": 1, "links": links})

    def update(self, sign: int, link: Link) -> None:
        """Insert or delete a link."""
        self._ask({"sign": sign, "links": [link]})

    def digest(self) -> tuple[int, int]:
        """Return the number of rows, and 0 for their costs."""
        return int(self._ask({"sign": 0, "links": []})), 0

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait(10)

    def _ask(self, request: dict[str, Any]) -> str:
        to, back = self._process.stdin, self._process.stdout
        if to is None or back is None:
            raise RuntimeError("Pathway has no pipes")
        to.write(json.dumps(request) + "\n")
        to.flush()
        answer = back.readline()
        if not answer:
            raise RuntimeError("Pathway has ended")
        return answer


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
    python = os.environ.get("PATHWAY_PYTHON")
    if python and query == "reachable" and size <= 1_600:
        found[PATHWAY] = lambda _trace: Pathway(python)
    return found | peers(query)


def run_links(
    sizes: tuple[int, ...], rounds: int, cap: float
) -> tuple[dict[str, Any], list[Outcome]]:
    """Return the figures by size and query, and the outcomes P1 to P11."""
    figures: dict[str, Any] = {}
    times: Times = {}
    for size in sizes:
        trace = w1(size)
        for query in ("reachable", "cheapest"):
            found = session(trace, contestants(query, size), rounds=rounds, cap=cap)
            times[size, query] = found
            figures[f"{trace.name}, {query}"] = {n: t.summary() for n, t in found.items()}
    return figures, _outcomes(times)


Times = dict[tuple[int, str], dict[str, Timing]]
Statistic = Callable[[Phase], float]


def _median(phase: Phase) -> float:
    return quantile(phase.all(), 0.5)


def _visible_median(phase: Phase) -> float:
    return quantile(phase.seen(), 0.5)


def _p99(phase: Phase) -> float:
    return quantile(phase.all_cpu(), 0.99)


def _cpu_median(phase: Phase) -> float:
    return quantile(phase.all_cpu(), 0.5)


def _mean(phase: Phase) -> float:
    return statistics.fmean(phase.all_cpu())


def _ratio(over: Phase, under: Phase, statistic: Statistic) -> float | None:
    """Return one over the other, of the updates that both have done; None if none was visible."""
    over, under = same_updates(over, under)
    if statistic is _visible_median and not over.seen():
        return None
    return statistic(over) / statistic(under)


def _outcomes(times: Times) -> list[Outcome]:
    found: list[Outcome] = []

    def peers_of(size: int, query: str, kind: str) -> list[Phase]:
        kinds: dict[str, Callable[[str], bool]] = {
            "dred": lambda name: name in ("dred", BY_HAND),
            PATHWAY: lambda name: name == PATHWAY,
            "recompute": lambda name: name.startswith("recompute") and not name.endswith(LISTED),
            "listed": lambda name: name.endswith(LISTED),
            "rustworkx": lambda name: name == "recompute, rustworkx",
        }
        chosen = kinds[kind]
        run = times.get((size, query), {})
        return [timing.delete for name, timing in run.items() if chosen(name)]

    def note(letter: str, size: int, query: str, kind: str, statistic: Statistic = _median) -> None:
        """Note the fastest peer of a kind over ours."""
        phases = peers_of(size, query, kind)
        if not phases:
            found.append(Outcome(letter, None))
            return
        ours = times[size, query][DEFAULT].delete
        ratios = [_ratio(peer, ours, statistic) for peer in phases]
        known = [ratio for ratio in ratios if ratio is not None]
        found.append(Outcome(letter, min(known, default=None)))

    def inverse(letter: str, size: int, kind: str, own: Statistic, peers_: Statistic) -> None:
        """Note ours over the fastest peer of a kind."""
        phases = peers_of(size, "reachable", kind)
        ours = times[size, "reachable"][DEFAULT].delete if phases else Phase()
        pairs = [same_updates(ours, peer) for peer in phases]
        ratios = [own(mine) / peers_(peer) for mine, peer in pairs]
        found.append(Outcome(letter, max(ratios, default=None)))

    note("P1", 400, "reachable", "dred")
    note("P2", 1_600, "reachable", "dred")
    note("P3a", 400, "reachable", PATHWAY)
    note("P3b", 1_600, "reachable", PATHWAY)
    note("P5a", 1_600, "cheapest", "recompute")
    note("P5b", 6_400, "cheapest", "recompute")
    note("P6", 6_400, "reachable", "recompute")
    inverse("P7", 400, "rustworkx", _median, _median)
    inverse("P8", 6_400, "recompute", _p99, _cpu_median)
    for letter, size in (("P10a", 400), ("P10b", 1_600), ("P10c", 6_400)):
        note(letter, size, "reachable", "listed", _visible_median)
    note("P11a", 1_600, "cheapest", "recompute", _mean)
    note("P11b", 6_400, "cheapest", "recompute", _mean)
    return found
