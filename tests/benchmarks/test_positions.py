"""The figures of positions: made by the command as it stands, and shown as they are."""

import json
from typing import Any

import pytest

from benchmarks.positions import accuracy, arguments, markdown
from tests.docs.markdown import ROOT

PUBLISHED: dict[str, Any] = json.loads((ROOT / "docs" / "results" / "positions.json").read_text())
PAGE = (ROOT / "docs" / "positions.md").read_text()


@pytest.mark.parametrize("table", PUBLISHED["tables"])
def test_the_page_shows_each_table(table: str) -> None:
    assert markdown(PUBLISHED["tables"][table]) in PAGE


def test_they_are_of_the_defaults() -> None:
    defaults = vars(arguments().parse_args([]))
    assert PUBLISHED["settings"] == {name: defaults[name] for name in PUBLISHED["settings"]}


def test_accuracy_comes_out_the_same() -> None:
    for name, table in accuracy().items():
        assert table == PUBLISHED["tables"][name], name


def test_hysteresis_and_increments_pay() -> None:
    between = PUBLISHED["tables"]["between two receivers"]
    label = "room changes an hour"
    assert between["strongest_room"][label] * 10 < between["without hysteresis"][label]
    assert all(row["times"] > 5 for row in PUBLISHED["tables"]["cost"].values())
