"""Do estimates of processor time put fragments in the measured order, before and after calibration?

    python -m benchmarks.calibration [--quick] [--json] [--out docs/results]

The queries of the sample building run in a simulated federation of three gateways and a base: at
most four plans of each, among them the one that pushes everything and the one that ships
everything. Measured is the processor time of the real engine at all gateways and at the base, with
encoding and decoding of batches, less what the sites take without a query. A plan is one point for
its gateways and one for its base.

Estimated is the same by three sets of constants: those that were guessed before anything was
measured, the defaults of this release, and those of a calibration in the same run. Plans, sites
without a query and the workloads of the calibration take turns, round by round; medians of the
rounds count.

Regret is what the plan with the least estimate took over what the best of a query's took. Rank
correlation is Spearman's. `times off` is by what an estimate is wrong, either way, a
hundredth of a millisecond a second added to both. Only what is measured in one run is compared.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track

from benchmarks._calibration.estimated_plans import (
    DEFAULTS,
    GUESSED,
    Constants,
    constants_of,
    estimated,
)
from benchmarks._calibration.measured_plans import processor_times, sources_of
from benchmarks._figures import write_results
from benchmarks._optimizer.forced_plans import bound_in
from benchmarks._optimizer.gate_worlds import questions as all_questions
from benchmarks._optimizer.known_facts import known_facts
from benchmarks._optimizer.questions import Question
from benchmarks._optimizer.regrets import spearman
from benchmarks._optimizer.worlds import Readings
from benchmarks._published.pages import with_tables
from deploy.calibration.batch_times import BatchTimes
from deploy.calibration.bunch_times import BunchTimes
from deploy.calibration.operator_times import OperatorTimes
from federated_optimizer import Topology, colocation_of, normalize, plan
from federated_optimizer.search.choosing import PUSHED, Search
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.metrics import metric_of
from streamsql.algebra.operators import Plan
from streamsql.wire.fragments import FragmentBundle

SEED = 1
FILE = "calibration.json"
PAGE = "calibration.md"
ROUNDS = 3
PLANS = 4
LITTLE = 0.01
"""Milliseconds a second that are added to both sides of a ratio."""
PLACES = ("gateways", "base")


@dataclass(slots=True)
class Measured:
    """Plans of a query while they are measured.

    Attributes:
        readings: Of the sources that the query reads.
        idle: Milliseconds a second of the sites without the query, by round.
        used: The same of each plan.
    """

    question: Question
    ready: Plan
    topology: Topology
    known: Statistics
    readings: Readings
    bundles: dict[int, FragmentBundle]
    idle: list[tuple[float, float]] = field(default_factory=list)
    used: dict[int, list[tuple[float, float]]] = field(default_factory=dict)

    def round(self) -> None:
        """Run all plans once, and the sites without any."""
        world = self.question.world
        self.idle.append(processor_times(world, None, self.readings))
        for number, bundle in self.bundles.items():
            took = processor_times(world, bundle, self.readings)
            self.used.setdefault(number, []).append(took)

    def points(self, sets: dict[str, Constants]) -> list[dict[str, Any]]:
        """Return what was measured and estimated of each plan's gateways and base."""
        found = []
        for number, used in self.used.items():
            by_set = {
                name: estimated(self.ready, self.topology, self.known, number, constants)
                for name, constants in sets.items()
            }
            for at, where in enumerate(PLACES):
                took = median(each[at] for each in used) - median(each[at] for each in self.idle)
                estimates = {name: round(each[at], 4) for name, each in by_set.items()}
                measured = round(max(took, 0.0), 4)
                off = {f"{k} off": round(times_off(e, measured), 2) for k, e in estimates.items()}
                point = {"query": self.question.name, "plan": number, "where": where}
                found.append({**point, "measured": measured, **estimates, **off})
        return found


def prepared(question: Question) -> Measured:
    """Return a query with some of its plans."""
    world = question.world
    readings = world.readings(SEED)
    topology = Topology(
        dict.fromkeys(world.gateways, world.heard), colocation=colocation_of(world.catalog)
    )
    bound = bound_in(question.text, world)
    ready = normalize(bound.plan, topology)
    known = known_facts(world, ready, readings)
    search = Search(ready, topology, known)
    cheap = Search(ready, topology, known, metric_of("cpu")).taken().number
    listed = [each.number for each in search.alternatives().listed]
    numbers = list(dict.fromkeys((PUSHED, search.memo.shipping, cheap, *listed)))[:PLANS]
    bundles = {
        number: plan(replace(bound, asked=number), topology, query="q", statistics=known)
        for number in numbers
    }
    # What the sites take for other sources would only add noise to both sides of a difference.
    read = frozenset[str]().union(*map(sources_of, bundles.values()))
    heard = [reading for reading in readings if reading[2].lower() in read]
    return Measured(question, ready, topology, known, heard, bundles)


def questions(*, quick: bool) -> list[Question]:
    """Return the queries of the building, recursions among them."""
    nowhere = Path("no recordings")
    house = [each for each in all_questions(nowhere, quick=False) if each.world.name == "building"]
    return house[::8] if quick else house


def measure(*, quick: bool) -> dict[str, Any]:
    """Return all figures."""
    rounds = 2 if quick else ROUNDS
    console = Console(stderr=True)
    asked = [prepared(each) for each in track(questions(quick=quick), "plans", console=console)]
    operators, bunches, batches = OperatorTimes(), BunchTimes(), BatchTimes()
    for _ in track(range(rounds), "rounds", console=console):
        for each in asked:
            each.round()
            operators.round()
            bunches.round()
            batches.round()
    found = [*operators.measurements(), *bunches.measurements()]
    found += batches.measurements(operators.silent())
    measured = {each.name: each.value for each in found}
    sets = {"guessed": GUESSED, "defaults": DEFAULTS, "calibrated": constants_of(measured)}
    points = [point for each in asked for point in each.points(sets)]
    return {
        "settings": {"seed": SEED, "quick": quick, "rounds": rounds},
        "constants": {
            each.name: [round(n, 3) for n in (each.value, each.low, each.high)] for each in found
        },
        "figures": {name: figures(points, name) for name in sets},
        "points": points,
    }


def figures(points: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return ranks and errors of a set of constants by place and of whole plans, and the regret."""
    wholes = plans_of(points, name)
    places = {
        "whole plans": wholes,
        **{where: [each for each in points if each["where"] == where] for where in PLACES},
    }
    found: dict[str, Any] = {}
    for where, chosen in places.items():
        estimates, took = [each[name] for each in chosen], [each["measured"] for each in chosen]
        off = [times_off(a, b) for a, b in zip(estimates, took, strict=True)]
        found[where] = {
            "points": len(chosen),
            "spearman": spearman(estimates, took),
            "times off: median": round(median(off), 2),
            "times off: most": round(max(off), 2),
        }
    by_query = {
        each["query"]: [p for p in wholes if p["query"] == each["query"]] for each in wholes
    }
    regrets = [_regret(plans, name) for plans in by_query.values()]
    found["regret"] = {
        "queries": len(regrets),
        "median": round(median(regrets), 2),
        "worst": round(max(regrets), 2),
    }
    return found


def plans_of(points: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the sums of the places of each plan."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for point in points:
        key = (point["query"], point["plan"])
        whole = found.setdefault(key, {"query": key[0], "measured": 0.0, name: 0.0})
        whole["measured"] += point["measured"]
        whole[name] += point[name]
    return list(found.values())


def _regret(plans: Sequence[dict[str, Any]], name: str) -> float:
    """Return what the plan of the least estimate took over what the best one took."""
    taken = min(plans, key=lambda each: each[name])["measured"]
    best: float = min(each["measured"] for each in plans)
    return float((taken + LITTLE) / (best + LITTLE))


def times_off(estimate: float, measured: float) -> float:
    """Return by what an estimate is wrong, either way.

    Examples:
        >>> times_off(0.19, 0.09), times_off(0.09, 0.19), times_off(0.0, 0.0)
        (2.0, 2.0, 1.0)
    """
    ratio = (estimate + LITTLE) / (measured + LITTLE)
    return max(ratio, 1 / ratio)


def printed(found: dict[str, Any]) -> str:
    """Return the figures as text."""
    lines = [f"{'':<14}{'':<14}{'points':>7}{'ranks':>8}{'times off':>11}{'most':>8}"]
    for name, places in found["figures"].items():
        for where, each in places.items():
            if where == "regret":
                continue
            rank = "-" if each["spearman"] is None else f"{each['spearman']:.3f}"
            median_off, most = each["times off: median"], each["times off: most"]
            lines.append(
                f"{name:<14}{where:<14}{each['points']:>7}{rank:>8}{median_off:>11}{most:>8}"
            )
    lines.append("")
    for name, places in found["figures"].items():
        regret = places["regret"]
        lines.append(f"regret, {name}: median {regret['median']}, worst {regret['worst']}")
    lines.append("")
    for name, (value, low, high) in found["constants"].items():
        lines.append(f"{name:<26}{value:>10g}   {low:g} to {high:g}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(
        description="Estimated and measured processor time of the fragments of sites."
    )
    parser.add_argument("--quick", action="store_true", help="fewer queries and rounds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--out", type=Path, help=f"folder for {FILE}; the tables of its page are written anew"
    )
    options = parser.parse_args(argv)
    found = measure(quick=options.quick)
    write_results(options.out, FILE, found)
    if options.out is not None and (page := options.out / PAGE).exists():
        text = with_tables(
            f"results/{PAGE}", page.read_text(encoding="utf-8"), options.out.resolve().parent
        )
        page.write_text(text, encoding="utf-8")
    print(json.dumps(found, indent=1) if options.json else printed(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
