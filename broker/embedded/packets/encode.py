"""Encode the packets the broker sends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from broker.embedded.packets import packet_properties as props
from broker.embedded.packets.packets import V5, Message
from broker.embedded.packets.primitives import encode_text, encode_varint

PINGRESP: Final = b"\xd0\x00"

# Keys of `Message.frames`.
_TOPIC, _TAIL_V5, _LIVE_V3, _LIVE_V5 = range(4)


def connack(
    version: int, code: int, *, session_present: bool, properties: props.Properties | None = None
) -> bytes:
    """Encode CONNACK; `code` is a return code (3.1.1) or reason code (5)."""
    body = bytes((session_present, code))
    if version == V5:
        body += _with_length(props.encode_properties(properties or {}))
    return b"\x20" + _with_length(body)


def puback(packet_id: int, version: int, reason: int = 0) -> bytes:
    """Encode PUBACK; the reason is sent to MQTT 5 clients only, and only when it is not 0."""
    return _acknowledgement(0x40, packet_id, version, reason)


def pubrec(packet_id: int, version: int, reason: int = 0) -> bytes:
    """Encode PUBREC."""
    return _acknowledgement(0x50, packet_id, version, reason)


def pubcomp(packet_id: int, version: int, reason: int = 0) -> bytes:
    """Encode PUBCOMP."""
    return _acknowledgement(0x70, packet_id, version, reason)


def _acknowledgement(first: int, packet_id: int, version: int, reason: int) -> bytes:
    if reason and version == V5:
        return bytes((first, 3, packet_id >> 8, packet_id & 0xFF, reason))
    return bytes((first, 2, packet_id >> 8, packet_id & 0xFF))


def suback(packet_id: int, version: int, codes: Sequence[int]) -> bytes:
    """Encode SUBACK."""
    return _answer(0x90, packet_id, version, bytes(codes))


def unsuback(packet_id: int, version: int, codes: Sequence[int]) -> bytes:
    """Encode UNSUBACK; MQTT 3.1.1 has no codes in it."""
    return _answer(0xB0, packet_id, version, bytes(codes) if version == V5 else b"")


def _answer(first: int, packet_id: int, version: int, codes: bytes) -> bytes:
    middle = b"\0" if version == V5 else b""
    return bytes((first,)) + _with_length(packet_id.to_bytes(2, "big") + middle + codes)


def disconnect(reason: int) -> bytes:
    """Encode the DISCONNECT of a server, which only MQTT 5 has."""
    return bytes((0xE0, 1, reason))


def publish_frame(  # noqa: PLR0913 - the fields of the packet
    message: Message,
    version: int,
    qos: int,
    *,
    retain: bool,
    dup: bool = False,
    packet_id: int = 0,
    now: float = 0.0,
) -> bytes:
    """Encode PUBLISH for one subscriber; parts shared by many subscribers are encoded once.

    At a monotonic time `now`, from which the rest of an expiry is computed.
    """
    if qos == 0 and not retain and message.expires_at is None:
        key = _LIVE_V5 if version == V5 else _LIVE_V3
        frame = message.frames.get(key)
        if frame is None:
            body = _topic(message) + _tail(message, version, now)
            frame = message.frames[key] = b"\x30" + encode_varint(len(body)) + body
        return frame
    topic, tail = _topic(message), _tail(message, version, now)
    first = 0x30 | dup << 3 | qos << 1 | retain
    if qos == 0:
        return b"".join((bytes((first,)), encode_varint(len(topic) + len(tail)), topic, tail))
    size = encode_varint(len(topic) + 2 + len(tail))
    return b"".join((bytes((first,)), size, topic, packet_id.to_bytes(2, "big"), tail))


def _topic(message: Message) -> bytes:
    frame = message.frames.get(_TOPIC)
    if frame is None:
        frame = message.frames[_TOPIC] = encode_text(message.topic)
    return frame


def _tail(message: Message, version: int, now: float) -> bytes:
    """Return what follows the packet id: properties (MQTT 5) and payload."""
    if version != V5:
        return message.payload
    if message.expires_at is not None:
        left = max(1, math.ceil(message.expires_at - now))
        found = {**(message.properties or {}), props.MESSAGE_EXPIRY: left}
        return _with_length(props.encode_properties(found)) + message.payload
    tail = message.frames.get(_TAIL_V5)
    if tail is None:
        encoded = props.encode_properties(message.properties or {})
        tail = message.frames[_TAIL_V5] = _with_length(encoded) + message.payload
    return tail


def _with_length(body: bytes) -> bytes:
    return encode_varint(len(body)) + body
