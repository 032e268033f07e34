"""REST and command line: the settings of a site."""

import re
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from deploy.cli.main import app as pando
from ui.cli.commands.http_commands import app

DEFAULTS = {
    "scheduler": "fifo",
    "slice_ms": None,
    "queue_rows": 100_000,
    "share_synopses": True,
    "report_seconds": 1.0,
}


def test_settings_are_read_and_changed_one_by_one(client: Any) -> None:
    path = "/api/sites/gw-1/settings"
    assert client.get(path).json() == DEFAULTS
    answer = client.patch(path, json={"scheduler": "chain", "slice_ms": 5})
    assert answer.json() == {**DEFAULTS, "scheduler": "chain", "slice_ms": 5.0}
    client.patch(path, json={"slice_ms": None, "share_synopses": False})
    assert client.get(path).json() == {**DEFAULTS, "scheduler": "chain", "share_synopses": False}
    assert client.get("/api/sites/gw-2/settings").json() == DEFAULTS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scheduler": "lottery"}, "there is no scheduler 'lottery'; schedulers: fifo, greedy"),
        ({"slice_ms": 0}, "slice_ms is above 0 and up to 60000, or null"),
        ({"queue_rows": "many"}, "queue_rows"),
        ({"queue_rows": 0}, "queue_rows ranges from 1 to 10000000"),
        ({"colour": "red"}, "a site has no setting 'colour'; settings: queue_rows"),
        ({"report_seconds": 0.01}, "report_seconds ranges from 0.1 to 3600"),
    ],
)
def test_what_makes_no_sense_is_refused_in_plain_words(
    client: Any, changes: dict[str, Any], words: str
) -> None:
    answer = client.patch("/api/sites/gw-1/settings", json=changes)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == "bad_option"
    assert words in f"{error['message']}; {error['hint']}"
    assert client.get("/api/sites/gw-1/settings").json() == DEFAULTS


def test_a_gateway_that_is_offline_is_removed(client: Any, coordinator: Any) -> None:
    refused = client.delete("/api/sites/gw-2")
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == "gateway gw-2 is online"
    coordinator.set_site("gw-2", "stale")
    assert client.delete("/api/sites/gw-2").json() == {"site": "gw-2"}
    assert "gw-2" not in {site["site"] for site in client.get("/api/sites").json()}
    assert client.delete("/api/sites/gw-2").status_code == 404


def test_a_site_that_is_not_there_is_not_found(client: Any) -> None:
    for answer in (
        client.get("/api/sites/gw-9/settings"),
        client.patch("/api/sites/gw-9/settings", json={"slice_ms": 1}),
    ):
        assert answer.status_code == 404
        assert "there is no gateway or base site 'gw-9'" in answer.text


def test_the_command_line_shows_and_changes_settings(console: Any) -> None:
    def pando(*arguments: str) -> Result:
        return CliRunner().invoke(
            app, ["site", "settings", *arguments, "--console", console.address]
        )

    def cells(result: Result) -> list[list[str]]:
        return [re.findall(r"[\w.]+", line) for line in result.stdout.splitlines()]

    shown = pando("gw-1")
    assert shown.exit_code == 0
    assert ["slice_ms", "none"] in cells(shown)
    changed = pando("gw-1", "--scheduler", "greedy", "--slice-ms", "2.5", "--share-synopses", "off")
    assert ["scheduler", "greedy"] in cells(changed)
    assert ["slice_ms", "2.5"] in cells(changed)
    assert ["share_synopses", "off"] in cells(changed)
    assert pando("gw-1", "--slice-ms", "none", "--format", "json").stdout.count("null") == 1
    refused = pando("gw-1", "--scheduler", "lottery")
    assert refused.exit_code == 2
    assert "there is no scheduler 'lottery'" in refused.stderr
    assert pando("gw-1", "--share-synopses", "maybe").exit_code == 2
    assert "'gw-9'" in pando("gw-9").stderr


def test_the_command_line_removes_a_gateway(console: Any, coordinator: Any) -> None:
    def remove() -> Result:
        arguments = ["gateway", "remove", "gw-3", "--console", console.address]
        return CliRunner().invoke(app, arguments)

    refused = remove()
    assert refused.exit_code == 2
    assert "gateway gw-3 is online" in refused.stderr
    coordinator.set_site("gw-3", "stale")
    assert remove().stdout == "gateway gw-3 removed\n"
    assert "gw-3" not in {info.site for info in coordinator.sites()}


def test_a_site_is_told_to_start_again(client: Any, coordinator: Any) -> None:
    assert client.post("/api/sites/gw-2/restart").json() == {"site": "gw-2"}
    assert coordinator.commands[-1] == ("gw-2", "restart", {})
    noted = coordinator.audit.entries()[-1]
    assert (noted.action, noted.target, noted.outcome) == ("restart", "gw-2", "done")
    assert client.post("/api/sites/nobody/restart").status_code == 404


def test_the_command_line_tells_a_site_to_start_again(console: Any, coordinator: Any) -> None:
    def restart(site: str) -> Result:
        arguments = ["gateway", "restart", site, "--remote", "--console", console.address]
        return CliRunner().invoke(pando, arguments)

    told = restart("gw-3")
    assert told.stdout == "told gw-3 to start again\n"
    assert coordinator.commands[-1] == ("gw-3", "restart", {})
    assert "gw-9" in restart("gw-9").stderr
