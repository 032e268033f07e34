"""Options of endpoints and sources of the MQTT connector."""

import re
from typing import Literal

import msgspec

from gateway.connectors.options import Seconds
from host.files.settings_file import require
from host.mqtt.broker_address import parse_address
from host.mqtt.topic_filters import check_topic
from streamsql.mapping.topic_pattern import TopicPattern

_GROUP = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class MqttEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A broker.

    Attributes:
        address: `mqtt://host:port`, or `mqtts://` for TLS.
        ca: File of the authority that signed the broker's certificate; empty: the system's.
        cert: File of our certificate.
        key: File of its private key.
        version: Of MQTT. With "5" each message names the subscriptions it is for; a broker that
            does not know it is asked in 3.1.1.
        client_id: Empty: made of gateway and endpoint. The broker keeps what it could not deliver
            under this name.
        keepalive: Seconds of silence after which either side doubts the other.
        session_hours: How long the broker keeps messages for us while we are away; 0: not at all.
    """

    address: str
    username: str = ""
    password: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""
    version: Literal["5", "3.1.1"] = "5"
    client_id: str = ""
    keepalive: int = 15
    session_hours: float = 24.0

    def __post_init__(self) -> None:
        parse_address(self.address)
        require(5 <= self.keepalive <= 3_600, "keepalive must be between 5 and 3600 seconds")
        require(0 <= self.session_hours <= 720, "session_hours must be between 0 and 720")
        require(len(self.client_id) <= 100, "client_id has more than 100 characters")


class MqttSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which messages are a source's.

    Attributes:
        topic: Pattern of the topics: `tele/{device}/SENSOR`.
        qos: Asked of the broker: 0 or 1.
        share: Group of a shared subscription: gateways of one group share the messages.
        retained: Whether messages count that were retained before we subscribed.
        availability: Pattern of the topics on which devices say that they are there; its names are
            names of `topic`. When one goes, its rows go.
        request: Topic on which to ask for the messages, for devices that speak only when asked.
        request_payload: What to publish there.
        request_every: How often.
        offline: Payload there of a device that goes, as text or in the field `state` of JSON;
            upper and lower case are the same.
        rebirth: Whether nodes of Sparkplug are asked for their births where messages are missing.
    """

    topic: str
    qos: int = 1
    share: str = ""
    retained: Literal["use", "ignore"] = "use"
    availability: str = ""
    offline: str = "offline"
    request: str = ""
    request_payload: str = ""
    request_every: Seconds = Seconds(300)
    rebirth: Literal["request", "never"] = "request"

    def __post_init__(self) -> None:
        names = TopicPattern(self.topic).names
        require(self.qos in (0, 1), "qos must be 0 or 1")
        require(
            not self.share or _GROUP.fullmatch(self.share) is not None,
            "share is a name of letters, digits, '_', '.' and '-'",
        )
        if self.request:
            check_topic(self.request)
        require(
            len(self.request_payload) <= 10_000, "request_payload has more than 10,000 characters"
        )
        require(self.request_every >= 1, "request_every must be at least 1 s")
        require(0 < len(self.offline) <= 200, "offline has 1 to 200 characters")
        if self.availability:
            extra = set(TopicPattern(self.availability).names) - set(names)
            require(not extra, f"availability names {sorted(extra)}, which topic does not")
