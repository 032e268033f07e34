"""The network half of the MQTT client: paho, its thread, and the gate between thread and loop.

paho is never trusted with a queue. Between a TCP connect and the broker's CONNACK it would send
new publishes ahead of older unacknowledged ones, so publishes pass a gate that is shut from before
a connect until the event loop has seen *that* connection; and at each CONNACK paho's own memory of
unacknowledged publishes is emptied, because the loop's `Outbox` hands them over again, in order.
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from paho.mqtt.client import MQTT_ERR_SUCCESS, Client
from paho.mqtt.enums import CallbackAPIVersion

from messaging.client import Message
from messaging.inbox import Acknowledged, Connected, Disconnected, Inbox, Refused, Subscribed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paho.mqtt.client import ConnectFlags, DisconnectFlags, MQTTMessage, SocketLike
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode

    from messaging.address import BrokerAddress
    from messaging.client import Will

_LOG = logging.getLogger(__name__)

WINDOW: Final = 256
_BACKOFF_MIN: Final = 0.2
_BACKOFF_MAX: Final = 5.0
_STABLE_AFTER: Final = 5.0
_CONNECT_TIMEOUT: Final = 5.0
# Refusals worth trying again, unlike a bad password.
_TEMPORARY: Final = frozenset({"Server unavailable", "Server busy"})


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """How to connect.

    Attributes:
        address: Broker.
        client_id: MQTT client id.
        will: What the broker publishes when we vanish.
        clean: Whether the broker forgets us when the link ends.
        keepalive: Seconds; the broker declares us dead after 1.5 of it.
        tls: TLS context, needed when `address.tls`.
    """

    address: BrokerAddress
    client_id: str
    will: Will | None = None
    clean: bool = True
    keepalive: int = 10
    tls: ssl.SSLContext | None = None


class PahoLink:
    """One paho client and what its thread reports; the public methods are for the event loop."""

    def __init__(self, settings: LinkSettings) -> None:
        self._address = settings.address
        self._keepalive = settings.keepalive
        self._inbox: Inbox  # set by `start`, before the thread that uses it exists
        self._gate = threading.Lock()
        self._live = 0  # number of the connection that is up, 0 when none; under the gate
        # These are touched by the network thread only.
        self._connections = 0
        self._up_since = math.inf  # when the broker accepted us
        self._delay = _BACKOFF_MIN
        self._paho = self._build(settings)

    def _build(self, settings: LinkSettings) -> Client:
        paho = Client(
            CallbackAPIVersion.VERSION2,
            client_id=settings.client_id,
            clean_session=settings.clean,
        )
        paho.connect_timeout = _CONNECT_TIMEOUT
        paho.max_inflight_messages = WINDOW
        self._set_backoff(paho)
        if settings.address.user is not None:
            paho.username_pw_set(settings.address.user, settings.address.password)
        if settings.will is not None:
            will = settings.will
            paho.will_set(will.topic, will.payload, will.qos, will.retain)
        if settings.tls is not None:
            paho.tls_set_context(settings.tls)
        paho.on_pre_connect = self._pre_connect
        paho.on_socket_open = self._socket_open
        paho.on_connect = self._connect
        paho.on_connect_fail = self._connect_fail
        paho.on_disconnect = self._disconnect
        paho.on_message = self._message
        paho.on_publish = self._publish
        paho.on_subscribe = self._subscribe
        paho.on_unsubscribe = self._unsubscribe
        return paho

    def _set_backoff(self, paho: Client) -> None:
        # paho annotates whole seconds but computes with floats; 1 s would be too slow here.
        paho.reconnect_delay_set(self._delay, _BACKOFF_MAX)  # type: ignore[arg-type]

    # --- for the event loop --------------------------------------------------------------------

    def start(self, inbox: Inbox) -> None:
        """Start the network thread; it connects and reconnects until `stop`."""
        self._inbox = inbox
        self._paho.connect_async(self._address.host, self._address.port, self._keepalive)
        self._paho.loop_start()

    def publish(
        self, generation: int, topic: str, payload: bytes, qos: int, *, retain: bool
    ) -> int | None:
        """Send on the given connection; None when that connection is gone.

        Returns:
            The packet id that the acknowledgement will carry.
        """
        with self._gate:
            if self._live != generation:
                return None
            receipt = self._paho.publish(topic, payload, qos, retain)
            return receipt.mid if receipt.rc == MQTT_ERR_SUCCESS else None

    def subscribe(self, filters: Sequence[tuple[str, int]]) -> int | None:
        """Send SUBSCRIBE; return its packet id, or None when the link is down."""
        status, packet_id = self._paho.subscribe(list(filters))
        return packet_id if status == MQTT_ERR_SUCCESS else None

    def unsubscribe(self, filters: Sequence[str]) -> int | None:
        """Send UNSUBSCRIBE; return its packet id, or None when the link is down."""
        status, packet_id = self._paho.unsubscribe(list(filters))
        return packet_id if status == MQTT_ERR_SUCCESS else None

    def say_goodbye(self) -> None:
        """Queue a clean DISCONNECT, after everything already sent, and reconnect no more."""
        self._paho.disconnect()

    def stop(self) -> None:
        """End the network thread; blocks (at most about the connect timeout)."""
        sock = self._paho.socket()
        if isinstance(sock, socket.socket):
            # Wakes the thread. Already closed by either side: the aim is reached.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._paho.drop_out_messages()  # paho's thread would wait for their acknowledgement
        self._paho.loop_stop()
        if self._paho.socket() is not None:
            # It had just reconnected: without a DISCONNECT the broker would publish the will.
            self._paho.disconnect()

    # --- on paho's network thread --------------------------------------------------------------

    def _pre_connect(self, _client: Client, _userdata: object) -> None:
        with self._gate:
            self._live = 0

    def _socket_open(self, _client: Client, _userdata: object, sock: SocketLike) -> None:
        if isinstance(sock, socket.socket):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _connect(
        self,
        client: Client,
        _userdata: object,
        _flags: ConnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        if reason.is_failure:
            name = str(reason)
            self._inbox.put(Refused(name, permanent=name not in _TEMPORARY))
            return
        client.drop_out_messages()
        self._connections += 1
        self._up_since = time.monotonic()
        with self._gate:
            self._live = self._connections
        self._inbox.put(Connected(self._connections))

    def _connect_fail(self, _client: Client, _userdata: object) -> None:
        self._inbox.put(Disconnected("nothing answers there"))

    def _disconnect(
        self,
        client: Client,
        _userdata: object,
        _flags: DisconnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        # A link that dies soon after it is accepted (two clients with one id chase each other
        # away) must not be retried at full speed.
        stable = time.monotonic() - self._up_since > _STABLE_AFTER
        self._up_since = math.inf
        self._delay = _BACKOFF_MIN if stable else min(self._delay * 2, _BACKOFF_MAX)
        self._set_backoff(client)
        self._inbox.put(Disconnected(str(reason)))

    def _message(self, _client: Client, _userdata: object, message: MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            _LOG.warning("the broker sent a topic that is not UTF-8; ignored")
            return
        self._inbox.put(Message(topic, bytes(message.payload), message.qos, message.retain))

    def _publish(
        self,
        _client: Client,
        _userdata: object,
        packet_id: int,
        _reason: ReasonCode,
        _properties: Properties,
    ) -> None:
        self._inbox.put(Acknowledged(packet_id))

    def _subscribe(
        self,
        _client: Client,
        _userdata: object,
        packet_id: int,
        reasons: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        refused = tuple(i for i, reason in enumerate(reasons) if reason.is_failure)
        self._inbox.put(Subscribed(packet_id, refused))

    def _unsubscribe(
        self,
        _client: Client,
        _userdata: object,
        packet_id: int,
        _reasons: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        self._inbox.put(Subscribed(packet_id))
