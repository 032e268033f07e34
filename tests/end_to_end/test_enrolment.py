"""Gateways enrolled by token over TLS with a private authority: a real broker, real processes."""

import datetime as dt
import json
import socket
import time
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


def test_what_was_wrong_is_told_when_it_is_over(federation: SecuredFederation) -> None:
    """In the log at once and with the time; on the page when the gateway is back."""
    service = federation.enrol("gw-wrong")
    service.stop()
    password = federation.folder / "gw-wrong" / "broker_password"
    right = password.read_text()
    password.write_text("wrong\n")
    stranger = federation.start_gateway("gw-wrong")
    seconds = wait_until(lambda: "it refuses the connection" in stranger.log, "the reason")
    (line,) = [line for line in stranger.log.splitlines() if "it refuses the connection" in line]
    assert line.startswith(f"{dt.datetime.now(dt.UTC):%Y-%m-%dT}")
    assert seconds < 10, "most of it starts Python"
    wait_until(lambda: "gw-wrong" in federation.broker.log(), "the broker's log")
    time.sleep(1.1)  # time passes: a shorter interruption is not told
    stranger.stop()
    password.write_text(right)
    federation.start_gateway("gw-wrong")
    wait_until(lambda: federation.is_live("gw-wrong"), "gw-wrong is live")
    wait_until(lambda: federation.site("gw-wrong")["connection_problem"], "it tells the reason")
    problem = federation.site("gw-wrong")["connection_problem"]
    assert problem["reason"].startswith("it refuses the connection")
    assert problem["since"] < problem["until"]


def test_a_renamed_gateway_is_another_one_at_once(federation: SecuredFederation) -> None:
    service = federation.enrol("gw-old")
    answer = federation.http.post("/api/fleet/gw-old/rename", json={"name": "north-wing"})
    assert answer.status_code == 200, answer.text + service.log
    assert federation.is_live("north-wing")
    wait_until(lambda: not federation.site("gw-old"), "the old name is gone")
    assert federation.enrolment("gw-old") == {}
    assert federation.enrolment("north-wing")["state"] == "joined"
    assert service.process.poll() is None, "the process is the same"
    federation.http.post("/api/fleet/north-wing/revoke")
    wait_until(lambda: not federation.is_live("north-wing"), "north-wing is out", 1)


def test_a_retired_gateway_leaves_nothing(federation: SecuredFederation) -> None:
    service = federation.enrol("gw-gone")
    assert federation.http.delete("/api/fleet/gw-gone").status_code == 200
    wait_until(lambda: not federation.site("gw-gone"), "gw-gone is gone")
    accounts = (federation.folder / "dynamic-security.json").read_text()
    assert "gw-gone" not in accounts
    wait_until(lambda: "it refuses the connection" in service.log, "the gateway knows why")
    assert federation.site("gw-gone") == {}


def test_a_connection_that_never_shakes_hands_is_closed(federation: SecuredFederation) -> None:
    with socket.create_connection(("127.0.0.1", federation.port), 1) as silent:
        silent.settimeout(20)
        assert silent.recv(1) == b""
