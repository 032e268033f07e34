"""`pando endpoint` keeps what gateways connect to."""

import json
from pathlib import Path

from typer.testing import CliRunner

from deploy.cli.main import app


def run(tmp_path: Path, *words: str, typed: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(app, ["endpoint", *words, "--data", str(tmp_path)], input=typed)
    return result.exit_code, result.output


def test_an_endpoint_is_added_listed_and_removed(tmp_path: Path) -> None:
    options = ("address=mqtt://127.0.0.1:1883", "username=7", "keepalive=30")
    status, output = run(
        tmp_path, "add", "gw-1", "home", "mqtt", *options[:1], options[2], "--ask", "password",
        typed="hidden1\n",
    )  # fmt: skip
    assert (status, "gw-1 has the endpoint home (mqtt)" in output) == (0, True), output
    assert "hidden1" not in output
    status, output = run(tmp_path, "list", "--format", "json")
    assert status == 0
    [row] = json.loads(output)
    assert row["connector"] == "mqtt"
    assert "keepalive=30" in row["options"]
    assert "hidden1" not in output
    kept = json.loads((tmp_path / "endpoints" / "gw-1.json").read_text())
    assert kept["home"] == {
        "connector": "mqtt",
        "address": "mqtt://127.0.0.1:1883",
        "keepalive": 30,
        "password": "hidden1",
    }
    assert run(tmp_path, "remove", "gw-1", "home")[0] == 0
    assert json.loads(run(tmp_path, "list", "--format", "json")[1]) == []


def test_what_is_no_option_is_refused_without_repeating_it(tmp_path: Path) -> None:
    status, output = run(tmp_path, "add", "gw-1", "home", "mqtt", "s3cret")
    assert status != 0
    assert "name=value" in output
    assert "s3cret" not in output


def test_an_option_that_is_an_object_is_typed_entry_by_entry(tmp_path: Path) -> None:
    words = ("add", "gw-1", "hooks", "http_push", "port=8094", "tokens.sun=a-long-text")
    status, output = run(tmp_path, *words, "--ask", "tokens.lora", typed="hidden-token\n")
    assert status == 0, output
    kept = json.loads((tmp_path / "endpoints" / "gw-1.json").read_text())
    assert kept["hooks"]["tokens"] == {"sun": "a-long-text", "lora": "hidden-token"}
    assert "hidden-token" not in output + run(tmp_path, "list")[1]


def test_what_is_missing_is_said_with_how_to_give_it(tmp_path: Path) -> None:
    status, output = run(
        tmp_path, "add", "console", "orders", "webhook", "url=https://host.example"
    )
    assert status != 0
    text = " ".join(output.split())
    assert "endpoint orders needs `secret`" in text
    assert "--ask secret" in text
    status, output = run(tmp_path, "add", "gw-1", "home", "mqtt", "adress=mqtt://h")
    assert "endpoint home has no option `adress`" in " ".join(output.split())
    assert "did you mean address?" in " ".join(output.split())
