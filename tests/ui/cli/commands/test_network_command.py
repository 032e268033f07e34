"""`pando network`: the table, JSON and the graph."""

import json
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from federated_optimizer.coordinator.contract.network_model import (
    DifferenceKind,
    IndexDifference,
    IndexReport,
    Network,
)
from tests.ui.api.resources.test_network_routes import KEPT, NETWORK, RESULT
from ui.cli.commands.http_commands import app
from ui.cli.commands.network_command import network_app


@pytest.fixture
def pando(console: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run `pando network` against the console."""
    console.coordinator.nodes = NETWORK
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(app, "registered_groups", list(app.registered_groups))
    app.add_typer(network_app, name="network")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["network", *arguments, "--console", console.address])

    return run


def test_nodes_are_a_table(pando: Any) -> None:
    shown = pando().output
    for word in ("17/f1", "selection", "seatsensor WHERE weightlevel > 5", "gw-1, gw-2", "310.2"):
        assert word in shown
    assert "41 of 41" in shown
    assert "kept for others" in shown
    assert shown.endswith("3 nodes, 41 queries; 3 nodes of queries that you may not read.\n")


def test_a_narrow_terminal_shows_fewer_columns(pando: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = pando().output
    for word in ("17/f1", "selection", "41 of 41", "computes"):
        assert word in shown
    assert "owner" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_texts_of_users_are_no_markup(pando: Any, console: Any) -> None:
    marked = replace(RESULT, computes="heat [RANGE 5 min] WHERE a = '[bold]'", owner="[red]x[/red]")
    console.coordinator.nodes = Network((marked,), 41)
    shown = pando().output
    for word in ("heat [RANGE 5 min] WHERE a = '[bold]'", "[red]x[/red]"):
        assert word in shown


def test_nodes_are_json_and_a_graph(pando: Any) -> None:
    found = json.loads(pando("--json").output)
    assert [node["node"] for node in found["nodes"]] == ["17", "17/f1", "16"]
    assert json.loads(pando("--format", "json").output) == found
    assert pando("--format", "dot").output.startswith("digraph")
    assert len(json.loads(pando("--json", "--most", "1").output)["nodes"]) == 1
    assert pando("--format", "csv").exit_code != 0


def test_an_empty_network_says_so(pando: Any, console: Any) -> None:
    console.coordinator.nodes = Network(())
    assert pando().output.splitlines()[-1] == "No query runs, so there are no nodes."
    console.coordinator.nodes = Network((KEPT,), hidden=1)
    said = "1 node, 0 queries; 1 node of queries that you may not read."
    assert pando().output.splitlines()[-1] == said


def test_nodes_that_are_not_listed_are_counted(pando: Any) -> None:
    assert "2 nodes not listed (--most)" in pando("--most", "1").output


def test_a_right_index_is_said_to_be_right(pando: Any) -> None:
    found = pando("check")
    said = "The index in the catalog is right: 2 runs compared.\n"
    assert (found.exit_code, found.output) == (0, said)


def test_differences_are_a_table_and_an_exit_status(pando: Any, console: Any) -> None:
    differences = (
        IndexDifference("q7", "literals", DifferenceKind.DIFFERENT, "[red]3f"),
        IndexDifference("q9", "run", DifferenceKind.SURPLUS, "no stored query reads it"),
    )
    console.coordinator.index_report = IndexReport(2, differences)
    found = pando("check")
    for word in ("q7", "literals", "different", "[red]3f", "surplus", "no stored query reads it"):
        assert word in found.output
    assert found.output.endswith("mend them with: pando network check --rebuild.\n")
    assert found.exit_code == 1
    as_json = pando("check", "--json")
    assert [each["run"] for each in json.loads(as_json.output)["differences"]] == ["q7", "q9"]
    assert as_json.exit_code == 1
    console.coordinator.index_report = IndexReport(2, differences, moving=1)
    assert "1 run on trial" in pando("check").output


def test_a_rebuilt_index_is_no_error(pando: Any, console: Any) -> None:
    missing = IndexDifference("q7", "run", DifferenceKind.MISSING, "queries read it")
    console.coordinator.index_report = IndexReport(2, (missing,))
    found = pando("check", "--rebuild")
    assert found.output.endswith("1 difference, 2 runs compared; the index has been mended.\n")
    assert found.exit_code == 0
