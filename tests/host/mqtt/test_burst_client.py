"""The client that reads bursts, against a broker that is written by hand here."""

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt import MQTTException
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from broker.broker_testing import PATIENCE
from host.mqtt.burst_client import BurstClient
from host.mqtt.packet_stream import PacketStream, Received, publish_packet

V5, V311 = MQTTProtocolVersion.MQTTv5, MQTTProtocolVersion.MQTTv311
CONNACK = b"\x20\x02\x00\x00"
CONNACK_5 = b"\x20\x03\x00\x00\x00"


class Peer:
    """The broker's end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._stream = PacketStream()
        self._packets: list[bytes] = []

    def packet(self) -> bytes:
        """Return the next packet of the client."""
        while not self._packets:
            data = self.connection.recv(65_536)
            assert data, "the client has hung up"
            self._packets += [packet for packet, _body in self._stream.packets(data)]
        return self._packets.pop(0)


@contextmanager
def connected(
    version: MQTTProtocolVersion = V311, keepalive: int = 60
) -> Iterator[tuple[BurstClient, Peer, list[list[Received]]]]:
    """Connect a client to a peer; its thread does not run: tests read by `loop_read`."""
    client, bursts = BurstClient("test", version, clean=True), list[list[Received]]()
    client.on_burst = bursts.append
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(
            target=client.connect, args=("127.0.0.1", server.getsockname()[1], keepalive)
        )
        thread.start()
        connection, _address = server.accept()
        thread.join(PATIENCE)
    with connection:
        connection.settimeout(PATIENCE)
        peer = Peer(connection)
        assert peer.packet()[0] == 0x10
        connection.sendall(CONNACK_5 if version == V5 else CONNACK)
        read_until(client, client.is_connected)
        yield client, peer, bursts
        client.disconnect()


def read_until(client: BurstClient, condition: Callable[[], bool]) -> None:
    """Let a client read, and write what waits, until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it was not read"
        assert client.loop_read() == MQTTErrorCode.MQTT_ERR_SUCCESS
        if client.want_write():
            client.loop_write()


def test_bursts_come_in_order_however_they_are_cut() -> None:
    with connected() as (client, peer, bursts):
        messages = [
            Received(f"t/{n}", b"x" * (n % 300), n % 2, n % 3 == 0, n if n % 2 else 0)
            for n in range(1, 2_000)
        ]
        data = b"".join(
            publish_packet(m.topic, m.payload, m.qos, m.packet_id, retain=m.retain)
            + (b"\xd0\x00" if m.packet_id == 501 else b"")
            for m in messages
        )

        def send() -> None:
            for start in range(0, len(data), 777):
                peer.connection.sendall(data[start : start + 777])

        thread = threading.Thread(target=send)
        thread.start()
        read_until(client, lambda: sum(map(len, bursts)) == len(messages))
        thread.join(PATIENCE)
        assert [message for burst in bursts for message in burst] == messages
        assert len(bursts) < len(messages) / 2


def test_what_has_come_is_acknowledged_at_once_and_only_when_it_is_said() -> None:
    with connected() as (client, peer, bursts):
        packets = [publish_packet("t", b"x", 1, n, retain=False) for n in range(1, 501)]
        peer.connection.sendall(b"".join(packets))
        read_until(client, lambda: sum(map(len, bursts)) == 500)
        peer.connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            peer.connection.recv(1)
        peer.connection.settimeout(PATIENCE)
        client.acknowledge([m.packet_id for burst in bursts for m in burst])
        assert [peer.packet() for _ in range(500)] == [
            b"\x40\x02" + struct.pack(">H", n) for n in range(1, 501)
        ]


def test_a_topic_that_is_no_text_is_acknowledged_and_left_out() -> None:
    with connected() as (client, peer, bursts):
        peer.connection.sendall(b"\x32\x06\x00\x02\xff\xfe\x00\x07")
        peer.connection.sendall(publish_packet("t", b"x", 0, 0, retain=False))
        read_until(client, lambda: bool(bursts))
        assert bursts == [[Received("t", b"x")]]
        assert peer.packet() == b"\x40\x02\x00\x07"


def test_qos_2_is_read_by_paho() -> None:
    with connected() as (client, peer, bursts):
        peer.connection.sendall(b"\x34\x06\x00\x01t\x00\x09x")
        read_until(client, lambda: bool(select.select([peer.connection], [], [], 0)[0]))
        assert peer.packet() == b"\x50\x02\x00\x09"
        peer.connection.sendall(b"\x62\x02\x00\x09")
        read_until(client, lambda: bool(bursts))
        assert bursts == [[Received("t", b"x", 2)]]
        assert peer.packet() == b"\x70\x02\x00\x09"


def test_publishes_of_mqtt_5_say_which_subscription_they_are_for() -> None:
    with connected(V5) as (client, peer, bursts):
        packet = b"\x32\x0a\x00\x01t\x00\x05\x03\x0b\x81\x01x"
        peer.connection.sendall(packet * 3)
        read_until(client, lambda: sum(map(len, bursts)) == 3)
        expected = Received("t", b"x", 1, packet_id=5, subscriptions=(129,))
        assert [m for burst in bursts for m in burst] == [expected] * 3, "paho's own and ours"


def test_acknowledgements_of_our_publishes_are_reported() -> None:
    with connected() as (client, peer, _bursts):
        acknowledged: list[int] = []
        client.on_acknowledged = acknowledged.extend
        assert client.send(publish_packet("t", b"x", 1, 40_000, retain=False))
        assert peer.packet() == b"\x32\x06\x00\x01t\x9c\x40x"
        peer.connection.sendall(b"\x40\x02\x9c\x40")
        read_until(client, lambda: acknowledged == [40_000])
    assert not client.send(b"")


def test_a_flood_does_not_look_like_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs up when it reads nothing itself for a keepalive, and gets no answer to a ping."""
    now = [1_000.0]
    monkeypatch.setattr("paho.mqtt.client.time_func", lambda: now[0])
    monkeypatch.setattr("host.mqtt.burst_client.monotonic", lambda: now[0])
    with connected(keepalive=5) as (client, peer, bursts):
        for _ in range(40):
            now[0] += 0.5
            bursts.clear()
            peer.connection.sendall(publish_packet("t", b"x", 0, 0, retain=False) * 3)
            read_until(client, lambda: sum(map(len, bursts)) == 3)
            assert client.loop_misc() == MQTTErrorCode.MQTT_ERR_SUCCESS
        assert client.is_connected()


def test_a_connection_that_ends_is_told() -> None:
    with connected() as (client, peer, bursts):
        ended: list[object] = []

        def disconnected(_client: Client, *rest: object) -> None:
            ended.append(rest)

        client.on_disconnect = disconnected
        peer.connection.sendall(publish_packet("t", b"last", 0, 0, retain=False) + b"\x30\x09")
        read_until(client, lambda: bool(bursts))
        peer.connection.close()
        while client.loop_read() == MQTTErrorCode.MQTT_ERR_SUCCESS:
            pass
        assert len(ended) == 1
        assert bursts == [[Received("t", b"last")]]


class _Encoder(Client):
    """paho's own encoding of PUBLISH is what the decoding is compared with."""

    def encoded(
        self, topic: str, payload: bytes, qos: int, retain: bool, properties: Properties | None
    ) -> bytes:
        self._sock = object()  # type: ignore[assignment]  # it is only asked whether it is there
        self._thread = object()  # type: ignore[assignment]  # so that nothing is written at once
        self._out_packet.clear()
        self._send_publish(7, topic.encode(), payload, qos, retain, False, None, properties)
        self._sock = None  # or it would be closed in the end
        return bytes(self._out_packet[0]["packet"])


@contextmanager
def fed(version: MQTTProtocolVersion) -> Iterator[tuple[BurstClient, socket.socket]]:
    """Yield a client that reads from a socket, and its other end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        client = BurstClient("test", version, clean=True)
        ours.setblocking(False)
        client._sock = ours
        yield client, theirs
        client._sock = None


MESSAGES = st.tuples(
    st.text(st.characters(blacklist_characters="\0#+"), min_size=1, max_size=40),
    st.binary(max_size=300), st.sampled_from([0, 1]), st.booleans(),
    st.lists(st.integers(1, 268_435_455), max_size=3), st.booleans(),
)  # fmt: skip


@given(
    st.lists(MESSAGES, min_size=1, max_size=5),
    st.sampled_from([V5, V311]),
    st.lists(st.integers(1, 60), max_size=30),
    st.booleans(),
)
def test_what_paho_writes_is_read_however_it_is_cut(
    messages: list[tuple[str, bytes, int, bool, list[int], bool]],
    version: MQTTProtocolVersion,
    cuts: list[int],
    by_paho: bool,
) -> None:
    """The first message of a second is read by paho, and means the same."""
    made = _Encoder(CallbackAPIVersion.VERSION2, "encoder", protocol=version)
    stream, expected = b"", []
    for topic, payload, qos, retain, numbers, more in messages:
        properties = None
        if version == V5:
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            if more:
                properties.ContentType = "application/json"
                properties.MessageExpiryInterval = 9
                properties.UserProperty = [("a", "b"), ("c", "dd")]
                properties.TopicAlias = 3
            for number in numbers:
                properties.SubscriptionIdentifier = number
        stream += made.encoded(topic, payload, qos, retain, properties)
        found = tuple(numbers) if version == V5 else ()
        expected.append(Received(topic, payload, qos, retain, 7 if qos else 0, found))
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(stream[at : at + cut])
        at += cut
    pieces.append(stream[at:])
    read: list[Received] = []
    with fed(version) as (client, theirs):
        client._heard_at = float("-inf") if by_paho else float("inf")
        client.on_burst = read.extend
        for piece in filter(None, pieces):
            theirs.sendall(piece)
            assert client.loop_read() == MQTTErrorCode.MQTT_ERR_SUCCESS
    assert read == expected


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (V311, b"\x30\x01\x00"),  # no room for the topic's length
        (V311, b"\x30\x04\x00\x09ab"),  # a topic longer than its packet
        (V311, b"\x30\xff\xff\xff\xff\x01"),  # a length of five bytes
        (V311, b"\x36\x05\x00\x01a\x00\x01"),  # QoS 3
        (V5, b"\x30\x06\x00\x01a\x02\x77\x00"),  # a property that is none
        (V5, b"\x30\x04\x00\x01a\x7f"),  # properties longer than the packet
    ],
)
def test_what_is_no_publish_ends_the_connection(version: MQTTProtocolVersion, data: bytes) -> None:
    read: list[Received] = []
    with fed(version) as (client, theirs):
        client.on_burst = read.extend
        theirs.sendall(data + b"\x00" * 8)
        result = MQTTErrorCode.MQTT_ERR_PROTOCOL
        with contextlib.suppress(MQTTException, ValueError, LookupError, struct.error):
            result = client.loop_read()
        assert result != MQTTErrorCode.MQTT_ERR_SUCCESS
    assert read == []
