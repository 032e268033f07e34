"""`pando up --secure`: everything works as without, and a stranger gets nothing."""

import json
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker.broker_testing import RawClient
from host.mqtt.broker_address import parse_address
from tests.end_to_end.federation import PATIENCE, ROOT, Federation, federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.broker, pytest.mark.timeout(600)]

NOT_AUTHORIZED = 0x87
GATEWAYS = 2


def port_of(up: Federation) -> int:
    settings = json.loads((up.data / "run" / "gw-1.json").read_text())
    address = parse_address(settings["broker"])
    assert (address.tls, address.user) == (True, "gw-1")
    return address.port


def client(up: Federation, user: str, password: str) -> tuple[RawClient, int]:
    """Connect over TLS; return the client and the code of the answer."""
    context = ssl.create_default_context(cafile=str(up.data / "authority" / "ca.crt"))
    made = RawClient(port_of(up), user, 5, context)
    return made, made.open(user=user, password=password.encode())[1]


def password(up: Federation, site: str) -> str:
    return (up.data / "run" / "passwords" / site).read_text().strip()


def online(up: Federation) -> set[str]:
    return {site["site"] for site in up.http.get("/api/sites").json() if site["online"]}


def seats_counted(up: Federation) -> bool:
    """Whether a join of a stored table with readings of all gateways has an answer."""
    text = """
        SELECT s.rid, COUNT(*) AS n FROM SeatSensor s, Machines m WHERE s.rid = m.rid GROUP BY s.rid
    """
    (started,) = up.http.post("/api/statements", json={"text": text}).json()
    query = started["query"]["id"]
    rows: list[Any] = up.until(lambda: up.http.get(f"/api/queries/{query}/rows").json()["rows"])
    up.http.delete(f"/api/queries/{query}")
    return len(rows) > 0


def joined(up: Federation, name: str, folder: Path) -> "subprocess.Popen[bytes]":
    """Enrol a gateway by token, as on another machine, and start it."""
    made = up.pando("gateway", "provision", name)
    assert made.returncode == 0, made.stderr
    command = next(line.split() for line in made.stdout.splitlines() if "gateway join" in line)
    done = up.pando(*command[1:], "--data", str(folder))
    assert done.returncode == 0, done.stderr
    return subprocess.Popen(
        [sys.executable, "-m", "gateway", "--config", str(folder / "gateway.json")],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("broker", ["embedded", "mosquitto"])
def test_a_secured_federation_works_and_keeps_strangers_out(tmp_path: Path, broker: str) -> None:
    options = ("--secure", "--broker", broker, "--no-spark", "--gateways", str(GATEWAYS))
    data = tmp_path / "data"
    with federation(data, *options) as up:
        up.until(lambda: {"base", "static", "gw-1", "gw-2"} <= online(up))
        assert seats_counted(up)
        for user, word in [("gw-1", "wrong"), ("stranger", "x"), ("gw-1", password(up, "gw-2"))]:
            stranger, code = client(up, user, word)
            with stranger:
                assert code in (0x86, NOT_AUTHORIZED)
        viewer, code = client(up, "viewer", password(up, "viewer"))
        with viewer:
            assert code == 0
            assert viewer.subscribe(("pando/v1/demo/gw/+/state", 1)) == [1]
            assert viewer.wait_for(GATEWAYS + 1)
            for topic in ("gw/gw-1/state", "gw/gw-1/cmd/restart", "source/SeatSensor"):
                assert viewer.publish(f"pando/v1/demo/{topic}", b"{}") == NOT_AUTHORIZED
        fourth = joined(up, "gw-9", tmp_path / "gw-9")
        try:
            up.until(lambda: "gw-9" in online(up))
        finally:
            fourth.terminate()
            fourth.wait(PATIENCE)
        forbidden = [line for line in up.events if "may not" in str(line.get("line", ""))]
        strangers = [line for line in forbidden if "viewer" not in str(line)]
        assert strangers == [], "services ask for what they may"
        private = [data / "authority" / name for name in ("ca.key", "broker.key")]
        private += [*(data / "run" / "passwords").iterdir()]
        private += [data / "state" / "broker" / "dynamic-security.json"]
        assert {file.stat().st_mode & 0o777 for file in private} == {0o600}
        kept = password(up, "gw-1")
        up.stop()
    with federation(data, *options) as up:
        assert password(up, "gw-1") == kept
        up.until(lambda: {"base", "static", "gw-1", "gw-2"} <= online(up))
        accounts = json.loads((data / "state" / "broker" / "dynamic-security.json").read_text())
        assert "gw-9" in {account["username"] for account in accounts["clients"]}


def test_the_console_speaks_tls_where_other_machines_reach_it(tmp_path: Path) -> None:
    """Another loopback address stands for another machine's view."""
    data, state = tmp_path / "data", tmp_path / "user-state"
    options = ("--secure", "--console-host", "127.0.0.2", "--no-spark", "--gateways", "1")
    up = Federation(data, *options, state=state)
    try:
        address = f"https://127.0.0.2:{up.port}"
        assert up.wait_ready()["console"] == address
        up.environment["PANDO_CONSOLE"] = address
        listed = up.pando("gateway", "list")
        assert listed.returncode == 0, listed.stderr
        assert "gw-1" in listed.stdout
        up.environment["XDG_STATE_HOME"] = str(tmp_path / "elsewhere")
        stranger = up.pando("gateway", "list")
        assert stranger.returncode != 0
        assert "is not trusted" in stranger.stderr
        authority = str(data / "authority" / "ca.crt")
        told = up.pando("--ca", authority, "gateway", "list")
        assert told.returncode == 0, told.stderr
    finally:
        up.stop()
        up.close()
