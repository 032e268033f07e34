"""Credentials change while readings come: none is lost, none is there twice."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from broker.free_ports import free_port
from tests.end_to_end.fleet import SecuredFederation, secured_federation, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.end_to_end, pytest.mark.timeout(300)]

SOURCE = """
CREATE SOURCE numbered (n INTEGER)
WITH (connector = 'http_push', endpoint = 'hooks', ttl = '2 h')
"""
TOKEN = "a-token-of-this-test"
PER_SECOND = 100


class Device:
    """Sends 1, 2, 3, … to a gateway, each until the gateway has acknowledged it."""

    def __init__(self, port: int) -> None:
        self.sent = 0
        self._url = f"http://127.0.0.1:{port}/numbered"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Device":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(headers=headers, timeout=20, trust_env=False) as client:
            while not self._stop.wait(1 / PER_SECOND):
                try:
                    answer = client.post(self._url, json={"n": self.sent + 1})
                except httpx.ConnectError:
                    continue  # the gateway does not listen yet
                if answer.status_code in (429, 503):
                    continue  # not taken: it asks to send it again
                assert answer.status_code == 202, answer.text
                self.sent += 1


@pytest.fixture(params=["mosquitto", "embedded"])
def federation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SecuredFederation]:
    with secured_federation(tmp_path, request.param) as running:
        yield running


def start_loaded_gateway(federation: SecuredFederation, name: str) -> int:
    """Enrol a gateway that listens for readings; return the port where it does."""
    joined = federation.join(name, federation.provision(name))
    assert joined.returncode == 0, joined.stderr
    port = free_port()
    file = federation.folder / name / "gateway.json"
    hooks = {"connector": "http_push", "port": port, "token": TOKEN}
    file.write_text(json.dumps({**json.loads(file.read_text()), "endpoints": {"hooks": hooks}}))
    federation.start_gateway(name)
    wait_until(lambda: federation.is_live(name), f"{name} is live")
    return port


def numbers(federation: SecuredFederation, query: str) -> Counter[int]:
    """Return how often each number is in the answer."""
    rows: list[dict[str, Any]] = federation.http.get(f"/api/queries/{query}/rows").json()["rows"]
    return Counter(int(row["n"]) for row in rows)


def serves(federation: SecuredFederation, name: str) -> bool:
    """Whether a gateway reads the source."""
    return any(each["source"] == "numbered" for each in federation.site(name)["declared"])


def test_no_reading_is_lost_and_none_is_there_twice(federation: SecuredFederation) -> None:
    port = start_loaded_gateway(federation, "gw-1")
    answer = federation.http.post("/api/statements", json={"text": SOURCE})
    assert answer.status_code == 200, answer.text
    wait_until(lambda: serves(federation, "gw-1"), "the source is served")
    started = federation.http.post(
        "/api/statements", json={"text": "SELECT n FROM numbered", "name": "all"}
    )
    assert started.status_code == 200, started.text

    def seen(number: int) -> bool:
        return numbers(federation, "all")[number] > 0

    with Device(port) as device:
        wait_until(lambda: seen(20), "readings come")
        for _ in range(3):
            assert federation.http.post("/api/fleet/gw-1/rotate").status_code == 200
            wait_until(partial(seen, device.sent + 20), "they come with new credentials")
        assert federation.http.post("/api/fleet/gw-1/revoke").status_code == 200
        wait_until(lambda: not federation.is_live("gw-1"), "it is out", 1)
        revoked_at = device.sent
        wait_until(lambda: device.sent > revoked_at + 200, "readings are kept at the gateway")
        again = federation.join("gw-1", federation.provision("gw-1"))
        assert again.returncode == 0, again.stderr
        wait_until(lambda: federation.is_live("gw-1"), "it is back, and was not restarted")
        assert federation.http.post("/api/fleet/gw-1/rotate").status_code == 200
        device.stop()
    expected = Counter(range(1, device.sent + 1))
    wait_until(lambda: numbers(federation, "all").keys() == expected.keys(), "all are there")
    assert numbers(federation, "all") == expected
    assert federation.site("gw-1")["buffer"]["dropped"] == 0
    log = federation.services["gw-1"].log
    assert log.count("new credentials are here") == 4
