"""`pando sink`: list, show, send again, drop."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from tests.ui.api.resources.test_sink_routes import INFO
from ui.cli.commands.sink_commands import sink_app


@pytest.fixture
def pando(console: Any) -> Any:
    """Run a command of `pando sink` against the console."""
    console.coordinator.sinks.listed = (INFO,)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(sink_app, [*arguments, "--console", console.address])

    return run


def test_sinks_are_listed_and_shown(pando: Any) -> None:
    (listed,) = json.loads(pando("list", "--format", "json").output)
    assert (listed["sink"], len(listed["dead_letters"])) == ("free", 2)
    table = pando("list").output
    for word in ("free", "hook", "failing", "free: HTTP 500"):
        assert word in table
    shown = pando("show", "free").output
    for word in ("SELECT desk, ts", "upsert to hook", "HTTP 410", "d1", "kept in doubt"):
        assert word in shown
    assert json.loads(pando("show", "free", "--format", "json").output) == listed
    missing = pando("show", "other")
    assert missing.exit_code != 0
    assert "there is no sink 'other'" in missing.output


def test_dead_letters_are_sent_again(pando: Any, console: Any) -> None:
    assert pando("retry", "free").output == "2 dead letters of sink free sent again\n"
    assert json.loads(pando("retry", "free", "--format", "json").output)["retried"] == 2
    assert console.coordinator.sinks.retried == ["free", "free"]
    assert pando("retry", "other").exit_code != 0


def test_dead_letters_are_listed_and_discarded(pando: Any, console: Any) -> None:
    listed = pando("dead", "free").output
    for word in ("d1", "HTTP 410", "2026-01-01"):
        assert word in listed
    assert len(json.loads(pando("dead", "free", "--format", "json").output)) == 2
    assert pando("discard", "free").output == "2 dead letters of sink free discarded\n"
    assert json.loads(pando("discard", "free", "--format", "json").output)["discarded"] == 2
    assert console.coordinator.sinks.discarded == ["free", "free"]
    console.coordinator.sinks.listed = (replace(INFO, dead=()),)
    assert pando("dead", "free").output == "sink free has no dead letters\n"
    assert pando("discard", "other").exit_code != 0


def test_a_sink_is_dropped(pando: Any, client: httpx.Client) -> None:
    text = (
        'CREATE SINK "My sink" FROM SELECT mid, rid FROM SeatSensor '
        "WITH (connector = 'mqtt', topic = 'building/seats/{mid}')"
    )
    assert client.post("/api/statements", json={"text": text}).is_success
    (shown,) = client.get("/api/definitions", params={"kind": "sink"}).json()
    assert (shown["name"], shown["connector"]) == ("My sink", "mqtt")
    assert pando("drop", "My sink").output == "My sink dropped\n"
    assert client.get("/api/definitions", params={"kind": "sink"}).json() == []
