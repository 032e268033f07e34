"""Packets are cut out of any pieces, and publishes read as the other side wrote them."""

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.mqtt.packet_stream import (
    PacketStream,
    Received,
    puback_packets,
    publish_packet,
    read_publish,
)

TOPICS = st.text(st.characters(exclude_characters="+#\0"), min_size=1, max_size=20)
PAYLOADS = st.binary(max_size=300) | st.sampled_from([b"x" * 127, b"x" * 20_000])
MESSAGES = st.builds(
    lambda topic, payload, qos, retain, packet_id: Received(
        topic, payload, qos, retain, packet_id if qos else 0
    ),
    TOPICS,
    PAYLOADS,
    st.integers(0, 1),
    st.booleans(),
    st.integers(1, 65_535),
)
PING = b"\xd0\x00"


def length_of(size: int) -> bytes:
    """Write a length as MQTT does."""
    digits = bytearray()
    while True:
        size, digit = divmod(size, 128)
        digits.append(digit | (0x80 if size else 0))
        if not size:
            return bytes(digits)


def written(message: Received, properties: bytes | None = None) -> bytes:
    """Write a PUBLISH by hand."""
    topic = message.topic.encode()
    rest = struct.pack(">H", len(topic)) + topic
    rest += struct.pack(">H", message.packet_id) if message.qos else b""
    rest += b"" if properties is None else length_of(len(properties)) + properties
    rest += message.payload
    return bytes([0x30 | message.qos << 1 | message.retain]) + length_of(len(rest)) + rest


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut bytes at places."""
    ends = [*sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@given(st.lists(MESSAGES, max_size=6), st.lists(st.integers(0, 100_000), max_size=10))
def test_packets_come_out_of_any_pieces(messages: list[Received], places: list[int]) -> None:
    data = b"".join(written(message) + PING for message in messages)
    stream = PacketStream()
    found = [p for piece in cut(data, places) if piece for p in stream.packets(piece)]
    assert b"".join(packet for packet, _body in found) == data
    read = [read_publish(p, body, is_5=False) for p, body in found if p[0] & 0xF0 == 0x30]
    assert read == messages
    assert [packet for packet, _body in found if packet == PING] == [PING] * len(messages)


@given(MESSAGES)
def test_what_is_sent_is_what_is_read(message: Received) -> None:
    packet = publish_packet(
        message.topic, message.payload, message.qos, message.packet_id, retain=message.retain
    )
    assert packet == written(message)


PROPERTIES = st.lists(
    st.one_of(
        st.integers(1, 268_435_455).map(lambda number: (b"\x0b" + length_of(number), number)),
        st.sampled_from(
            [
                (b"\x01\x01", None),
                (b"\x02\x00\x00\x0e\x10", None),
                (b"\x23\x00\x07", None),
                (b"\x03\x00\x04json", None),
                (b"\x08\x00\x01r", None),
                (b"\x09\x00\x02\xff\x00", None),
                (b"\x26\x00\x01a\x00\x02bc", None),
            ]
        ),
    ),
    max_size=4,
)


@given(MESSAGES, PROPERTIES)
def test_subscriptions_are_found_among_the_properties(
    message: Received, given_properties: list[tuple[bytes, int | None]]
) -> None:
    packet = written(message, b"".join(part for part, _number in given_properties))
    ((whole, body),) = PacketStream().packets(packet)
    numbers = tuple(number for _part, number in given_properties if number is not None)
    expected = msgspec.structs.replace(message, subscriptions=numbers)
    assert read_publish(whole, body, is_5=True) == expected


@pytest.mark.parametrize(
    "packet",
    [
        b"\x34\x05\x00\x01a\x00\x01",  # QoS 2
        b"\x36\x05\x00\x01a\x00\x01",  # QoS 3
        b"\x30\x01\x00",
        b"\x30\x04\x00\x09ab",
        b"\x32\x04\x00\x01ab",
    ],
)
def test_what_is_no_plain_publish_is_left_alone(packet: bytes) -> None:
    assert read_publish(packet, 2, is_5=False) is None


@pytest.mark.parametrize(
    "properties",
    [
        b"\x05\x0b",  # longer than the packet
        b"\x02\x7f\x00",  # unknown
        b"\x02\x03\x00",  # a text that is cut
        b"\x01\x01\x00",
        b"\xff\xff\xff\xff\x01",
        b"\x05\x0b\xff\xff\xff\xff",
        b"\x01\x0b",
        b"",
    ],
)
def test_wrong_properties_are_left_alone(properties: bytes) -> None:
    rest = b"\x00\x01a" + properties
    assert read_publish(b"\x30" + length_of(len(rest)) + rest, 2, is_5=True) is None


@given(st.binary(max_size=60), st.booleans())
def test_no_bytes_raise_but_topics_that_are_no_text(data: bytes, is_5: bool) -> None:
    for packet, body in PacketStream().packets(data):
        if packet[0] & 0xF0 == 0x30 and body:
            try:
                read_publish(packet, body, is_5=is_5)
            except UnicodeDecodeError:
                continue


def test_a_length_that_never_ends_is_handed_on_to_be_refused() -> None:
    stream = PacketStream()
    assert stream.packets(b"\x30\xff\xff\xff") == []
    assert stream.packets(b"\xff\x01") == [(b"\x30\xff\xff\xff\xff\x01", 0)]


def test_acknowledgements() -> None:
    assert puback_packets([1, 65_535]) == b"\x40\x02\x00\x01\x40\x02\xff\xff"
    assert puback_packets([]) == b""
