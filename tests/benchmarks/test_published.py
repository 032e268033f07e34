"""What is published was made by the commands as they stand, and says what the runs say."""

import argparse
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks._recursive.claims import BYTES, CLAIMS, METRICS, Both, Ratio, compared
from benchmarks._recursive.figures import FIGURES
from benchmarks._recursive.measuring import Phase, same_updates
from benchmarks._recursive.report import chart_name, document, loaded, recorded
from benchmarks._recursive.trials import Run, Runs, Setup
from benchmarks._recursive.virtual_network import Costs

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


def published(name: str) -> dict[str, Any]:
    """Return a file of figures."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text())
    return found


def defaults(benchmark: str) -> tuple[Any, argparse.Namespace]:
    """Return a benchmark and its options as they are when nothing is said."""
    module = importlib.import_module(f"benchmarks.{benchmark}")
    return module, module.arguments().parse_args([])


def runs_of(**by_scheme: dict[float, list[tuple[int, float, bool]]]) -> Runs:
    """Return runs whose bytes are as given: scheme -> x -> (seed, bytes, finished)."""
    return {
        scheme: {
            x: [Run(s, Costs(0.0, size, 0.0, 0.0, done, 0)) for s, size, done in runs]
            for x, runs in by_x.items()
        }
        for scheme, by_x in by_scheme.items()
    }


def earlier() -> str:
    """Return what the results say of figures that the commands of today have not made."""
    return (RESULTS / "README.md").read_text().partition("## Figures of earlier commands")[2]


def parts_of(name: str, found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the parts of a file that are made alone, with what they are called."""
    match name:
        case "figures.json":
            yield from ((number, part) for number, part in found.items() if number != "10")
        case "gateways.json":
            yield "gateways", found
        case "soak-faults.json":
            yield "soak", found
        case _:
            yield from found.items()


PUBLISHED = {
    "figures.json": "recursive_figures",
    "goals.json": "recursive",
    "gateways.json": "recursive_gateways",
    "soak.json": "recursive_soak",
    "soak-faults.json": "soak_faults",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_figures_are_made_with_the_defaults_or_said_to_be_older(name: str) -> None:
    module, options = defaults(PUBLISHED[name])
    for label, part in parts_of(name, published(name)):
        if "settings" not in part:
            assert f"`{name}`" in earlier()
            assert label in earlier() or name == "soak.json", label
        elif name == "soak.json":
            assert part["settings"] == module.settings(options, label)
        else:
            assert part["settings"] == module.settings(options), label


def test_a_soak_ends_after_its_index_was_cleared() -> None:
    for subject, found in published("soak.json").items():
        if "settings" in found:
            assert not found["grown"], subject
            assert "mentions" not in found["first half"] or min(found["cleared"]) > 0, subject


def test_the_comparison_is_that_of_the_runs() -> None:
    assert (RESULTS / "figures.md").read_text() == document(published("figures.json"))


def test_every_chart_is_there() -> None:
    for number, figure in published("figures.json").items():
        for name in figure.get("setups", {}):
            assert (RESULTS / f"{chart_name(int(number), Setup(name))}.svg").exists()


def test_every_claim_is_held_against_runs_that_are_there() -> None:
    assert set(CLAIMS) == {figure.number for figure in FIGURES}
    runs: dict[int, Runs] = {
        int(number): loaded(figure["setups"][Setup.ONE_BY_ONE])
        for number, figure in published("figures.json").items()
        if "setups" in figure
    }
    for number in runs:
        for claim in CLAIMS[number]:
            for evidence in claim.evidence:
                assert list(evidence.points(runs)), (number, evidence.text)


def test_runs_come_back_from_json() -> None:
    runs = runs_of(a={0.25: [(1, 3.5, True), (2, 4.5, False)]})
    assert loaded(json.loads(json.dumps(recorded(runs)))) == runs


@pytest.mark.parametrize(
    ("upper", "lower", "value", "holds"),
    [
        # Means over all survivors would say 51 / 2: seed 2 finished above only.
        ([(1, 2.0, True), (2, 100.0, True)], [(1, 2.0, True), (2, 9.0, False)], "1.00", False),
        ([(1, 30.0, False)], [(1, 2.0, True)], "≥ 15", True),
        ([(1, 3.0, False)], [(1, 2.0, True)], "≥ 1.50", None),
        ([(1, 3.0, True)], [(1, 2.0, False)], "≤ 1.50", False),
        ([(1, 30.0, True)], [(1, 2.0, False)], "≤ 15", None),
        ([(1, 30.0, False)], [(1, 2.0, False)], "not finished", None),
        ([(1, 30.0, True)], [(2, 2.0, True)], "not finished", None),
    ],
)
def test_schemes_are_compared_over_the_same_runs(
    upper: list[tuple[int, float, bool]],
    lower: list[tuple[int, float, bool]],
    value: str,
    holds: bool | None,
) -> None:
    runs = runs_of(a={1.0: upper}, b={1.0: lower})
    point = compared(("1", runs["a"][1.0], runs["b"][1.0]), BYTES, 10.0)
    assert (point.value, point.holds) == (value, holds)


def test_a_claim_of_half_is_not_met_by_what_costs_the_same() -> None:
    # Two of 100 bytes and both together for 100: half of the sum, all of one.
    runs = {18: runs_of(a={4.0: [(1, 100.0, True)]}, b={4.0: [(1, 100.0, True)]})}
    runs[18]["both"] = runs[18]["a"]
    (single,) = Ratio(18, "a", "both", BYTES, 2).points(runs)
    (one_after_the_other,) = Both(18, "a", "b", "both", BYTES, 2).points(runs)
    assert (single.value, single.holds) == ("1.00", False)
    assert (one_after_the_other.value, one_after_the_other.holds) == ("2.00", True)


def test_times_are_compared_over_the_same_updates() -> None:
    long, short = Phase([[1.0, 2.0, 90.0]], [[1.0, 2.0, 90.0]]), Phase([[5.0, 6.0]], [[5.0, 6.0]])
    assert [phase.all() for phase in same_updates(long, short)] == [[1.0, 2.0], [5.0, 6.0]]


def test_a_summary_shows_what_medians_hide() -> None:
    phase = Phase([[1.0, 1.0, 1.0, 100.0]], [[1.0, 1.0, 1.0, 80.0]], [[False, False, False, True]])
    told = phase.summary()
    assert told["p50_ms"] == 1.0
    assert told["visible"] == 1
    assert told["visible_p50_ms"] == told["max_ms"] == 100.0
    assert told["mean_ms"] == 25.75
    assert told["max_cpu_ms"] == 80.0


def test_every_metric_has_a_name() -> None:
    assert set(METRICS) < set(Costs.__dataclass_fields__)
