"""The network half of the MQTT client: paho, its thread, and the gate between thread and loop.

paho is never trusted with a queue: it knows of no publish. Between a TCP connect and the broker's
CONNACK new ones would go ahead of older unacknowledged ones, so publishes pass a gate that is shut
from before a connect until the event loop has seen *that* connection; then the loop's `Outbox`
hands over all that is unacknowledged, in order.
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import ssl
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from paho.mqtt.client import MQTT_ERR_SUCCESS, Client, MQTTv5, MQTTv311
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.subscribeoptions import SubscribeOptions
from typing_extensions import override

from host.mqtt.burst_client import BurstClient
from host.mqtt.event_inbox import Acknowledged, Connected, Disconnected, Inbox, Refused, Subscribed
from host.mqtt.message_client import Message
from host.mqtt.packet_stream import publish_packet
from host.mqtt.unreachable import (
    ENDED_AT_ONCE,
    Failure,
    ended_after_handshake,
    failure_of,
    publish_refusal,
    refusal_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from paho.mqtt.client import ConnectFlags, DisconnectFlags, SocketLike
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode

    from host.mqtt.broker_address import BrokerAddress, CertificateFile
    from host.mqtt.broker_passwords import PasswordFile
    from host.mqtt.message_client import Will
    from host.mqtt.packet_stream import Received
    from host.mqtt.publish_queue import Outgoing

_LOG = logging.getLogger(__name__)

WINDOW: Final = 256
_ID_BITS: Final = 16
_PACKET_ID: Final = 0xFFFF
_BACKOFF_MIN: Final = 0.2
_BACKOFF_MAX: Final = 5.0
_STABLE_AFTER: Final = 5.0
_CONNECT_TIMEOUT: Final = 5.0
# Refusals worth trying again, unlike a bad password.
_UNSUPPORTED: Final = frozenset({"Unsupported protocol version", "Protocol error"})
_ENDS: Final = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
_TEMPORARY: Final = frozenset({"Server unavailable", "Server busy"})


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """How to connect.

    Attributes:
        will: What the broker publishes when we vanish.
        clean: Whether the broker forgets us when the link ends.
        keepalive: Seconds; the broker declares us dead after 1.5 of it.
        tls: TLS context, needed when `address.tls`.
        prefers_5: Speak MQTT 5 with brokers that can: they say which publishes they refuse.
        certificate: Of ours, in the TLS context.
        passwords: Tried in turn when the broker refuses one.
        acknowledges_by_hand: Messages of QoS 1 are acknowledged by `PahoLink.acknowledge` only.
    """

    address: BrokerAddress
    client_id: str
    will: Will | None = None
    clean: bool = True
    keepalive: int = 10
    tls: ssl.SSLContext | None = None
    prefers_5: bool = False
    certificate: CertificateFile | None = None
    passwords: PasswordFile | None = None
    acknowledges_by_hand: bool = False


class _Errors(logging.Handler):
    """Keeps the last error that paho met on its socket: it tells its log, and nobody else."""

    last: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an error."""
        for part in record.args if isinstance(record.args, tuple) else ():
            if isinstance(part, OSError):
                self.last = part


class _EnduringClient(BurstClient):
    """A client whose network thread outlives defects: they end the connection, not the thread.

    paho's own ends with any error that it does not expect, of ours or of the system, and leaves a
    service that runs, hears nothing, and says nothing.
    """

    def __init__(self, client_id: str, *, clean: bool) -> None:
        super().__init__(client_id, clean=clean)
        self.ended = threading.Event()

    @override
    def loop_forever(
        self, timeout: float = 1.0, retry_first_connection: bool = False
    ) -> MQTTErrorCode:
        while True:
            try:
                return super().loop_forever(timeout, retry_first_connection)
            except Exception:  # noqa: BLE001 - whatever it is, a mute service is worse
                _LOG.exception("a defect ended the connection to the broker; reconnecting")
                self.hang_up()
                if self.ended.wait(_BACKOFF_MAX):
                    return MQTTErrorCode.MQTT_ERR_UNKNOWN

    def hang_up(self) -> None:
        """Close the connection, if there is one; the thread that reads it wakes up."""
        sock = self.socket()
        if isinstance(sock, socket.socket):
            # Already closed by either side: the aim is reached.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close every socket, after the thread has ended.

        paho leaves the pair that wakes its thread to a finalizer, which in a cycle may come after
        the sockets' own: they complain that nobody has closed them.
        """
        self._reset_sockets()


class PahoLink:
    """One paho client and what its thread reports; the public methods are for the event loop."""

    def __init__(self, settings: LinkSettings) -> None:
        self._address = settings.address
        self._settings = settings
        self._inbox: Inbox  # set by `start`, before the thread that uses it exists
        self._gate = threading.Lock()
        self._live = 0  # number of the connection that is up, 0 when none; under the gate
        # These are touched by the network thread only.
        self._connections = 0
        self._up_since = math.inf  # when the broker accepted us
        self._was_answered = False
        self._delay = _BACKOFF_MIN
        self._errors = _Errors()
        self._paho = self._build(settings)

    def _build(self, settings: LinkSettings) -> _EnduringClient:
        paho = _EnduringClient(settings.client_id, clean=settings.clean)
        if settings.prefers_5:
            paho.speak(MQTTv5)
        log = logging.Logger("paho", logging.ERROR)  # noqa: LOG001  (of this client alone)
        log.addHandler(self._errors)
        paho.enable_logger(log)
        paho.connect_timeout = _CONNECT_TIMEOUT
        self._set_backoff(paho)
        if settings.passwords is None and settings.address.user is not None:
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
        paho.on_burst = self._burst
        paho.on_acknowledged = self._acknowledged
        paho.on_refused = self._refused
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
        self._paho.connect_async(self._address.host, self._address.port, self._settings.keepalive)
        self._paho.loop_start()

    def publish(self, generation: int, item: Outgoing, packet_id: int) -> bool:
        """Send on the given connection; return whether it is still there."""
        with self._gate:
            if self._live != generation:
                return False
            packet = publish_packet(
                *(item.topic, item.payload, item.qos, packet_id),
                retain=item.retain,
                is_5=self._paho.is_5,
            )
            return self._paho.send(packet)

    def subscribe(self, filters: Sequence[tuple[str, int]]) -> int | None:
        """Send SUBSCRIBE; return its packet id, or None when the link is down."""
        try:
            if self._paho.is_5:
                wanted = [(name, SubscribeOptions(qos)) for name, qos in filters]
                status, packet_id = self._paho.subscribe(wanted)
            else:
                status, packet_id = self._paho.subscribe(list(filters))
        except ValueError:
            return None  # the link was lost at this moment, and the next speaks another version
        return packet_id if status == MQTT_ERR_SUCCESS else None

    def unsubscribe(self, filters: Sequence[str]) -> int | None:
        """Send UNSUBSCRIBE; return its packet id, or None when the link is down."""
        status, packet_id = self._paho.unsubscribe(list(filters))
        return packet_id if status == MQTT_ERR_SUCCESS else None

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge messages of the connection that is up; those of earlier ones come again."""
        with self._gate:
            self._paho.acknowledge(
                [
                    receipt & _PACKET_ID
                    for receipt in receipts
                    if receipt and receipt >> _ID_BITS == self._live
                ]
            )

    def say_goodbye(self) -> None:
        """Queue a clean DISCONNECT, after everything already sent, and reconnect no more."""
        self._paho.disconnect()

    def stop(self) -> None:
        """End the network thread; blocks (at most about the connect timeout)."""
        self._paho.ended.set()
        self._paho.hang_up()
        self._paho.loop_stop()
        if self._paho.socket() is not None:
            # It had just reconnected: without a DISCONNECT the broker would publish the will.
            self._paho.disconnect()
        self._paho.release()

    # --- on paho's network thread --------------------------------------------------------------

    def _pre_connect(self, _client: Client, _userdata: object) -> None:
        self._errors.last = None
        self._was_answered = False
        if self._settings.certificate is not None:
            self._settings.certificate.refresh()
        if self._settings.passwords is not None:
            user = self._settings.address.user or self._settings.client_id
            self._paho.username_pw_set(user, self._settings.passwords.next())
        with self._gate:
            self._live = 0

    def _socket_open(self, _client: Client, _userdata: object, sock: SocketLike) -> None:
        if isinstance(sock, socket.socket):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _connect(
        self,
        _client: Client,
        _userdata: object,
        flags: ConnectFlags,
        reason: ReasonCode,
        properties: Properties | None,
    ) -> None:
        self._was_answered = True
        if reason.is_failure and self._paho.is_5 and str(reason) in _UNSUPPORTED:
            self._paho.speak(MQTTv311)
            return
        if reason.is_failure:
            name, failure = str(reason), refusal_of(str(reason))
            if self._settings.passwords is not None:
                self._settings.passwords.refused()
            self._inbox.put(Refused(failure.reason, failure.hint, name not in _TEMPORARY))
            return
        if self._settings.passwords is not None:
            self._settings.passwords.accepted()
        self._connections += 1
        self._up_since = time.monotonic()
        with self._gate:
            self._live = self._connections
        window = getattr(properties, "ReceiveMaximum", WINDOW)
        self._inbox.put(Connected(self._connections, window, bool(flags.session_present)))

    def _connect_fail(self, _client: Client, _userdata: object) -> None:
        # paho calls this while it handles the error.
        error = sys.exc_info()[1]
        failure = Failure("it cannot be reached") if error is None else self._failure(error)
        self._inbox.put(Disconnected(failure.reason, failure.hint))

    def _failure(self, error: BaseException) -> Failure:
        return failure_of(error, self._address)

    def _disconnect(
        self,
        client: Client,
        _userdata: object,
        _flags: DisconnectFlags,
        reason: ReasonCode,
        *_rest: object,
    ) -> None:
        # A link that dies soon after it is accepted (two clients with one id chase each other
        # away) must not be retried at full speed.
        was_up = self._up_since != math.inf
        stable = time.monotonic() - self._up_since > _STABLE_AFTER
        self._up_since = math.inf
        self._delay = _BACKOFF_MIN if stable else min(self._delay * 2, _BACKOFF_MAX)
        self._set_backoff(client)
        failure = Failure("the broker ended the connection" if was_up else str(reason))
        ended = self._errors.last is None or isinstance(self._errors.last, _ENDS)
        if self._address.tls and ended and not was_up and reason.is_failure:
            failure = ended_after_handshake(certified=self._settings.certificate is not None)
        elif self._errors.last is not None:
            failure = self._failure(self._errors.last)
        elif not was_up and reason.is_failure:
            failure = ENDED_AT_ONCE
        if self._settings.prefers_5 and was_up:
            self._paho.speak(MQTTv5)
        elif self._settings.prefers_5 and not self._was_answered:
            self._paho.speak(MQTTv311)  # old brokers hang up on MQTT 5 instead of refusing it
        self._inbox.put(Disconnected(failure.reason, failure.hint))

    def _burst(self, burst: list[Received]) -> None:
        if self._settings.acknowledges_by_hand:
            number = self._connections << _ID_BITS
            self._inbox.put(
                *[
                    Message(
                        *(m.topic, m.payload, m.qos, m.retain),
                        receipt=number | m.packet_id if m.packet_id else 0,
                    )
                    for m in burst
                ]
            )
            return
        self._inbox.put(*[Message(m.topic, m.payload, m.qos, m.retain) for m in burst])
        self._paho.acknowledge([message.packet_id for message in burst if message.packet_id])

    def _acknowledged(self, packet_ids: list[int]) -> None:
        self._inbox.put(*map(Acknowledged, packet_ids))

    def _refused(self, refused: tuple[int, int]) -> None:
        packet_id, code = refused
        self._inbox.put(Acknowledged(packet_id, publish_refusal(code)))

    def _subscribe(
        self,
        _client: Client,
        _userdata: object,
        packet_id: int,
        reasons: list[ReasonCode],
        *_rest: object,
    ) -> None:
        refused = tuple(i for i, reason in enumerate(reasons) if reason.is_failure)
        self._inbox.put(Subscribed(packet_id, refused))

    def _unsubscribe(
        self, _client: Client, _userdata: object, packet_id: int, *_rest: object
    ) -> None:
        self._inbox.put(Subscribed(packet_id))
