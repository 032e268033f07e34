"""Broker addresses and the options of `open_client`."""

from pathlib import Path

import pytest

from host.mqtt import Will, open_client
from host.mqtt.broker_address import BrokerAddress, parse_address, tls_context


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mqtt://host", BrokerAddress("host", 1883)),
        ("mqtts://host", BrokerAddress("host", 8883, tls=True)),
        ("mqtt://127.0.0.1:7/", BrokerAddress("127.0.0.1", 7)),
        ("mqtt://[::1]:9", BrokerAddress("::1", 9)),
        ("mqtt://me:p%40ss@h", BrokerAddress("h", 1883, user="me", password="p@ss")),
    ],
)
def test_addresses(url: str, expected: BrokerAddress) -> None:
    address = parse_address(url)
    assert address == expected
    assert parse_address(str(address)) == BrokerAddress(address.host, address.port, address.tls)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:1883",
        "http://host",
        "mqtt://",
        "mqtt://h:x",
        "mqtt://h:0",
        "mqtt://h:99999",
        "mqtt://h/path",
        "mqtt://h?x=1",
        "mqtt://[::1",
    ],
)
def test_malformed_addresses(url: str) -> None:
    with pytest.raises(ValueError, match="broker address"):
        parse_address(url)


def test_passwords_are_not_shown() -> None:
    address = parse_address("mqtt://me:secret@host")
    assert "secret" not in repr(address) + str(address)
    with pytest.raises(ValueError, match="broker address") as caught:
        parse_address("wrong://me:secret@host")
    assert "secret" not in str(caught.value)


def test_tls_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="TLS files"):
        tls_context(ca=tmp_path / "none")
    with pytest.raises(ValueError, match="needs its certificate"):
        tls_context(key=tmp_path / "key")
    assert tls_context().check_hostname
    with pytest.raises(ValueError, match="not an mqtts"):
        open_client("mqtt://h", "id", ca=tmp_path / "ca")


@pytest.mark.parametrize("client_id", ["", "a\0", "x" * 65_536])
def test_client_ids(client_id: str) -> None:
    with pytest.raises(ValueError, match="client id"):
        open_client("mqtt://h", client_id)


def test_a_will_needs_a_topic_one_can_publish_on() -> None:
    with pytest.raises(ValueError, match="wildcard"):
        open_client("mqtt://h", "id", will=Will("a/#", b""))
