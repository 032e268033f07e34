"""The codec: round trips, any chunking of the stream, junk that only ever is a PacketError."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.embedded.packets import decode, encode
from broker.embedded.packets import packet_properties as props
from broker.embedded.packets.framing import Framer
from broker.embedded.packets.packets import V3, V5, Message
from broker.embedded.packets.primitives import (
    MAX_VARINT,
    PacketError,
    Reader,
    encode_text,
    encode_varint,
)

versions = st.sampled_from([V3, V5])
topics = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="+#\0"), min_size=1, max_size=20
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
forwarded = st.fixed_dictionaries(
    {},
    optional={
        props.PAYLOAD_FORMAT: st.integers(0, 1),
        props.CONTENT_TYPE: texts,
        props.RESPONSE_TOPIC: texts,
        props.CORRELATION_DATA: st.binary(max_size=10),
        props.USER_PROPERTY: st.lists(st.tuples(texts, texts), min_size=1, max_size=3).map(tuple),
    },
)


@given(st.integers(0, MAX_VARINT))
@example(127)
@example(128)
@example(16_383)
@example(16_384)
@example(2_097_151)
@example(2_097_152)
def test_variable_byte_integers_round_trip(value: int) -> None:
    encoded = encode_varint(value)
    reader = Reader(encoded)
    assert reader.varint() == value
    assert reader.remaining() == 0
    assert 1 <= len(encoded) <= 4


@pytest.mark.parametrize("data", [b"\x80\x00", b"\xff\xff\xff\xff\x01", b"\x80", b""])
def test_malformed_variable_byte_integers(data: bytes) -> None:
    with pytest.raises(PacketError):
        Reader(data).varint()


@pytest.mark.parametrize("value", [-1, MAX_VARINT + 1])
def test_numbers_that_do_not_fit_are_refused(value: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode_varint(value)


@given(
    topic=topics,
    payload=st.binary(max_size=300),
    qos=st.integers(0, 1),
    retain=st.booleans(),
    dup=st.booleans(),
    packet_id=st.integers(1, 0xFFFF),
    version=versions,
    properties=forwarded,
    left=st.none() | st.integers(1, 1_000),
)
def test_what_is_encoded_for_a_subscriber_decodes_to_the_same(  # noqa: PLR0913, PLR0917
    topic: str,
    payload: bytes,
    qos: int,
    retain: bool,
    dup: bool,
    packet_id: int,
    version: int,
    properties: props.Properties,
    left: int | None,
) -> None:
    expires = None if left is None else 50.0 + left
    message = Message(topic, payload, qos, properties=properties, expires_at=expires)
    for _ in range(2):  # the second time from the cache
        frame = encode.publish_frame(
            message,
            version,
            qos,
            retain=retain,
            dup=dup and qos == 1,
            packet_id=packet_id if qos else 0,
            now=50.0,
        )
        [(first, body)] = Framer(1 << 20).feed(frame)
        packet = decode.decode_publish(first & 15, body, version)
        assert (packet.topic, packet.payload, packet.qos) == (topic, payload, qos)
        assert packet.retain is retain
        assert packet.packet_id == (packet_id if qos else 0)
        if version == V5:
            assert packet.properties == properties
            assert packet.expiry == left


@given(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=200)), max_size=6), st.data())
def test_any_chunking_gives_the_same_packets(
    packets: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(bytes([first]) + encode_varint(len(body)) + body for first, body in packets)
    framer, found, position = Framer(1_000), [], 0
    while position < len(stream):
        size = data.draw(st.integers(1, 50))
        found += list(framer.feed(stream[position : position + size]))
        position += size
    assert found == packets


def test_a_large_packet_is_refused_before_it_is_buffered() -> None:
    framer = Framer(100)
    assert list(framer.feed(b"\x30\x62" + bytes(98))) == [(0x30, bytes(98))]
    with pytest.raises(PacketError, match="larger than the limit") as caught:
        list(framer.feed(b"\x30\x63"))
    assert caught.value.reason == 0x95


def test_packets_before_a_malformed_length_are_still_delivered() -> None:
    packets = Framer(100).feed(b"\xc0\x00\x30\xff\xff\xff\xff\x01")
    assert next(packets) == (0xC0, b"")
    with pytest.raises(PacketError):
        next(packets)


@given(body=st.binary(max_size=60), flags=st.integers(0, 15), version=versions)
@example(body=b"\x00\x04MQTT\x05\x02\x00\x00\x05\x11", flags=0, version=V5)
@example(body=b"\x00\x01a\x00\x01\x02\x26\x00", flags=2, version=V5)
def test_junk_is_a_packet_error_and_nothing_else(body: bytes, flags: int, version: int) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: decode.decode_connect(body),
        lambda: decode.decode_connect(b"\x00\x04MQTT" + bytes([version]) + body),
        lambda: decode.decode_publish(flags, body, version),
        lambda: decode.decode_subscribe(body, version),
        lambda: decode.decode_unsubscribe(body, version),
        lambda: decode.decode_acknowledgement(body, version),
        lambda: decode.decode_disconnect(body, version),
        lambda: list(Framer(50).feed(body)),
    ]
    for attempt in attempts:
        with contextlib.suppress(PacketError):
            attempt()


@given(st.binary(max_size=40))
def test_mutated_properties_never_escape(junk: bytes) -> None:
    body = encode_text("a") + encode_varint(len(junk)) + junk
    with contextlib.suppress(PacketError):
        decode.decode_publish(0, body, V5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x01\x00\x01\x00", "occurs twice"),
        (b"\x11\x00\x00\x00\x01", "does not belong"),
        (b"\x01\x02", "must not be 2"),
        (b"\x23\x00\x01", "topic aliases"),
        (b"\x03\x00\x02\xc3\x28", "not UTF-8"),
    ],
)
def test_properties_against_the_rules(content: bytes, message: str) -> None:
    body = encode_text("a") + encode_varint(len(content)) + content
    with pytest.raises(PacketError, match=message):
        decode.decode_publish(0, body, V5)


def test_connect_fields() -> None:
    body = (
        b"\x00\x04MQTT\x05\xee\x00\x0a"  # user, password, will retained at QoS 1, clean
        b"\x05\x11\x00\x00\x00\x07"
        b"\x00\x02id"
        b"\x05\x18\x00\x00\x00\x09\x00\x01w\x00\x03bye"
        b"\x00\x01u\x00\x01p"
    )
    packet = decode.decode_connect(body)
    assert (packet.client_id, packet.keepalive, packet.clean) == ("id", 10, True)
    assert (packet.user, packet.password, packet.session_expiry) == ("u", b"p", 7)
    assert packet.will is not None
    assert (packet.will.topic, packet.will.payload, packet.will.delay) == ("w", b"bye", 9)
    assert (packet.will.qos, packet.will.retain) == (1, True)


def test_a_kept_session_of_3_1_1_never_expires_by_itself() -> None:
    packet = decode.decode_connect(b"\x00\x04MQTT\x04\x00\x00\x00\x00\x01i")
    assert packet.session_expiry is None
    clean = decode.decode_connect(b"\x00\x04MQTT\x04\x02\x00\x00\x00\x01i")
    assert clean.session_expiry == 0


def test_a_topic_of_too_many_levels_is_refused() -> None:
    with pytest.raises(PacketError, match="not a topic"):
        decode.decode_publish(0, encode_text("/" * 200), V3)
