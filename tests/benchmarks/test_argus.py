"""The protocol of the thesis runs, small, and finds other rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import argus
from benchmarks._argus.arriving_rows import Sizes
from benchmarks._argus.configurations import CONFIGURATIONS
from benchmarks._argus.live_network import LiveNetwork
from benchmarks._argus.query_sets import SETS
from benchmarks.argus import FEW, main

SMALL = ("--quick", "--json", "--scale", "0.002", "--queries", "8", "--sets", "fed", "med-sums")


@pytest.mark.timeout(120)
def test_it_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["sets"]) == {"fed", "med-sums"}
    for each in found["sets"].values():
        assert [one["queries"] for one in each["rounds"]] == [4, 8]
        assert set(each["rounds"][-1]["configurations"]) == set(FEW)
        assert each["rounds"][-1]["configurations"]["off"]["nodes"] > 8


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_answers_are_those_of_duckdb_after_updates(configuration: str) -> None:
    stream = SETS["fed"].stream(Sizes(800, 20, 2), 3)
    network = LiveNetwork(stream, configuration)
    network.register([each.text for each in SETS["fed"].queries()[12:18]])
    before = network.figures()["answers"]
    assert network.unlike_duckdb() == []
    for number in range(2):
        assert network.update(number).bytes > 0
    assert network.figures()["answers"] != before
    assert network.unlike_duckdb() == []


def test_figures_of_a_set_are_there_where_a_later_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(name: str, *_rest: object) -> dict[str, Any]:
        if name == "med":
            raise AssertionError("other rows")
        return {"title": "FED", "queries": 1, "history": 1, "batch": 1, "rounds": []}

    monkeypatch.setattr(argus, "_measured", measured)
    with pytest.raises(AssertionError, match="other rows"):
        main(["--quick", "--sets", "fed", "med", "--out", str(tmp_path)])
    assert list(json.loads((tmp_path / "argus.json").read_text())["sets"]) == ["fed"]
