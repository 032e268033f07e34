"""Services on a Mosquitto with TLS and client certificates, and what they say when it fails."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker.broker_testing import PATIENCE
from broker.free_ports import free_port
from gateway.testing import until
from host.mqtt import open_client
from streamsql.wire.codec import decode_json
from streamsql.wire.site_messages import SiteState
from tests.certificates import make_certificate
from tests.deploy.laws.test_broker_config import PASSWORDS, Client, running_broker

pytestmark = pytest.mark.broker

SERVICES: dict[str, tuple[str, dict[str, object]]] = {
    "gateway-a": ("gateway", {"gateway": "gateway-a"}),
    "base": ("gateway", {"gateway": "base", "role": "base"}),
    "static": ("static_engine", {"use_spark": False}),
    "coordinator": ("deploy.console", {}),
}


@dataclass(frozen=True)
class Secured:
    """A running broker.

    Attributes:
        inside: Port with passwords.
        outside: Port with TLS, where clients show a certificate too.
        certificates: Folder of the private authority.
    """

    inside: int
    outside: int
    certificates: Path

    def file(self, name: str) -> str:
        """Return the path of a certificate or key."""
        return str(self.certificates / name)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Run the shipped configuration, with `tls.conf`."""
    folder = tmp_path_factory.mktemp("secured")
    certificates = folder / "certificates"
    certificates.mkdir()
    for name in ("ca", "broker", *SERVICES):
        make_certificate(certificates, name, name)
    stranger = folder / "stranger"
    stranger.mkdir()
    for name in ("ca", "gateway-a"):
        make_certificate(stranger, name, name)
    (stranger / "gateway-a.crt").rename(certificates / "stranger.crt")
    (stranger / "gateway-a.key").rename(certificates / "stranger.key")
    inside, outside = free_port(), free_port()
    with running_broker(folder, {1883: inside, 8883: outside}, mutual=True):
        yield Secured(inside, outside, certificates)


def test_every_service_speaks_tls_and_shows_its_certificate(
    secured: Secured, tmp_path: Path
) -> None:
    """Nobody else may write the state that each writes."""
    with ExitStack() as stack:
        listener = stack.enter_context(Client(secured.inside, "gateway-b"))
        listener.subscribe("pando/v1/house/gw/+/state")
        listener.subscribe("pando/v1/house/host/+/state")
        for name, (module, settings) in SERVICES.items():
            file = tmp_path / f"{name}.json"
            own = {"port": free_port()} if name == "coordinator" else {}
            address = f"mqtts://{name}:{PASSWORDS[name]}@127.0.0.1:{secured.outside}"
            common = {"site": "house", "broker": address, "data_dir": str(tmp_path / name)}
            file.write_text(json.dumps({**common, **own, **settings}))
            environment = {
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[3]),
                "PANDO_BROKER_CA": secured.file("ca.crt"),
                "PANDO_BROKER_CERT": secured.file(f"{name}.crt"),
                "PANDO_BROKER_KEY": secured.file(f"{name}.key"),
            }
            log = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
            command = [sys.executable, "-m", module, "--config", str(file)]
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            stack.callback(process.wait, PATIENCE)
            stack.callback(process.terminate)

        def online() -> set[str]:
            """Return who says that it is there."""
            states = {t.split("/")[-2]: decode_json(p, SiteState) for t, p in listener.received}
            return {site for site, state in states.items() if state.online}

        asyncio.run(until(lambda: online() == set(SERVICES), "all are online", PATIENCE))


CASES = [
    pytest.param("mqtt://127.0.0.1:{free}", "", "", "nothing listens there", id="refused"),
    pytest.param("mqtt://no-such-host.invalid", "", "", "host name 'no-such", id="unknown host"),
    pytest.param("mqtts://127.0.0.1:{tls}", "", "", "is not trusted", id="unknown authority"),
    pytest.param("mqtts://localhost:{tls}", "ca.crt", "base", "is not for 'localhost'", id="name"),
    pytest.param("mqtts://127.0.0.1:{tls}", "ca.crt", "", "asks for a client", id="no certificate"),
    pytest.param(
        "mqtts://127.0.0.1:{tls}",
        "ca.crt",
        "stranger",
        "it rejects our client certificate",
        id="stranger",
    ),
    pytest.param(
        "mqtt://gateway-a:x@127.0.0.1:{plain}",
        "",
        "",
        "it refuses the connection",
        id="bad password",
    ),
    pytest.param("mqtt://127.0.0.1:{plain}", "", "", "it refuses the connection", id="no password"),
    pytest.param("mqtts://127.0.0.1:{plain}", "", "", "it does not speak TLS", id="no TLS there"),
    pytest.param(
        "mqtt://127.0.0.1:{tls}", "", "", "it closes the connection at once", id="TLS there"
    ),
]


@pytest.mark.parametrize(("address", "ca", "cert", "said"), CASES)
def test_a_client_that_cannot_reach_its_broker_says_why_and_what_to_do_once(  # noqa: PLR0913, PLR0917
    secured: Secured,
    address: str,
    ca: str,
    cert: str,
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = address.format(free=free_port(), tls=secured.outside, plain=secured.inside)
    client = open_client(
        url,
        "gateway-a",
        ca=secured.file(ca) if ca else "",
        cert=secured.file(f"{cert}.crt") if cert else "",
        key=secured.file(f"{cert}.key") if cert else "",
    )
    attempts: list[object] = []
    link = client._link  # type: ignore[attr-defined]
    before = link._paho.on_pre_connect

    def counted(*given: object) -> None:
        attempts.append(given)
        before(*given)

    link._paho.on_pre_connect = counted

    async def scenario() -> None:
        await client.connect(timeout=None)
        await until(lambda: len(attempts) >= 3, "it tries again", PATIENCE)
        await client.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    lines = [r.getMessage() for r in caplog.records if "cannot be used" in r.getMessage()]
    assert len(lines) == 1, lines
    place = url.split("@")[-1].removeprefix("mqtts://").removeprefix("mqtt://")
    assert said in lines[0]
    assert place in lines[0]
    assert ":x@" not in lines[0], "the password is nobody's business"
    assert "(" in lines[0].split(said)[1], "what to do"


def test_log_lines_of_every_service_have_a_time_with_its_zone(tmp_path: Path) -> None:
    file = tmp_path / "gateway.json"
    settings = {
        "site": "house",
        "gateway": "gateway-a",
        "broker": f"mqtt://127.0.0.1:{free_port()}",
        "data_dir": str(tmp_path / "data"),
    }
    file.write_text(json.dumps(settings))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "TZ": "Asia/Tokyo"}
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "--config", str(file)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    process.terminate()
    process.communicate(timeout=PATIENCE)
    moment, level, text = line.split(" ", 2)
    assert moment[10] == "T"
    assert moment.endswith("+09:00")
    assert level == "WARNING"
    assert text.startswith("broker mqtt://127.0.0.1")
