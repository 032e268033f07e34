"""Secrets with which commands ask a console: which one, kept how, and never sent in clear."""

import json
from pathlib import Path

import pytest

from streamsql.errors import DeploymentError
from ui.cli import sign_ins
from ui.cli.sign_ins import KeptSignIn, keep, kept_file, kept_sign_ins, secret_for

HERE, THERE = "http://127.0.0.1:8420", "https://pando.example"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep sign-ins in a folder of the test's."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PANDO_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_kept_session_is_for_its_console_and_its_user_only() -> None:
    keep(THERE, KeptSignIn("ann", "s-1"))
    keep(HERE, KeptSignIn("ann", "s-2"))
    assert kept_file().stat().st_mode & 0o777 == 0o600
    assert kept_file().parent.stat().st_mode & 0o777 == 0o700
    assert [secret_for(each) for each in (THERE, HERE, "https://x.example")] == ["s-1", "s-2", ""]
    keep(THERE, None)
    assert set(kept_sign_ins()) == {HERE}


def test_the_variable_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(HERE, KeptSignIn("ann", "s-1"))
    monkeypatch.setenv("PANDO_TOKEN", " pando_x ")
    assert secret_for(HERE) == "pando_x"


@pytest.mark.parametrize(
    "address", ["http://pando.example", "http://192.0.2.1", "HTTP://127.1.example"]
)
def test_no_secret_goes_to_another_machine_in_clear(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    assert secret_for(address) == ""
    monkeypatch.setenv("PANDO_TOKEN", "pando_x")
    with pytest.raises(DeploymentError, match="unencrypted") as refused:
        secret_for(address)
    assert "pando_x" not in refused.value.report


@pytest.mark.parametrize("token", ["a b", "ä", "x" * 600, "a\x07"])
def test_what_is_no_token_is_refused(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("PANDO_TOKEN", token)
    with pytest.raises(DeploymentError, match="PANDO_TOKEN is no token"):
        secret_for(HERE)


def test_a_file_that_others_may_read_is_not_used() -> None:
    keep(HERE, KeptSignIn("ann", "s-1"))
    kept_file().chmod(0o644)
    with pytest.raises(DeploymentError, match="others may read") as refused:
        secret_for(HERE)
    assert "chmod 600" in refused.value.hint
    assert "s-1" not in refused.value.report


def test_a_damaged_file_says_what_to_do() -> None:
    keep(HERE, KeptSignIn("ann", "s-1"))
    kept_file().write_text('{"http')
    with pytest.raises(DeploymentError, match="cannot read") as refused:
        secret_for(HERE)
    assert "pando login" in refused.value.hint


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_ins, "MAX_KEPT", 3)
    for number in range(5):
        keep(f"https://{number}.example", KeptSignIn("ann", "s"))
    assert list(json.loads(kept_file().read_bytes())) == [f"https://{n}.example" for n in (2, 3, 4)]
