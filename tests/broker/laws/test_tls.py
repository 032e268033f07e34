"""TLS at both brokers: whom they are, whom they let in, what strangers cannot do."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from broker.broker_launch import BrokerSecurity, Preference, find_mosquitto
from broker.broker_testing import BrokerProcess, ConnectionClosed, RawClient
from tests.broker.laws.secured import FEDERATION, NOT_AUTHORIZED, write_accounts
from tests.certificates import make_certificate

pytestmark = pytest.mark.broker

STATE = f"pando/v1/{FEDERATION}/gw/gw-1/state"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    for name, common_name in [("ca", "house"), ("broker", "broker"), ("gw-1", "gw-1")]:
        make_certificate(folder, name, common_name)
    foreign = folder / "foreign"
    foreign.mkdir()
    for name, common_name in [("ca", "another house"), ("gw-1", "gw-1")]:
        make_certificate(foreign, name, common_name)
    return folder


@pytest.fixture(scope="module", params=["embedded", "mosquitto"])
def kind(request: pytest.FixtureRequest) -> Preference:
    kind = cast("Preference", request.param)
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    return kind


@pytest.fixture(scope="module", params=[False, True], ids=["server", "mutual"])
def mutual(request: pytest.FixtureRequest) -> bool:
    """Whether clients need a certificate."""
    return cast("bool", request.param)


@pytest.fixture(scope="module")
def broker(
    kind: Preference, certificates: Path, tmp_path_factory: pytest.TempPathFactory, *, mutual: bool
) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("tls")
    accounts = folder / "dynamic-security.json"
    write_accounts(accounts)
    security = BrokerSecurity(
        accounts,
        certificates / "broker.crt",
        certificates / "broker.key",
        certificates / "ca.crt" if mutual else None,
    )
    with BrokerProcess(kind, folder, security) as process:
        yield process


def client_context(authority: Path, certificate: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority))
    if certificate is not None:
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


def opened(broker: BrokerProcess, context: ssl.SSLContext, user: str = "gw-1") -> RawClient:
    client = RawClient(broker.port, user, 5, context)
    assert client.open(user=user, password=f"pw-{user}".encode())[1] == 0
    return client


def own(certificates: Path, *, mutual: bool) -> ssl.SSLContext:
    certificate = certificates / "gw-1.crt" if mutual else None
    return client_context(certificates / "ca.crt", certificate)


def test_a_site_connects_with_what_it_was_given(
    broker: BrokerProcess, certificates: Path, *, mutual: bool
) -> None:
    with opened(broker, own(certificates, mutual=mutual)) as gateway:
        assert gateway.publish(STATE, b"{}") != NOT_AUTHORIZED
        assert gateway.publish(STATE.replace("gw-1", "gw-2"), b"{}") == NOT_AUTHORIZED


def test_a_certificate_does_not_stand_for_the_password(
    broker: BrokerProcess, certificates: Path, *, mutual: bool
) -> None:
    context = own(certificates, mutual=mutual)
    for user, password in [("gw-1", b"wrong"), (None, None)]:
        with RawClient(broker.port, "gw-1", 5, context) as client:
            assert client.open(user=user, password=password)[1] in (0x86, NOT_AUTHORIZED)


def test_a_client_recognizes_a_broker_of_another_authority(
    broker: BrokerProcess, certificates: Path
) -> None:
    context = client_context(certificates / "foreign" / "ca.crt")
    with pytest.raises(ssl.SSLCertVerificationError):
        RawClient(broker.port, "gw-1", 5, context)


def _refused(broker: BrokerProcess, context: ssl.SSLContext) -> bool:
    """Whether a client is cut off in the handshake; with TLS 1.3 it learns it when it reads."""
    try:
        with RawClient(broker.port, "gw-1", 5, context) as client:
            client.open(user="gw-1", password=b"pw-gw-1")
    except (ssl.SSLError, ConnectionClosed, ConnectionError):
        return True
    return False


def test_where_clients_need_a_certificate_none_and_a_foreign_one_are_refused(
    broker: BrokerProcess, certificates: Path, *, mutual: bool
) -> None:
    authority, foreign = certificates / "ca.crt", certificates / "foreign" / "gw-1.crt"
    assert _refused(broker, client_context(authority)) is mutual
    if mutual:
        assert _refused(broker, client_context(authority, foreign))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1:DeprecationWarning")
def test_old_versions_of_tls_are_refused(
    broker: BrokerProcess, certificates: Path, *, mutual: bool
) -> None:
    context = own(certificates, mutual=mutual)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1_1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    assert _refused(broker, context)


def test_who_speaks_no_tls_harms_nobody(
    broker: BrokerProcess, certificates: Path, *, mutual: bool
) -> None:
    silent = socket.create_connection(("127.0.0.1", broker.port))
    with silent:
        for content in (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00", b"\x16\x03\x01\x00\x05x"):
            with socket.create_connection(("127.0.0.1", broker.port)) as stranger:
                stranger.sendall(content)
        with opened(broker, own(certificates, mutual=mutual)) as gateway:
            assert gateway.publish(STATE, b"{}") != NOT_AUTHORIZED


@pytest.mark.parametrize("kind", ["embedded"], indirect=True)
@pytest.mark.parametrize("mutual", [True], indirect=True)
def test_ours_wants_the_certificate_of_the_user_who_asks(
    broker: BrokerProcess, certificates: Path
) -> None:
    context = client_context(certificates / "ca.crt", certificates / "gw-1.crt")
    with RawClient(broker.port, "gw-2", 5, context) as client:
        assert client.open(user="gw-2", password=b"pw-gw-2")[1] == 0x86
