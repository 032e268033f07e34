"""The benchmark of a fleet: a short run with both figures and everything back, and its table."""

import json
import subprocess
import sys

import pytest

from benchmarks._published.tables import fleet
from benchmarks.fleet import medians, middle
from deploy.cli.bench import BENCHMARKS


def test_the_median_leaves_out_what_is_not_there() -> None:
    assert middle([None, 3.0, 1.0, 2.0]) == 2.0
    assert middle([None]) is None
    runs = [{"coordinator": {"readings/s": each}} for each in (1.0, 5.0, 4.0)]
    assert medians(runs) == {"coordinator": {"readings/s": 4.0}}  # type: ignore[arg-type]


def test_a_table_has_a_line_per_process_and_dashes_for_what_is_not_measured() -> None:
    figures = {"per reading, µs": 12.4, "memory per gateway, kB": 5.0}
    by_process = {"coordinator": figures, "bare subscriber": {"per reading, µs": 3.0}}
    found = {"brokers": {"embedded": by_process}, "settings": {"gateways": 200, "rounds": 3}}
    lines = fleet(found).splitlines()
    assert "| embedded | coordinator | - | 12 | - | 5 | - | - | - |" in lines
    assert "| embedded | bare subscriber | - | 3 | - | - | - | - | - |" in lines
    assert lines[-1] == "200 gateways, median of 3 runs per broker."


@pytest.mark.end_to_end
@pytest.mark.timeout(900)
def test_a_small_fleet_is_measured_and_comes_back() -> None:
    command = [sys.executable, "-m", "benchmarks.fleet", "--quick", "--json"]
    done = subprocess.run(
        command, cwd=BENCHMARKS.parent, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout)
    coordinator = found["brokers"]["embedded"]["coordinator"]
    assert coordinator["readings/s"] > 10
    assert coordinator["broker's fall, all live, s"] < 60
    assert found["brokers"]["embedded"]["bare subscriber"]["memory without gateways, MB"] > 5
