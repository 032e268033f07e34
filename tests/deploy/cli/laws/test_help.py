"""`--help` of every command says what it does and shows how it is used."""

import re
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from deploy.cli.main import app


def commands(command: Any, name: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(command, "commands", None)
    if below is None:
        return [name]
    return [found for sub, c in below.items() for found in commands(c, (*name, sub))]


ALL = commands(typer.main.get_command(app))


def help_of(*command: str) -> str:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*command, "--help"])
    assert done.exit_code == 0
    return done.stdout


def test_the_contract_has_every_command() -> None:
    promised = (
        "up shell run doctor bench explain|query run|query list|query show|query stop"
        "|gateway list|gateway show|source list|source describe|table list|table describe"
        "|view list|view describe"
    )
    singles, *pairs = promised.split("|")
    expected = {(name,) for name in singles.split()} | {tuple(pair.split()) for pair in pairs}
    assert expected <= set(ALL)


def test_the_first_commands_come_first() -> None:
    text = help_of()
    listed = re.findall(r"^  (\w+)  ", text[text.index("Commands:") :], re.MULTILINE)
    assert listed[:3] == ["up", "doctor", "shell"]
    assert "pando up    " in text


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_help_reads_well(command: tuple[str, ...]) -> None:
    text = help_of(*command)
    assert text.startswith("Usage: ")
    summary = text.splitlines()[2].strip()
    assert summary[0].isupper()
    assert len(summary) > 10
    assert "\b" not in text
    # An example stands on a line of its own, never joined to the next.
    for line in text.splitlines():
        assert line.count("  pando ") <= 1, line


@pytest.mark.parametrize("command", ["up", "run", "shell", "bench", "doctor"])
def test_examples_are_shown(command: str) -> None:
    assert f"    pando {command}" in help_of(command)


@pytest.mark.parametrize("command", [c for c in ALL if c[-1] == "list"], ids=" ".join)
def test_everything_that_lists_can_do_so_in_json(command: tuple[str, ...]) -> None:
    assert "--format" in help_of(*command)


def test_a_command_loads_neither_the_language_nor_the_optimizer_before_it_needs_them() -> None:
    heavy = ("federated_optimizer", "sqlglot", "streamsql.syntax", "host.mqtt", "stream_engine")
    asked = f"import deploy.cli.main, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
