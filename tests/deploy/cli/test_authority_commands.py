"""`pando ca`: made once, shown, certificates that openssl accepts."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deploy.cli.authority_commands import authority_app


def pando_ca(*words: str) -> Result:
    return CliRunner().invoke(authority_app, list(words))


def test_an_authority_is_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "authority"
    made = pando_ca("init", "--folder", str(folder), "--name", "House")
    assert made.exit_code == 0, made.output
    assert str(folder / "ca.crt") in made.output.replace("\n", "")
    again = pando_ca("init", "--folder", str(folder))
    assert again.exit_code == 2
    assert "holds an authority already" in again.stderr
    shown = json.loads(pando_ca("show", "--folder", str(folder), "--format", "json").stdout)
    assert shown["name"] == "House"
    assert len(shown["fingerprint (SHA-256)"]) == 64


def test_what_it_issues_is_accepted_by_openssl(tmp_path: Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path / "authority"
    given = ["--folder", str(folder), "--out", str(tmp_path)]
    assert pando_ca("init", "--folder", str(folder)).exit_code == 0
    server = pando_ca("issue", "broker", "--host", "broker.example", "--host", "10.0.0.1", *given)
    assert server.exit_code == 0, server.output
    assert pando_ca("issue", "gw", "--client", *given).exit_code == 0
    verify = [program, "verify", "-CAfile", str(folder / "ca.crt"), "-purpose"]
    names = ["-verify_hostname", "broker.example", str(tmp_path / "broker.crt")]
    subprocess.run([*verify, "sslserver", *names], check=True, capture_output=True)
    subprocess.run(
        [*verify, "sslclient", str(tmp_path / "gw.crt")], check=True, capture_output=True
    )
    assert (tmp_path / "broker.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["broker"], "a server needs --host"),
        (["broker", "--client", "--host", "a"], "a client has --client and no --host"),
        (["../broker", "--client"], "cannot name the files"),
        (["broker", "--host", "not a host"], "neither a host name nor"),
    ],
)
def test_what_cannot_be_issued_is_said(tmp_path: Path, words: list[str], said: str) -> None:
    folder = tmp_path / "authority"
    pando_ca("init", "--folder", str(folder))
    answer = pando_ca("issue", *words, "--folder", str(folder), "--out", str(tmp_path))
    assert answer.exit_code == 2
    assert said in answer.stderr


def test_a_folder_without_an_authority_is_named(tmp_path: Path) -> None:
    answer = pando_ca("show", "--folder", str(tmp_path))
    assert answer.exit_code == 2
    assert "cannot read certificate of the authority" in answer.stderr
