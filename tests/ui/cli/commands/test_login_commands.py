"""`pando login`, `logout`, `whoami` and `token` against a console with accounts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deploy.cli.main import app
from tests.federated_optimizer.coordinator.people.office import GOOD
from tests.ui.conftest import Console
from ui.cli.sign_ins import kept_sign_ins

Pando = Callable[..., Result]


@pytest.fixture
def pando(staffed: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pando:
    """Run a command against the console."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PANDO_CONSOLE", staffed.address)
    monkeypatch.delenv("PANDO_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, typed: str = "") -> Result:
        return CliRunner().invoke(app, arguments, input=typed)

    return run


def sign_in(pando: Pando, name: str) -> None:
    done = pando("login", "--name", name, "--password-stdin", typed=GOOD + "\n")
    assert done.exit_code == 0, done.output


def test_commands_ask_for_who_has_signed_in(pando: Pando, staffed: Console) -> None:
    refused = pando("query", "list")
    assert refused.exit_code == 2
    assert "sign in first" in refused.output
    assert "pando login" in refused.output
    assert "not signed in" in pando("whoami").output
    done = pando("login", typed=f"AnalystY\n{GOOD}\n")
    assert done.exit_code == 0
    assert done.output.endswith(f"signed in to {staffed.address} as analysty (analyst)\n")
    assert GOOD not in done.output
    assert pando("query", "list").exit_code == 0
    assert "analysty (analyst)" in pando("whoami").output
    assert json.loads(pando("whoami", "--format", "json").output)["role"] == "analyst"
    (kept,) = kept_sign_ins().values()
    assert pando("logout").output == f"signed out of {staffed.address}\n"
    assert kept_sign_ins() == {}
    assert staffed.people is not None
    assert staffed.people.admit(kept.secret) is None
    assert pando("query", "list").exit_code == 2


def test_a_wrong_password_keeps_nothing(pando: Pando) -> None:
    done = pando("login", "--name", "analysty", "--password-stdin", typed="wrong\n")
    assert done.exit_code == 2
    assert "name or password is wrong" in done.output
    assert kept_sign_ins() == {}
    assert pando("login", "--name", "x", "--password-stdin").exit_code == 2


def test_tokens_are_made_listed_used_and_revoked(
    pando: Pando, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(pando, "analysty")
    secret = pando("token", "create", "nightly report", "--source", "Temperature").output.strip()
    assert secret.startswith("pando_")
    (listed,) = json.loads(pando("token", "list", "--format", "json").output)
    assert (listed["label"], listed["sources"]) == ("nightly report", ["temperature"])
    assert "nightly report" in pando("token", "list").output
    assert secret not in pando("token", "list").output
    assert pando("token", "list", "--all").exit_code == 2
    assert pando("token", "create", "x", "--account", "viewery").exit_code == 2
    monkeypatch.setenv("PANDO_TOKEN", secret)
    assert "by the token 'nightly report'" in pando("whoami").output
    monkeypatch.delenv("PANDO_TOKEN")
    assert "revoked the token 'nightly report'" in pando("token", "revoke", listed["id"]).output
    monkeypatch.setenv("PANDO_TOKEN", secret)
    assert pando("query", "list").exit_code == 2


def test_an_administrator_makes_and_revokes_tokens_of_others(pando: Pando) -> None:
    sign_in(pando, "administratory")
    made = pando(
        "token", "create", "wall", "--account", "viewery", "--days", "0", "--format", "json"
    )
    told = json.loads(made.output)
    assert (told["account"], told["expires"]) == ("viewery", None)
    assert told["id"] in pando("token", "list", "--all").output
    assert "of viewery" in pando("token", "revoke", told["id"]).output
    assert pando("token", "revoke", told["id"]).exit_code == 2
