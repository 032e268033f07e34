"""`pando table`: stored tables and what is in them."""

import json
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from streamsql.errors import DeploymentError
from tests.ui.kept_readings import with_leases
from ui.cli.commands.table_commands import add_table_commands


@pytest.fixture
def pando(console: Any) -> Any:
    """Run a command of `pando table` against the console."""
    with_leases(console.coordinator.lake)
    commands = typer.Typer()
    add_table_commands(commands)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(commands, [*arguments, "--console", console.address])

    return run


def test_tables_are_listed_with_what_is_wrong(pando: Any, console: Any) -> None:
    lake = console.coordinator.lake
    lake.stored = (msgspec.structs.replace(lake.stored[0], problem="file leases.csv is gone"),)
    shown = pando("status").output
    for word in ("leases", "csv leases.csv", "1.5 kB", "every 300 s", "leases.csv is gone"):
        assert word in shown
    assert json.loads(pando("status", "--format", "json").output)["tables"][0]["rows"] == 3
    lake.stored = ()
    assert "CREATE TABLE" in pando("status").output


def test_a_table_is_shown_with_its_values_and_rows(pando: Any, console: Any) -> None:
    shown = pando("show", "leases", "--rows", "3").output
    assert "values of all 3 rows" in shown
    figures = next(line for line in shown.splitlines() if "INTEGER" in line)
    assert figures.replace("│", " ").split()[:6] == ["seats", "INTEGER", "1", "2", "4", "9"]
    assert "the first 3 rows" in shown
    assert [asked.rows for asked in console.coordinator.lake.asked if asked.table] == [3]
    assert json.loads(pando("show", "leases", "--format", "json").output)["looked"] == 3
    console.coordinator.lake.problem = DeploymentError("table leases: no such file")
    refused = pando("show", "leases")
    assert refused.exit_code != 0
    assert "no such file" in refused.output
