"""Junk on the wire ends the connection it came on, and nothing else."""

import random
from collections.abc import Callable

import pytest

from broker.broker_testing import BrokerProcess, ConnectionClosed, RawClient, text

pytestmark = pytest.mark.broker

Connect = Callable[..., RawClient]

_CONNECT = b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04junk"

_BEFORE_CONNECT = {
    "not MQTT at all": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "publish first": b"\x30\x05\x00\x01ax!",
    "length of five bytes": b"\x10\xff\xff\xff\xff\x7f",
    "wrong protocol name": b"\x10\x10\x00\x04HTTP\x04\x02\x00\x3c\x00\x04junk",
    "reserved connect flag": b"\x10\x10\x00\x04MQTT\x04\x03\x00\x3c\x00\x04junk",
    "will of QoS 3": b"\x10\x10\x00\x04MQTT\x04\x1e\x00\x3c\x00\x04junk",
    "connect cut short": b"\x10\x08\x00\x04MQTT\x04\x02",
    "client id not UTF-8": b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04j\xff\xfek",
}
_AFTER_CONNECT = {
    "second connect": _CONNECT,
    "QoS 3": b"\x36\x06\x00\x01a\x00\x01x",
    "packet id 0": b"\x32\x06\x00\x01a\x00\x00x",
    "topic with wildcard": b"\x30\x04\x00\x01#x",
    "empty topic": b"\x30\x03\x00\x00x",
    "topic not UTF-8": b"\x30\x05\x00\x02\xc3\x28x",
    "topic with NUL": b"\x30\x05\x00\x02a\x00x",
    "topic longer than the packet": b"\x30\x03\x00\xffx",
    "subscribe without filter": b"\x82\x02\x00\x01",
    "subscribe flags": b"\x80\x06\x00\x01\x00\x01a\x00",
    "subscribe options": b"\x82\x06\x00\x01\x00\x01a\x03",
    "unsubscribe without filter": b"\xa2\x02\x00\x01",
    "packet type 0": b"\x00\x00",
    "a server's packet": b"\x20\x02\x00\x00",
}


def _check_unharmed(client: RawClient, root: str) -> None:
    client.subscribe((f"{root}/check", 1))
    client.publish(f"{root}/check", b"fine")
    assert [m.payload for m in client.sync()] == [b"fine"]


@pytest.mark.parametrize("junk", _BEFORE_CONNECT.values(), ids=_BEFORE_CONNECT.keys())
def test_junk_before_connect(
    shared_broker: BrokerProcess, connect: Connect, root: str, junk: bytes
) -> None:
    other = connect("other")
    with RawClient(shared_broker.port, "junk") as client:
        client.send(junk)
        if junk.startswith(b"\x10\x08"):
            client.send(b"")
        client.wait_closed()
    _check_unharmed(other, root)


@pytest.mark.parametrize("junk", _AFTER_CONNECT.values(), ids=_AFTER_CONNECT.keys())
def test_junk_after_connect(
    shared_broker: BrokerProcess, connect: Connect, root: str, junk: bytes
) -> None:
    other = connect("other")
    with RawClient(shared_broker.port, f"{root}-junk") as client:
        client.open()
        client.send(junk)
        client.wait_closed()
    _check_unharmed(other, root)


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes(
    shared_broker: BrokerProcess, connect: Connect, root: str, version: int, seed: int
) -> None:
    other = connect("other")
    rng = random.Random(seed)
    for _ in range(50):
        with RawClient(shared_broker.port, f"{root}-junk", version) as client:
            client.open()
            try:
                client.send(rng.randbytes(rng.randint(1, 3_000)))
            except ConnectionError:
                continue
    _check_unharmed(other, root)


def test_a_packet_above_the_limit_is_refused_at_its_header(
    shared_broker: BrokerProcess, connect: Connect, root: str
) -> None:
    other = connect("other")
    with RawClient(shared_broker.port, f"{root}-huge") as client:
        client.open()
        client.send(b"\x30\xff\xff\xff\x7f" + text(f"{root}/a"))
        try:
            for _ in range(300):  # 300 MB announced; nobody takes them
                client.send(bytes(1_000_000))
        except ConnectionError:
            closed = True
        else:
            closed = client.wait_closed() is None
        assert closed
    _check_unharmed(other, root)


def test_a_bad_filter_is_refused_alone(connect: Connect, root: str, version: int) -> None:
    client = connect("client")
    try:
        codes = client.subscribe((f"{root}/ok", 1), (f"{root}/a#", 1))
    except ConnectionClosed:
        return  # Mosquitto ends the connection, which MQTT allows as well
    assert codes == [1, 0x8F if version == 5 else 0x80]


def test_an_unknown_protocol_level_is_told_so(shared_broker: BrokerProcess) -> None:
    with RawClient(shared_broker.port, "future", 4) as client:
        client.send(_CONNECT.replace(b"MQTT\x04", b"MQTT\x07"))
        assert client.expect(2)[1] in {1, 0x84}
        client.wait_closed()
