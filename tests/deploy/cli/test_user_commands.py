"""`pando user`: in a catalog without a console, and at one that runs."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from broker.free_ports import free_port
from deploy.cli.main import app
from tests.server_sent_events import wait_for

PASSWORD = "a long enough one"
Pando = Callable[..., Result]


@pytest.fixture
def pando(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pando:
    """Run a command in a folder of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PANDO_TOKEN", raising=False)
    monkeypatch.delenv("PANDO_CONSOLE", raising=False)
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o022)
    os.umask(before)

    def run(*arguments: str, typed: str = "") -> Result:
        try:
            return CliRunner().invoke(app, arguments, input=typed)
        finally:
            os.umask(before)

    return run


def test_the_first_administrator_is_made_without_a_console(pando: Pando, tmp_path: Path) -> None:
    place = ("--data", str(tmp_path / "data"))
    wrong = pando("user", "add", "ann", *place, "--password-stdin", typed=PASSWORD)
    assert wrong.exit_code == 2
    assert "first account has to be an administrator" in wrong.output
    added = pando(
        "user", "add", "Ann", "--role", "administrator", *place, typed=f"{PASSWORD}\n" * 2
    )
    assert added.exit_code == 0, added.output
    assert added.output.endswith("added the account ann (administrator)\n")
    assert PASSWORD not in added.output
    catalog = tmp_path / "data" / "state" / "console" / "catalog.db"
    assert catalog.stat().st_mode & 0o077 == 0
    assert catalog.parent.stat().st_mode & 0o077 == 0
    (listed,) = json.loads(pando("user", "list", *place, "--format", "json").output)
    assert (listed["name"], listed["role"], listed["disabled"]) == ("ann", "administrator", False)


def test_accounts_are_changed_and_removed_without_a_console(pando: Pando, tmp_path: Path) -> None:
    place = ("--data", str(tmp_path))
    for name, role in (("ann", "administrator"), ("bob", "viewer")):
        pando("user", "add", name, "--role", role, *place, "--password-stdin", typed=PASSWORD)
    assert pando("user", "role", "bob", "Analyst", *place).output == "bob is analyst\n"
    assert pando("user", "disable", "bob", *place).output == "bob is disabled\n"
    assert pando("user", "enable", "bob", *place).output == "bob is enabled\n"
    new = pando("user", "password", "bob", *place, "--password-stdin", typed=PASSWORD + "!")
    assert new.output == "bob has a new password\n"
    refused = pando("user", "role", "bob", "king", *place)
    assert (refused.exit_code, "write one of viewer" in refused.output) == (2, True)
    last = pando("user", "remove", "ann", *place)
    assert (last.exit_code, "only administrator" in last.output) == (2, True)
    assert pando("user", "remove", "bob", *place).output == "removed the account bob\n"
    assert pando("user", "remove", "bob", *place).exit_code == 2
    assert pando("user", "list", *place, "--config", "x").exit_code == 2
    assert pando("user", "list", *place, "--console", "http://127.0.0.1:1").exit_code == 2
    weak = pando("user", "add", "carl", *place, "--password-stdin", typed="short")
    assert (weak.exit_code, "weak_password" in weak.output) == (2, True)


def test_a_console_that_others_reach_starts_after_the_commands_that_it_names(
    pando: Pando, tmp_path: Path
) -> None:
    """Exit status 2 and words; then one account, a named proxy, and only who signs in is let in."""
    port = free_port()
    config = tmp_path / "console.json"
    settings = {
        "broker": "mqtt://127.0.0.1:9",
        "port": port,
        "host": "127.0.0.1",
        "trusted_proxy": "127.0.0.1",
        "data_dir": str(tmp_path / "data"),
    }
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "ui", "--config", str(config)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert refused.returncode == 2
    assert f"pando user add NAME --role administrator --config {config}" in refused.stderr
    added = pando(
        *("user", "add", "ann", "--role", "administrator", "--config", str(config)),
        *("--password-stdin",),
        typed=PASSWORD,
    )
    assert added.exit_code == 0, added.output
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            wait_for(lambda: answers(client), "the console answers")
            assert client.get("/api/sites").status_code == 401
            body = {"name": "ann", "password": PASSWORD}
            forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
            signed_in = client.post("/api/sign-in", json=body, headers=forwarded)
            assert "Secure" in signed_in.headers["set-cookie"]
            assert signed_in.headers["set-cookie"].startswith("__Host-pando_")
            owner = tmp_path / "data" / "owner"
            assert owner.stat().st_mode & 0o777 == 0o600
            as_owner = {"Authorization": f"Bearer {owner.read_text().strip()}"}
            assert client.get("/api/sites", headers=as_owner).status_code == 200
            changed = pando("user", "disable", "ann", "--config", str(config))
            assert changed.exit_code == 2  # the only administrator
    finally:
        process.terminate()
        process.wait(60)
    with sqlite3.connect(tmp_path / "data" / "catalog.db") as connection:
        rows = connection.execute("SELECT * FROM pando_audit").fetchall()
    connection.close()
    assert any("192.0.2.7" in str(row) and "sign in" in str(row) for row in rows)


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/api/health").is_success
    except httpx.HTTPError:
        return False
