"""`pando gateway provision` and its neighbours over a console."""

import json
from typing import Any

from typer.testing import CliRunner, Result

from deploy.cli.main import app


def pando(console: Any, *words: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, ["gateway", *words, "--console", console.address], input=typed)


def test_provisioning_prints_the_command_for_the_other_machine(console: Any) -> None:
    made = pando(console, "provision", "gw-4", "--hours", "2")
    assert made.exit_code == 0, made.output
    assert f"pando gateway join {console.address} pando1.token-of-gw-4" in made.output
    assert console.coordinator.fleet.asked == [("provision", "gw-4", "2", "local")]
    again = pando(console, "provision", "gw-4")
    assert again.exit_code == 2
    assert "has joined already" in again.stderr


def test_a_program_gets_the_token_as_json(console: Any) -> None:
    made = json.loads(pando(console, "provision", "gw-4", "--format", "json").stdout)
    assert made["token"] == "pando1.token-of-gw-4"
    assert made["console"] == console.address


def test_what_cuts_off_is_asked_first(console: Any) -> None:
    pando(console, "provision", "gw-4")
    assert pando(console, "revoke", "gw-4", typed="n\n").exit_code == 1
    assert "revoke" not in {verb for verb, *_ in console.coordinator.fleet.asked}
    assert "gw-4 is revoked" in pando(console, "revoke", "gw-4", typed="y\n").output
    listed = pando(console, "enrolled")
    assert "revoked" in listed.output
    assert "gw-4 is north now" in pando(console, "rename", "gw-4", "north", "--yes").output
    assert "new credentials" in pando(console, "rotate", "north").output
    assert "north is retired" in pando(console, "retire", "north", "--yes").output
    assert json.loads(pando(console, "enrolled", "--format", "json").stdout) == []


def test_a_name_that_nobody_provisioned_is_said(console: Any) -> None:
    answer = pando(console, "rotate", "gw-9")
    assert answer.exit_code == 2
    assert "no gateway 'gw-9' was provisioned" in answer.stderr
