"""MQTT 5 properties: which exist, of what type, in which packet, and their encoding.

Properties travel as a length and a list of (identifier, value). All but *user property* may occur
once in a packet. Decoded they are a dict from identifier to value; user properties are a tuple of
pairs.
"""

from __future__ import annotations

from typing import Final

from broker.embedded.packets.primitives import (
    PROTOCOL_ERROR,
    PacketError,
    Reader,
    encode_binary,
    encode_text,
    encode_varint,
)

PAYLOAD_FORMAT: Final = 0x01
MESSAGE_EXPIRY: Final = 0x02
CONTENT_TYPE: Final = 0x03
RESPONSE_TOPIC: Final = 0x08
CORRELATION_DATA: Final = 0x09
SUBSCRIPTION_ID: Final = 0x0B
SESSION_EXPIRY: Final = 0x11
ASSIGNED_CLIENT_ID: Final = 0x12
AUTHENTICATION_METHOD: Final = 0x15
AUTHENTICATION_DATA: Final = 0x16
REQUEST_PROBLEM: Final = 0x17
WILL_DELAY: Final = 0x18
REQUEST_RESPONSE: Final = 0x19
REASON_STRING: Final = 0x1F
RECEIVE_MAXIMUM: Final = 0x21
TOPIC_ALIAS_MAXIMUM: Final = 0x22
TOPIC_ALIAS: Final = 0x23
USER_PROPERTY: Final = 0x26
MAXIMUM_PACKET_SIZE: Final = 0x27
SUBSCRIPTION_IDS_AVAILABLE: Final = 0x29

Pairs = tuple[tuple[str, str], ...]
Value = int | str | bytes | Pairs
Properties = dict[int, Value]

_U8 = frozenset({PAYLOAD_FORMAT, REQUEST_PROBLEM, REQUEST_RESPONSE, SUBSCRIPTION_IDS_AVAILABLE})
_U16 = frozenset({RECEIVE_MAXIMUM, TOPIC_ALIAS_MAXIMUM, TOPIC_ALIAS})
_U32 = frozenset({MESSAGE_EXPIRY, SESSION_EXPIRY, WILL_DELAY, MAXIMUM_PACKET_SIZE})
_VARINT = frozenset({SUBSCRIPTION_ID})
_TEXT = frozenset(
    {CONTENT_TYPE, RESPONSE_TOPIC, ASSIGNED_CLIENT_ID, AUTHENTICATION_METHOD, REASON_STRING}
)
_BINARY = frozenset({CORRELATION_DATA, AUTHENTICATION_DATA})
# Properties whose value 0 is a protocol error, and those that are a flag.
_NOT_ZERO = frozenset({RECEIVE_MAXIMUM, MAXIMUM_PACKET_SIZE, SUBSCRIPTION_ID})
_FLAGS = frozenset({PAYLOAD_FORMAT, REQUEST_PROBLEM, REQUEST_RESPONSE})

# What of a publish goes on to its subscribers.
FORWARDED: Final = frozenset(
    {PAYLOAD_FORMAT, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA, USER_PROPERTY}
)
IN_PUBLISH: Final = FORWARDED | {MESSAGE_EXPIRY, TOPIC_ALIAS}
IN_WILL: Final = FORWARDED | {MESSAGE_EXPIRY, WILL_DELAY}
IN_CONNECT: Final = frozenset(
    {
        SESSION_EXPIRY,
        RECEIVE_MAXIMUM,
        MAXIMUM_PACKET_SIZE,
        TOPIC_ALIAS_MAXIMUM,
        REQUEST_RESPONSE,
        REQUEST_PROBLEM,
        USER_PROPERTY,
        AUTHENTICATION_METHOD,
        AUTHENTICATION_DATA,
    }
)
IN_SUBSCRIBE: Final = frozenset({SUBSCRIPTION_ID, USER_PROPERTY})
IN_UNSUBSCRIBE: Final = frozenset({USER_PROPERTY})
IN_ACKNOWLEDGEMENT: Final = frozenset({REASON_STRING, USER_PROPERTY})
IN_DISCONNECT: Final = frozenset({SESSION_EXPIRY, REASON_STRING, USER_PROPERTY})


def decode_properties(reader: Reader, allowed: frozenset[int]) -> Properties:
    """Read a property list.

    Raises:
        PacketError: Unknown, misplaced or repeated property, or a value out of range.
    """
    length = reader.varint()
    if length == 0:
        return {}
    part = reader.part(length)
    found: Properties = {}
    pairs: list[tuple[str, str]] = []
    while part.remaining():
        identifier = part.varint()
        if identifier not in allowed:
            raise PacketError(f"property 0x{identifier:02x} does not belong here", PROTOCOL_ERROR)
        if identifier == USER_PROPERTY:
            pairs.append((part.text(), part.text()))
            continue
        if identifier in found:
            raise PacketError(f"property 0x{identifier:02x} occurs twice", PROTOCOL_ERROR)
        found[identifier] = _value(part, identifier)
    if pairs:
        found[USER_PROPERTY] = tuple(pairs)
    return found


def _value(reader: Reader, identifier: int) -> Value:
    if identifier in _TEXT:
        return reader.text()
    if identifier in _BINARY:
        return reader.binary()
    value = _number(reader, identifier)
    if (identifier in _NOT_ZERO and value == 0) or (identifier in _FLAGS and value > 1):
        raise PacketError(f"property 0x{identifier:02x} must not be {value}", PROTOCOL_ERROR)
    return value


def _number(reader: Reader, identifier: int) -> int:
    if identifier in _U8:
        return reader.u8()
    if identifier in _U16:
        return reader.u16()
    if identifier in _U32:
        return reader.u32()
    return reader.varint()


def number(properties: Properties, identifier: int, default: int) -> int:
    """Return the value of a numeric property, or the default."""
    value = properties.get(identifier, default)
    assert isinstance(value, int)  # noqa: S101 - `_value` decodes by identifier
    return value


def encode_properties(properties: Properties) -> bytes:
    """Encode a property list without its length."""
    return b"".join(_encode(identifier, value) for identifier, value in properties.items())


def _encode(identifier: int, value: Value) -> bytes:
    head = encode_varint(identifier)
    match value:
        case str():
            return head + encode_text(value)
        case bytes():
            return head + encode_binary(value)
        case tuple():
            return b"".join(head + encode_text(name) + encode_text(text) for name, text in value)
        case int():
            if identifier in _VARINT:
                return head + encode_varint(value)
            size = 1 if identifier in _U8 else 2 if identifier in _U16 else 4
            return head + value.to_bytes(size, "big")
