"""Decode the bodies of the packets clients send; anything against the rules is a PacketError."""

from __future__ import annotations

from typing import Final

from broker.embedded.packets import packet_properties as props
from broker.embedded.packets.packets import (
    V3,
    V5,
    Connect,
    Disconnect,
    Options,
    Publish,
    Subscribe,
    Unsubscribe,
    WillMessage,
)
from broker.embedded.packets.primitives import (
    PROTOCOL_ERROR,
    PacketError,
    Reader,
    decode_text,
)
from host.mqtt.topic_filters import MAX_LEVELS

UNSUPPORTED_VERSION: Final = 0x84
TOPIC_INVALID: Final = 0x90
TOPIC_ALIAS_INVALID: Final = 0x94
SUBSCRIPTION_IDS_NOT_SUPPORTED: Final = 0xA1
BAD_AUTHENTICATION_METHOD: Final = 0x8C
_FOREVER: Final = 0xFFFFFFFF


def decode_connect(body: bytes) -> Connect:
    """Decode CONNECT.

    Raises:
        PacketError: With UNSUPPORTED_VERSION for another protocol or level than 3.1.1 and 5.
    """
    reader = Reader(body)
    name, version = reader.binary(), reader.u8()
    if name != b"MQTT" or version not in (V3, V5):
        message = f"protocol {name[:16]!r} level {version} is not MQTT 3.1.1 or 5"
        raise PacketError(message, UNSUPPORTED_VERSION)
    flags, keepalive = reader.u8(), reader.u16()
    _check_connect_flags(flags, version)
    found = props.decode_properties(reader, props.IN_CONNECT) if version == V5 else {}
    if props.AUTHENTICATION_METHOD in found:
        raise PacketError("enhanced authentication is not supported", BAD_AUTHENTICATION_METHOD)
    client_id = reader.text()
    will = _decode_will(reader, flags, version) if flags & 0x04 else None
    user = reader.text() if flags & 0x80 else None
    password = reader.binary() if flags & 0x40 else None
    if reader.remaining():
        raise PacketError(f"CONNECT has {reader.remaining()} bytes too many")
    clean = bool(flags & 0x02)
    if version == V5:
        expiry = props.number(found, props.SESSION_EXPIRY, 0)
    else:
        expiry = 0 if clean else _FOREVER
    size = props.number(found, props.MAXIMUM_PACKET_SIZE, 0)
    return Connect(
        version=version,
        client_id=client_id,
        clean=clean,
        keepalive=keepalive,
        will=will,
        user=user,
        password=password,
        session_expiry=None if expiry == _FOREVER else expiry,
        receive_maximum=props.number(found, props.RECEIVE_MAXIMUM, 0xFFFF),
        max_packet_size=size or None,
    )


def _check_connect_flags(flags: int, version: int) -> None:
    will, will_qos, will_retain = flags & 0x04, flags >> 3 & 3, flags & 0x20
    if flags & 0x01 or will_qos == 3 or (not will and (will_qos or will_retain)):
        raise PacketError(f"CONNECT flags 0x{flags:02x} contradict each other")
    if version == V3 and flags & 0x40 and not flags & 0x80:
        raise PacketError("CONNECT has a password but no user name")


def _decode_will(reader: Reader, flags: int, version: int) -> WillMessage:
    found = props.decode_properties(reader, props.IN_WILL) if version == V5 else {}
    topic, payload = reader.text(), reader.binary()
    _check_topic_name(topic)
    expiry = found.get(props.MESSAGE_EXPIRY)
    return WillMessage(
        topic=topic,
        payload=payload,
        qos=min(flags >> 3 & 3, 1),
        retain=bool(flags & 0x20),
        properties={key: found[key] for key in found if key in props.FORWARDED},
        delay=props.number(found, props.WILL_DELAY, 0),
        expiry=expiry if isinstance(expiry, int) else None,
    )


def decode_publish(flags: int, body: bytes, version: int) -> Publish:
    """Decode PUBLISH. This is the hot path: the common case reads the bytes directly."""
    qos = flags >> 1 & 3
    if qos == 3 or (flags & 0x08 and not qos):
        raise PacketError(f"PUBLISH flags 0x{flags:x} contradict each other")
    size = len(body)
    if size < 2 or (end := 2 + (body[0] << 8 | body[1])) > size:
        raise PacketError("PUBLISH ends inside its topic")
    topic = decode_text(body[2:end])
    packet_id = 0
    if qos:
        packet_id = Reader(body, end).packet_id()
        end += 2
    if version == V3:
        _check_topic_name(topic)
        return Publish(topic, body[end:], qos, bool(flags & 1), packet_id, {})
    return _finish_v5_publish(Reader(body, end), topic, qos, flags, packet_id)


def _finish_v5_publish(reader: Reader, topic: str, qos: int, flags: int, packet_id: int) -> Publish:
    found = props.decode_properties(reader, props.IN_PUBLISH)
    if props.TOPIC_ALIAS in found:
        # Our CONNACK announces none, so a client has no right to use one.
        raise PacketError("topic aliases are not supported", TOPIC_ALIAS_INVALID)
    _check_topic_name(topic)
    expiry = found.pop(props.MESSAGE_EXPIRY, None)
    return Publish(
        topic,
        reader.rest(),
        qos,
        bool(flags & 1),
        packet_id,
        found,
        expiry if isinstance(expiry, int) else None,
    )


def _check_topic_name(topic: str) -> None:
    if not topic or "+" in topic or "#" in topic or topic.count("/") >= MAX_LEVELS:
        raise PacketError(f"{topic[:80]!r} is not a topic one can publish on", TOPIC_INVALID)


def decode_subscribe(body: bytes, version: int) -> Subscribe:
    """Decode SUBSCRIBE; the filters are checked one by one later, each gets its own answer."""
    reader = Reader(body)
    packet_id = reader.packet_id()
    if version == V5 and props.SUBSCRIPTION_ID in props.decode_properties(
        reader, props.IN_SUBSCRIBE
    ):
        message = "subscription identifiers are not supported"
        raise PacketError(message, SUBSCRIPTION_IDS_NOT_SUPPORTED)
    wishes: list[tuple[str, Options]] = []
    while reader.remaining():
        wishes.append((reader.text(), _decode_options(reader.u8(), version)))
    if not wishes:
        raise PacketError("SUBSCRIBE without a filter", PROTOCOL_ERROR)
    return Subscribe(packet_id, tuple(wishes))


def _decode_options(byte: int, version: int) -> Options:
    qos, handling = byte & 3, byte >> 4 & 3
    reserved = byte & 0xC0 if version == V5 else byte & 0xFC
    if reserved or qos == 3 or handling == 3:
        raise PacketError(f"subscription options 0x{byte:02x} are reserved")
    return Options(min(qos, 1), bool(byte & 0x04), bool(byte & 0x08), handling)


def decode_unsubscribe(body: bytes, version: int) -> Unsubscribe:
    """Decode UNSUBSCRIBE."""
    reader = Reader(body)
    packet_id = reader.packet_id()
    if version == V5:
        props.decode_properties(reader, props.IN_UNSUBSCRIBE)
    filters: list[str] = []
    while reader.remaining():
        filters.append(reader.text())
    if not filters:
        raise PacketError("UNSUBSCRIBE without a filter", PROTOCOL_ERROR)
    return Unsubscribe(packet_id, tuple(filters))


def decode_acknowledgement(body: bytes, version: int) -> int:
    """Decode PUBACK or PUBREL; return the packet id."""
    reader = Reader(body)
    packet_id = reader.packet_id()
    if version == V5 and reader.remaining():
        reader.u8()
        if reader.remaining():
            props.decode_properties(reader, props.IN_ACKNOWLEDGEMENT)
    _check_end(reader)
    return packet_id


def decode_disconnect(body: bytes, version: int) -> Disconnect:
    """Decode DISCONNECT."""
    reader = Reader(body)
    reason, found = 0, props.Properties()
    if version == V5 and reader.remaining():
        reason = reader.u8()
        if reader.remaining():
            found = props.decode_properties(reader, props.IN_DISCONNECT)
    _check_end(reader)
    expiry = found.get(props.SESSION_EXPIRY)
    return Disconnect(reason, expiry if isinstance(expiry, int) else None)


def _check_end(reader: Reader) -> None:
    if reader.remaining():
        raise PacketError(f"a packet has {reader.remaining()} bytes too many")
