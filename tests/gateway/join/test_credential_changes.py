"""New credentials for a running gateway: only for a key of its own, and the old ones stay good."""

import asyncio
import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from gateway.gateway_settings import GatewaySettings
from gateway.join.credential_changes import CredentialChanges
from host.certificates.authority import belong_together, make_authority
from host.certificates.certificate_request import judge_request
from host.mqtt.broker_passwords import PasswordFile

NOW = dt.datetime.now(dt.UTC)


class Gateway:
    """A gateway's files, and what it was told."""

    def __init__(self, folder: Path, **changes: str) -> None:
        self.password = folder / "broker_password"
        self.password.write_text("old\n")
        self.certificate = folder / "gateway.pem"
        self.certificate.write_text("old certificate")
        given = {"broker_cert": str(self.certificate), **changes}
        settings = GatewaySettings("house", "gw-4", "mqtts://b.example", str(folder), **given)  # type: ignore[arg-type]
        self.names: list[str] = []
        self.changes = CredentialChanges(
            settings, PasswordFile(self.password), None, self.names.append
        )

    def ask(self, *steps: Any) -> dict[str, Any]:
        async def whole() -> dict[str, Any]:
            answer: dict[str, Any] = {}
            for step in steps:
                given = step(answer) if callable(step) else step
                answer = await self.changes.carry_out({"gateway": "gw-4", **given})
            return answer

        return asyncio.run(whole())


def taken(answer: dict[str, Any]) -> dict[str, Any]:
    request = judge_request(answer["request"].encode())
    assert request.common_name == "gw-4"
    certificate = make_authority("ours", NOW).sign_client(request, NOW)
    return {"step": "take", "certificate": certificate.decode(), "password": "new"}


def test_key_and_certificate_change_together_and_the_old_password_stays(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    assert gateway.ask({"step": "request"}, taken)["done"]
    assert gateway.password.read_text() == "new\nold\n"
    pem = gateway.certificate.read_bytes()
    assert belong_together(pem, pem[pem.index(b"-----BEGIN PRIVATE") :])
    assert gateway.certificate.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"step": "take", "certificate": "x", "password": "y"}, "a key that was not made here"),
        ({"step": "dance"}, "unknown step 'dance'"),
        ({"step": "request", "gateway": "a/b"}, "is not an id"),
        ({"step": "request", "gateway": "gw-5"}, "not started with a settings file"),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    tmp_path: Path, step: dict[str, Any], said: str
) -> None:
    gateway = Gateway(tmp_path)
    answer = gateway.ask(step)
    assert not answer["done"]
    assert said in answer["message"]
    assert gateway.password.read_text() == "old\n"
    assert gateway.certificate.read_text() == "old certificate"
    assert gateway.names == []


def test_certificate_and_key_in_two_files_are_refused(tmp_path: Path) -> None:
    answer = Gateway(tmp_path, broker_key="x.key").ask({"step": "request"})
    assert "certificate and key in two files" in answer["message"]
