"""Why a broker cannot be used: known within a second, in words, at Mosquitto and at ours."""

import asyncio
import datetime as dt
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.access.dynamic_security import (
    Document,
    PasswordHash,
    client_of,
    encode_document,
    role_of,
)
from broker.access.rights import SiteKind, rights_of
from broker.broker_launch import BrokerSecurity
from broker.broker_testing import BrokerProcess
from broker.free_ports import free_port
from host.certificates.authority import Authority, IssuedKey
from host.certificates.certificate_files import (
    certificate_paths,
    open_or_make_authority,
    write_issued,
)
from host.mqtt import open_client
from host.mqtt.broker_address import parse_address
from host.mqtt.unreachable import Failure, failure_of

pytestmark = pytest.mark.broker

NOW = dt.datetime.now(dt.UTC)
LONG_AGO = NOW - dt.timedelta(days=40)


class Secured:
    """Brokers with certificates, good and bad, and the files for their clients."""

    def __init__(self, folder: Path, kind: Any) -> None:
        self.folder = folder
        self.kind = kind
        self.authority = open_or_make_authority(folder / "ca", "ours", LONG_AGO)
        self.other = open_or_make_authority(folder / "other", "theirs", LONG_AGO)
        self.client = self.files("gw-1", self.authority.issue_client("gw-1", NOW))
        self.foreign = self.files("foreign", self.other.issue_client("gw-1", NOW))
        old = self.authority.issue_client("gw-1", LONG_AGO, days=30)
        self.expired = self.files("expired", old)
        self.brokers: dict[str, BrokerProcess] = {}

    def files(self, name: str, issued: IssuedKey) -> dict[str, str]:
        paths = certificate_paths(self.folder, name)
        write_issued(paths, issued)
        return {"cert": str(paths.certificate), "key": str(paths.key)}

    def broker(self, name: str) -> BrokerProcess:
        """Return a running broker: `good`, `expired`, or `certified`, which asks for one."""
        if name not in self.brokers:
            folder = self.folder / name
            folder.mkdir()
            self.brokers[name] = self._made(name, folder, self.authority)
            self.brokers[name].start()
        return self.brokers[name]

    def _made(self, name: str, folder: Path, authority: Authority) -> BrokerProcess:
        issued = (
            authority.issue_server("broker", ["127.0.0.1"], LONG_AGO, days=30)
            if name == "expired"
            else authority.issue_server("broker", ["127.0.0.1"], NOW)
        )
        paths = certificate_paths(folder, "broker")
        write_issued(paths, issued)
        accounts = folder / "dynamic-security.json"
        kept = PasswordHash.of("right", b"0123456789ab", 101)
        rights = rights_of(SiteKind.GATEWAY, "gw-1", "house")
        document = Document(clients=(client_of("gw-1", kept),), roles=(role_of("gw-1", rights),))
        accounts.write_bytes(encode_document(document))
        asks = self.folder / "ca" / "ca.crt" if name == "certified" else None
        security = BrokerSecurity(accounts, paths.certificate, paths.key, asks)
        return BrokerProcess(self.kind, folder, security)


@pytest.fixture(scope="module", params=["mosquitto", "embedded"])
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"), request.param)
    yield made
    for broker in made.brokers.values():
        broker.stop()


def failure(url: str, **files: Any) -> tuple[Failure, float]:
    """Return why a client cannot connect, and after how many seconds that is known."""

    async def attempt() -> tuple[Failure, float]:
        client = open_client(url, "gw-1", **files)
        begun = time.monotonic()
        await client.connect(timeout=None)
        try:
            while True:
                found = client.failure
                assert found is not None, "it is connected"
                if found.reason != "no answer yet" or time.monotonic() - begun > 20:
                    return found, time.monotonic() - begun
                await asyncio.sleep(0.01)
        finally:
            await client.close()

    return asyncio.run(attempt())


CASES = {
    "refused": "nothing listens there",
    "unknown host": "the host name 'no-such-host.invalid' is not known",
    "untrusted": "its certificate is not trusted",
    "wrong name": "its certificate is not for 'localhost'",
    "expired": "its certificate is not valid now",
    "bad password": "it refuses the connection",
    "no TLS there": "it does not speak TLS",
    "TLS there": "it closes the connection at once",
    "no certificate": "a client certificate",
    "foreign certificate": "our client certificate",
    "expired certificate": "our client certificate",
}


@pytest.mark.parametrize("case", CASES)
def test_the_reason_is_known_within_a_second(secured: Secured, case: str, tmp_path: Path) -> None:
    ours, theirs = str(secured.folder / "ca" / "ca.crt"), str(secured.folder / "other" / "ca.crt")

    def url(name: str, host: str = "127.0.0.1", password: str = "right") -> str:  # noqa: S107
        return f"mqtts://gw-1:{password}@{host}:{secured.broker(name).port}"

    if case == "refused":
        found, seconds = failure(f"mqtts://gw-1:right@127.0.0.1:{free_port()}", ca=ours)
    elif case == "unknown host":
        found, seconds = failure("mqtts://gw-1:right@no-such-host.invalid", ca=ours)
    elif case == "untrusted":
        found, seconds = failure(url("good"), ca=theirs)
    elif case == "wrong name":
        found, seconds = failure(url("good", "localhost"), ca=ours)
    elif case == "expired":
        found, seconds = failure(url("expired"), ca=ours)
    elif case == "bad password":
        found, seconds = failure(url("good", password="wrong"), ca=ours)
    elif case == "no TLS there":
        with BrokerProcess(secured.kind, tmp_path) as plain:
            found, seconds = failure(f"mqtts://127.0.0.1:{plain.port}", ca=ours)
    elif case == "TLS there":
        found, seconds = failure(url("good").replace("mqtts", "mqtt"))
    elif case == "no certificate":
        found, seconds = failure(url("certified"), ca=ours)
    elif case == "foreign certificate":
        found, seconds = failure(url("certified"), ca=ours, **secured.foreign)
    else:
        found, seconds = failure(url("certified"), ca=ours, **secured.expired)
    assert CASES[case] in found.reason
    assert found.hint
    assert seconds < 1
    assert "right" not in found.reason


@pytest.mark.parametrize("error", [ssl.SSLEOFError(), ssl.SSLZeroReturnError()])
def test_a_connection_that_ends_in_the_handshake_has_one_reason(error: ssl.SSLError) -> None:
    """Python 3.11.2 raises the second where later ones raise the first."""
    found = failure_of(error, parse_address("mqtts://127.0.0.1:1883"))
    assert "it does not speak TLS" in found.reason
