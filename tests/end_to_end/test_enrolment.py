"""Gateways enrolled by token over TLS with a private authority: a real broker, real processes."""

import json
from collections.abc import Iterator

import pytest

from tests.end_to_end.fleet import SecuredFederation, secured_federation, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.end_to_end]


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredFederation]:
    with secured_federation(tmp_path_factory.mktemp("fleet"), "mosquitto") as running:
        yield running


def test_a_gateway_joins_by_token_and_is_live(federation: SecuredFederation) -> None:
    token = federation.provision("gw-1")
    assert federation.enrolment("gw-1")["state"] == "provisioned"
    joined = federation.join("gw-1", token)
    assert joined.returncode == 0, joined.stderr
    folder = federation.folder / "gw-1"
    assert f"--config {folder / 'gateway.json'}" in joined.stdout
    modes = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert "broker_password" not in json.loads((folder / "gateway.json").read_text())["broker"]
    federation.start_gateway("gw-1")
    wait_until(lambda: federation.is_live("gw-1"), "gw-1 is live")
    enrolment = federation.enrolment("gw-1")
    assert enrolment["state"] == "joined"
    assert enrolment["serial"]
    assert "token_hash" not in enrolment


def test_a_token_is_good_once(federation: SecuredFederation) -> None:
    token = federation.provision("gw-once")
    assert federation.join("gw-once", token).returncode == 0
    again = federation.join("gw-once-more", token)
    assert again.returncode == 2
    assert "this token is not good: it was used" in again.stderr
    assert "gw-once from 127.0.0.1 is refused" in federation.services["console"].log


def test_a_revoked_gateway_is_out_within_a_second(federation: SecuredFederation) -> None:
    service = federation.enrol("gw-out")
    answer = federation.http.post("/api/fleet/gw-out/revoke")
    assert answer.json()["state"] == "revoked"
    seconds = wait_until(lambda: not federation.is_live("gw-out"), "gw-out is out")
    assert seconds < 1
    wait_until(lambda: "it refuses the connection" in service.log, "the gateway knows why")
    back = federation.join("gw-out", federation.provision("gw-out"))
    assert back.returncode == 0, back.stderr
    service.stop()
    federation.start_gateway("gw-out")
    wait_until(lambda: federation.is_live("gw-out"), "gw-out is back")
