"""The packets clients send, decoded, and the message that is routed.

Only what a broker that delivers at QoS 0 and 1 needs: it never receives CONNACK, SUBACK, UNSUBACK
or PINGRESP, and PUBREC/PUBCOMP would answer a QoS 2 delivery, which it never makes.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from broker.embedded.packets.packet_properties import Properties

CONNECT: Final = 1
PUBLISH: Final = 3
PUBACK: Final = 4
PUBREL: Final = 6
SUBSCRIBE: Final = 8
UNSUBSCRIBE: Final = 10
PINGREQ: Final = 12
DISCONNECT: Final = 14

V3: Final = 4  # protocol level of MQTT 3.1.1
V5: Final = 5


@dataclass(frozen=True, slots=True)
class WillMessage:
    """The will of a CONNECT; `delay` in seconds (MQTT 5)."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties
    delay: int = 0
    expiry: int | None = None


@dataclass(frozen=True, slots=True)
class Connect:
    """CONNECT. `session_expiry` is in seconds, None for never."""

    version: int
    client_id: str
    clean: bool
    keepalive: int
    will: WillMessage | None
    user: str | None
    password: bytes | None
    session_expiry: int | None
    receive_maximum: int
    max_packet_size: int | None


@dataclass(frozen=True, slots=True)
class Publish:
    """PUBLISH; `packet_id` is 0 at QoS 0, `expiry` in seconds."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    packet_id: int
    properties: Properties
    expiry: int | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one subscription.

    Attributes:
        qos: Most the subscriber gets, 0 or 1 (a wish for 2 is granted 1).
        no_local: Not the subscriber's own publishes (MQTT 5).
        retain_as_published: Keep the retain flag of live messages (MQTT 5).
        retain_handling: Send retained messages 0 always, 1 if the subscription is new, 2 never.
    """

    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUBSCRIBE: filters as text, not yet checked, with their options."""

    packet_id: int
    wishes: tuple[tuple[str, Options], ...]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """UNSUBSCRIBE."""

    packet_id: int
    filters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """DISCONNECT; `session_expiry` None means unchanged."""

    reason: int
    session_expiry: int | None


@dataclass(slots=True, eq=False)
class Message:
    """A message on its way through the broker.

    Attributes:
        qos: QoS it was published with, capped at 1.
        retain: Whether it was published as retained.
        properties: Those that go on to MQTT 5 subscribers.
        expires_at: Monotonic time after which it is not delivered any more, or None.
        origin: Client id of the publisher, for *no local*.
        frames: Encoded forms, filled by `encode.publish_frame`; many subscribers share them.
    """

    topic: str
    payload: bytes
    qos: int
    _: KW_ONLY
    retain: bool = False
    properties: Properties | None = None
    expires_at: float | None = None
    origin: str = ""
    frames: dict[int, bytes] = field(default_factory=dict)
