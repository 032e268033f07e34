"""`pando source try`, `discover` and `add` against a console whose gateways have heard devices."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from tests.ui.api.resources.test_source_trial_routes import (
    CELLAR,
    KITCHEN,
    OFFERED,
    PRESS,
    STATEMENT,
    sample,
)
from ui.cli.commands.http_commands import app
from ui.cli.commands.source_commands import local_zone


@pytest.fixture
def pando(console: Any) -> Any:
    """Run a command against the console."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--console", console.address])

    return run


def test_listening_prints_payloads_a_statement_and_its_rows(pando: Any, console: Any) -> None:
    console.coordinator.devices = (KITCHEN,)
    said = pando("source", "try", "--gateway", "gw-2", "--endpoint", "home", "--topic", "tele/#")
    assert said.exit_code == 0, said.output
    assert 'tele/kitchen/SENSOR {"ENERGY": {"Power": 42}}' in said.output
    assert "topic = 'tele/{device}/SENSOR'" in said.output
    assert re.search(r"kitchen\s+│\s+42", said.output)
    assert console.coordinator.tried[-1][0] == "gw-2"


def test_statements_alone_can_be_written_to_a_file_and_added(
    pando: Any, console: Any, client: httpx.Client, tmp_path: Path
) -> None:
    console.coordinator.devices = (KITCHEN,)
    statements = pando("source", "try", "--endpoint", "home", "--topic", "tele/#", "--sql").output
    file = tmp_path / "power.sql"
    file.write_text(statements)
    added = pando("source", "add", str(file))
    assert added.exit_code == 0, added.output
    name = re.findall(r"CREATE SOURCE (\w+)", statements)[0]
    assert client.get(f"/api/definitions/{name}").is_success


def test_a_file_is_tried_with_rows_and_problems(pando: Any, console: Any, tmp_path: Path) -> None:
    file = tmp_path / "plug.sql"
    file.write_text(STATEMENT + ";\n")
    rows = (("kitchen", 42.0),)
    console.coordinator.devices = (
        sample("tele/kitchen/SENSOR", {"a": 1}, rows=rows),
        sample("tele/cellar/SENSOR", {"a": 2}, problems=("column power: 'much' is no number",)),
    )
    said = pando("source", "try", str(file))
    assert re.search(r"kitchen\s+│\s+42", said.output)
    assert "column power: 'much' is no number" in said.output
    trial = json.loads(pando("source", "try", str(file), "--format", "json").output)
    assert trial["samples"][0]["rows"] == [{"device": "kitchen", "power": 42.0}]


def test_each_statement_of_a_file_is_tried(pando: Any, console: Any, tmp_path: Path) -> None:
    file = tmp_path / "plugs.sql"
    file.write_text(f"{STATEMENT};\n{STATEMENT.replace('plug', 'second')};\n")
    console.coordinator.devices = (sample("tele/a/SENSOR", {"a": 1}, rows=(("kitchen", 42.0),)),)
    said = pando("source", "try", str(file))
    assert said.exit_code == 0, said.output
    assert len(re.findall(r"kitchen\s+│\s+42", said.output)) == 2
    assert "second" in said.output
    lines = pando("source", "try", str(file), "--format", "json").output.splitlines()
    assert [len(json.loads(line)["samples"]) for line in lines] == [1, 1]
    file.write_text(f"{STATEMENT}; DROP SOURCE plug")
    assert "holds more than CREATE SOURCE" in pando("source", "try", str(file)).output


def test_sources_are_listed_with_what_is_missing(pando: Any) -> None:
    listed = pando("source", "list")
    assert listed.exit_code == 0, listed.output
    assert re.search(r"name\s+┃ connector\s+┃ endpoint\s+┃ gateways", listed.output)
    sources = json.loads(pando("source", "list", "--format", "json").output)
    assert {"name", "columns", "text", "connector", "gateways", "missing"} <= set(sources[0])


def test_json_holds_proposals_with_their_rows(pando: Any, console: Any) -> None:
    console.coordinator.devices = (KITCHEN, CELLAR)
    said = pando("source", "try", "--endpoint", "home", "--topic", "tele/#", "--format", "json")
    found = json.loads(said.output)
    assert [row["device"] for row in found["proposals"][0]["rows"]] == ["kitchen", "cellar"]
    assert len(found["samples"]) == 2


def test_devices_are_listed_and_adopted(pando: Any, console: Any, client: httpx.Client) -> None:
    exposes = [{"type": "numeric", "property": "temperature", "unit": "°C", "access": 1}]
    listed = [{"friendly_name": "hall", "definition": {"model": "T1", "exposes": exposes}}]
    console.coordinator.devices = (sample("zigbee2mqtt/bridge/devices", listed),)
    shown = pando("source", "discover", "--endpoint", "home").output
    assert re.search(r"t1\s+│\s+T1\s+│\s+1\s+│\s+hall", shown)
    sql = pando("source", "discover", "--endpoint", "home", "--sql").output
    assert "temperature DOUBLE UNIT 'Cel'" in sql
    wrong = pando("source", "discover", "--endpoint", "home", "--adopt", "t9")
    assert wrong.exit_code == 2
    assert "there are: t1" in wrong.output
    assert pando("source", "discover", "--endpoint", "home", "--adopt", "t1").exit_code == 0
    assert client.get("/api/definitions/t1").is_success


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("try",), "nothing to try"),
        (("try", "missing.sql"), "cannot be read"),
        (("try", "--endpoint", "home", "--option", "topic"), "--option path=/status.json"),
        (("try", "--endpoint", "away"), "has an endpoint 'away'"),
        (("add", "missing.sql"), "cannot be read"),
    ],
)
def test_what_is_wrong_is_said(pando: Any, arguments: tuple[str, ...], words: str) -> None:
    said = pando("source", *arguments)
    assert said.exit_code == 2
    assert words in said.output


def test_only_sources_are_added(pando: Any, tmp_path: Path) -> None:
    file = tmp_path / "more.sql"
    file.write_text(f"{STATEMENT}; DROP SOURCE plug")
    said = pando("source", "add", str(file))
    assert said.exit_code == 2
    assert "holds more than CREATE SOURCE" in said.output


def test_a_gateways_problem_ends_the_command(pando: Any, console: Any) -> None:
    console.coordinator.devices = (KITCHEN,)
    report = console.coordinator.report
    console.coordinator.report = lambda *_, **more: report(problem="wrong password", **more)
    said = pando("source", "try", "--endpoint", "home", "--topic", "#")
    assert said.exit_code == 2
    assert "wrong password" in said.output


def test_the_zone_is_this_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ":Europe/Berlin")
    assert local_zone() == "Europe/Berlin"


def test_browsing_prints_what_is_offered_a_statement_and_its_row(pando: Any, console: Any) -> None:
    console.coordinator.devices, console.coordinator.offers = (PRESS,), (OFFERED,)
    said = pando("source", "try", "--endpoint", "press", "--record", "Press")
    assert said.exit_code == 0, said.output
    assert re.search(r"Heat\s+│\s+ns=2;s=Press.Heat\s+│\s+DOUBLE\s+│\s+°C\s+│\s+180.5", said.output)
    assert "FROM 'ns=2;s=Press.Heat' UNIT 'Cel'" in said.output
    assert re.search(r"180.5\s+│\s+12", said.output)
    other = pando("source", "try", "--endpoint", "press", "--record", "Oven")
    assert other.exit_code != 0
    assert "it offers: Press" in other.output
