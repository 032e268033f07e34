"""The benchmark of intake: what it counts as missing, and a short run in which nothing is."""

import json
import subprocess
import sys

import pytest

from benchmarks._intake.reader import percentile
from benchmarks._intake.targets import Figures, missed, unseen
from benchmarks.intake import medians
from deploy.cli.bench import BENCHMARKS

REST_MB = 40.0
"""Of a gateway at rest on any machine: the target is 35 MB, and libraries of others differ."""
GOOD: Figures = {
    "unseen rows": 0,
    "unseen observations": 0,
    "p50 ms": 2.5,
    "late s": 0.1,
    "MB at rest": 33.0,
}


def test_there_is_no_latency_without_rows() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert medians([{"p50 ms": None}, {"p50 ms": 4.0}]) == {"p50 ms": 4.0}
    assert medians([{"p50 ms": None}]) == {"p50 ms": None}


def test_what_is_unseen_is_named() -> None:
    loads = {"a": GOOD, "b": {**GOOD, "unseen rows": 3}}
    assert unseen(loads) == ["b: 3 unseen rows"]
    assert missed({"a": GOOD}) == []


@pytest.mark.parametrize(
    ("load", "figures", "words"),
    [
        ("MQTT, QoS 1, 50/s", {"p50 ms": 3.5}, "p50 ms 3.5; the target is 3"),
        ("MQTT, QoS 1, 50/s", {"p50 ms": None}, "p50 ms is unknown; the target is 3"),
        ("MQTT, QoS 0, 12,000/s", {"late s": 4.0}, "late s 4.0; the target is 1"),
        ("anything", {"MB at rest": 35.1}, "MB at rest 35.1; the target is 35"),
    ],
)
def test_missed_targets_are_named(load: str, figures: Figures, words: str) -> None:
    assert missed({load: {**GOOD, **figures}}) == [f"{load}: {words}"]


def test_targets_are_those_of_their_loads() -> None:
    busy = {**GOOD, "p50 ms": 500.0, "late s": 5.0}
    assert not missed({"MQTT, QoS 0, 1,000/s": busy})


@pytest.mark.end_to_end
@pytest.mark.timeout(900)
def test_nothing_is_unseen_and_a_gateway_at_rest_is_small() -> None:
    command = [sys.executable, "-m", "benchmarks.intake", "--quick", "--json"]
    done = subprocess.run(
        command, cwd=BENCHMARKS.parent, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    found = json.loads(done.stdout)
    assert found["missed"] == []
    for name, by_tree in found["loads"].items():
        figures = by_tree["here"]
        assert figures["unseen rows"] <= 0, name
        assert figures["unseen observations"] <= 0, name
        assert figures["MB at rest"] <= REST_MB, name
        assert figures["MB under load"] >= figures["MB at rest"] * 0.9, name
        assert figures["p50 ms"] > 0, name
