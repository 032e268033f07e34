"""Tables of commands in terminals of every width."""

import json
from typing import Any

import pytest

from ui.cli.printing import ChangePrinter, UpsertPrinter, print_list

ROWS: list[dict[str, Any]] = [
    {f"column {n}": f"value {n} of the first row" for n in range(9)},
    {"column 3": None},
]
COLUMNS = [f"column {n}" for n in range(9)]


@pytest.mark.parametrize("width", [40, 80, 120, 400])
def test_no_column_vanishes(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_list(ROWS, COLUMNS, "table")
    shown = "".join(character for character in capsys.readouterr().out if character not in "│ \n")
    assert all(f"column{n}" in shown for n in (0, 4, 8))
    assert "NULL" in shown


def test_a_narrow_terminal_gets_blocks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_list(ROWS, COLUMNS, "table")
    lines = capsys.readouterr().out.splitlines()
    assert "column 8  value 8 of the first row" in lines
    assert sum(line.startswith("──") for line in lines) == len(ROWS)
    print_list(ROWS, COLUMNS[:2], "table")
    assert "┃ column 0" in capsys.readouterr().out


def test_an_empty_list_has_its_heads(capsys: pytest.CaptureFixture[str]) -> None:
    print_list([], ["a", "b"], "table")
    assert "┃ a ┃ b ┃" in capsys.readouterr().out
    print_list([], ["a"], "json")
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("printer", [ChangePrinter, UpsertPrinter])
def test_headings_of_tables_have_units(
    printer: type[ChangePrinter], capsys: pytest.CaptureFixture[str]
) -> None:
    printer("table", ["device", "temp"], ["", "Cel"])
    assert capsys.readouterr().out == "   device │ temp Cel\n"
    printer("csv", ["device", "temp"], ["", "Cel"])
    assert capsys.readouterr().out.strip().endswith("device,temp")
