"""Figures of devices in the documentation are those of the files in docs/results."""

import json
from pathlib import Path

import pytest

from benchmarks._argus.configurations import CONFIGURATIONS
from benchmarks._published.pages import DOCS, END, PAGES, rendered, with_tables
from benchmarks._published.tables import TABLES, device_faults, intake, number, sinks
from benchmarks.calibration import ROUNDS
from benchmarks.connectors import SECONDS, TURNS
from benchmarks.device_faults import arguments, settings
from benchmarks.optimizer import SEED


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_a_page_are_those_of_the_files(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == with_tables(page, text), "run: python -m benchmarks._published"


FULL = {
    "fleet.json": {"quick": False, "gateways": 200, "rounds": 3},
    "intake.json": {"quick": False, "rounds": 1, "load": None},
    "connectors.json": {"seconds": SECONDS, "turns": TURNS},
    "device-faults.json": settings(arguments().parse_args([])),
    "security.json": {"messages": 1_000_000, "requests": 100_000, "seed": 7},
    "mapping.json": {"turns": 5, "seconds": 1.0},
    "optimizer.json": {"seed": SEED, "quick": False},
    "calibration.json": {"seed": SEED, "quick": False, "rounds": ROUNDS},
    "argus.json": {
        "seed": 1,
        "scale": 0.02,
        "queries": 1_000,
        "sets": ["fed", "med", "fed-sums", "med-sums", "uniform", "normal", "mixture", "analysts"],
        "configurations": list(CONFIGURATIONS),
        "updates": 4,
        "budget": 150.0,
        "size_budget": 250.0,
    },
}


@pytest.mark.parametrize("file", FULL)
def test_published_figures_are_of_full_runs(file: str) -> None:
    found = json.loads((DOCS / "results" / file).read_text(encoding="utf-8"))
    assert found["settings"] == FULL[file]


def test_another_figure_changes_the_page(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    found = json.loads((DOCS / "results" / "mapping.json").read_text(encoding="utf-8"))
    found["formats"]["json (msgspec)"]["mapper, µs a payload"] = 99.96
    (tmp_path / "results" / "mapping.json").write_text(json.dumps(found), encoding="utf-8")
    text = (DOCS / "mapping.md").read_text(encoding="utf-8")
    changed = with_tables("mapping.md", text, tmp_path)
    assert changed != text
    assert "| json | 106 | 100.0 | 0.4 (msgspec) |" in changed


def test_what_nobody_has_measured_says_which_command_measures(tmp_path: Path) -> None:
    told = rendered(TABLES["intake"], tmp_path)
    assert told == "*Not measured yet: `python -m benchmarks.intake --out docs/results`.*"


def test_a_page_without_a_place_for_its_table_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"docs/sinks\.md has 0 places"):
        with_tables("sinks.md", "# Sinks\n")
    twice = f"<!-- figures: sinks -->\n{END}\n" * 2
    with pytest.raises(ValueError, match="has 2 places"):
        with_tables("sinks.md", twice)


def test_a_figure_that_is_not_there_is_a_dash() -> None:
    assert number(None) == "-"
    figures = {"unseen rows": 2, "unseen observations": 1, "busy %": 5.0, "µs": 31.0}
    figures |= dict.fromkeys(("p50 ms", "p99 ms"))  # type: ignore[arg-type]
    figures |= {"MB at rest": 34.0, "MB under load": 52.0}
    found = {"broker": "mosquitto", "missed": ["a"], "loads": {"MQTT": {"here": figures}}}
    assert "| MQTT | 3 | 5.0 | 31.0 | - | - | 34.0 | 52.0 |" in intake(found)
    assert intake(found).endswith("Broker: mosquitto. Missed: a.")


def test_losses_are_shown() -> None:
    counts = {"sent": 1_500, "acknowledged": 1_400, "arrived": 1_399, "lost": 1, "lost_before": 100}
    each = {
        **counts,
        "doubled": 7,
        "forgotten": 4,
        "allowed": 300,
        "kills": {"gateway": 2, "mqtt": 1},
    }
    each |= {"acknowledged when": "it says so", "seconds": 24.6}
    made_with = {"readings": 1_500, "seed": 1}
    found = {"connectors": {"mqtt": each}, "settings": made_with, "broker": "embedded"}
    line = "| mqtt | it says so | 1,500 | 1,400 | 1,399 | 1 | 100 | 7 | 4 | 300 | 3 | 25 |"
    assert line in device_faults(found)


def test_all_kinds_of_messages_of_sinks_have_a_line() -> None:
    found = json.loads((DOCS / "results" / "sinks.json").read_text(encoding="utf-8"))
    assert len(sinks(found).splitlines()) == 2 + 5
