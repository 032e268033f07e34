"""One client's connection: bytes in, packets to the broker, packets out, written in batches."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.embedded.embedded_broker import NOT_AUTHORIZED, QUOTA_EXCEEDED, made_up_client_id
from broker.embedded.packets import decode, encode
from broker.embedded.packets import packet_properties as props
from broker.embedded.packets.framing import Framer
from broker.embedded.packets.packets import (
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PUBACK,
    PUBLISH,
    PUBREL,
    SUBSCRIBE,
    UNSUBSCRIBE,
    V3,
    V5,
    Connect,
    Message,
)
from broker.embedded.packets.primitives import PROTOCOL_ERROR, PacketError
from broker.embedded.tls_listener import common_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.embedded.embedded_broker import Broker
    from broker.embedded.mqtt_session import Session

_LOG = logging.getLogger(__name__)

KEEP_ALIVE_TIMEOUT: Final = 0x8D
_RECEIVE_MAXIMUM_EXCEEDED: Final = 0x93
_BAD_CREDENTIALS: Final = 0x86
_CLIENT_ID_INVALID: Final = 0x85
_SERVER_BUSY: Final = 0x89
_WITH_WILL: Final = 0x04
# MQTT 5 reason code of a refused CONNECT -> MQTT 3.1.1 return code.
_V3_CODES: Final = {
    decode.UNSUPPORTED_VERSION: 1,
    _CLIENT_ID_INVALID: 2,
    _SERVER_BUSY: 3,
    QUOTA_EXCEEDED: 3,
    _BAD_CREDENTIALS: 4,
    NOT_AUTHORIZED: 5,
}
# Low four bits of the first byte, per packet type; PUBLISH has its own flags.
_FLAGS: Final = {PUBREL: 2, SUBSCRIBE: 2, UNSUBSCRIBE: 2}
_LINGER: Final = 2.0


class Connection(asyncio.Protocol):
    """The protocol of one socket; an `Outlet` of its session.

    Args:
        broker: Shared state.
        accepts: Says whether one more client may connect now.
        opened: Called when the socket is open and, with TLS, the handshake done.
        forget: Called when the socket is closed.
    """

    def __init__(
        self,
        broker: Broker,
        accepts: Callable[[], bool],
        opened: Callable[[Connection], None],
        forget: Callable[[Connection], None],
    ) -> None:
        self.version = 0
        self.max_packet_size: int | None = None
        self.session: Session | None = None
        self.last_seen = time.monotonic()
        self._broker = broker
        self._accepts = accepts
        self._opened = opened
        self._forget = forget
        self._framer = Framer(broker.limits.max_packet_size)
        self._transport: asyncio.Transport
        self._loop = asyncio.get_running_loop()
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._paused = False
        self._closing = False
        self._greeted = False
        self._keepalive = 0
        self._certificate_name: str | None = None
        self._handlers: dict[int, Callable[[bytes], None]] = {
            PUBACK: self._on_puback,
            PUBREL: self._on_pubrel,
            SUBSCRIBE: self._on_subscribe,
            UNSUBSCRIBE: self._on_unsubscribe,
            PINGREQ: self._on_pingreq,
            DISCONNECT: self._on_disconnect,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Prepare the socket."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - asyncio's TCP transports are
        self._transport = transport
        most = self._broker.limits.max_write_buffer
        transport.set_write_buffer_limits(high=most, low=most // 4)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._certificate_name = common_name(transport.get_extra_info("peercert"))
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        """Handle every complete packet; a bad one ends this connection and no other."""
        self.last_seen = time.monotonic()
        try:
            if not self._greeted:
                self._check_greeting(data)
            for first, body in self._framer.feed(data):
                if self._closing:
                    return
                self._packet(first, body)
        except PacketError as error:
            self._broker.counters.malformed += 1
            _LOG.info("client %s: %s; closed", self._name(), error)
            self._refuse(error.reason)
        except Exception:  # noqa: BLE001 - our defect must not end the others' connections
            _LOG.exception("a defect while handling client %s; closed", self._name())
            self.close(0x80)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report it to the broker, which publishes the will unless the client said goodbye."""
        del exc
        self._closing = True
        self._leave()
        self._forget(self)

    def pause_writing(self) -> None:
        """Hold a client that does not read: nothing more is taken from it."""
        self._paused = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        self._paused = False
        self.last_seen = time.monotonic()
        self._transport.resume_reading()
        if self.session is not None:
            self.session.drain(self.last_seen)

    # --- Outlet --------------------------------------------------------------------------------

    @property
    def writable(self) -> bool:
        """Whether the client keeps up with what we write."""
        return (
            not self._paused
            and not self._closing
            and self._out_bytes < self._broker.limits.max_write_buffer
        )

    def send(self, frame: bytes) -> None:
        """Write a packet at the end of this turn of the event loop, with all others of the turn."""
        if self._closing:
            return
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(frame)
        self._out_bytes += len(frame)

    def _flush(self) -> None:
        if not self._out:
            return
        data = b"".join(self._out)
        held = self._out_bytes >= self._broker.limits.max_write_buffer
        self._out.clear()
        self._out_bytes = 0
        if not self._transport.is_closing():
            self._transport.write(data)
            if held and self.session is not None and self.writable:
                # Deliveries queued behind a full turn, which the socket then took at once.
                self.session.drain(time.monotonic())

    def close(self, reason: int) -> None:
        """End the connection; report the reason to a connected MQTT 5 client."""
        if self._closing:
            return
        if self.session is not None and self.version == V5 and reason:
            self.send(encode.disconnect(reason))
        self._flush()
        self._closing = True
        self._leave()
        self._transport.close()
        # A client that does not read would keep a closing socket for ever.
        self._loop.call_later(_LINGER, self._transport.abort)

    # --- life ----------------------------------------------------------------------------------

    def check_alive(self, now: float) -> None:
        """Close the connection of a client that has been silent for too long."""
        silent = now - self.last_seen
        if self.session is None:
            if silent > self._broker.limits.connect_timeout:
                self.close(0)
        elif self._keepalive and silent > 1.5 * self._keepalive:
            _LOG.info("client %s: silent for %.1f s; closed", self._name(), silent)
            self.close(KEEP_ALIVE_TIMEOUT)

    def forgive(self, now: float) -> None:
        """Restart the client's keep-alive: the broker itself was not running."""
        self.last_seen = now

    def _leave(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            self._broker.lost(session, self, time.monotonic())

    def _name(self) -> str:
        if self.session is not None:
            return repr(self.session.client_id)
        peer = self._transport.get_extra_info("peername")
        return f"at port {peer[1]}" if peer else "not connected"

    def _refuse(self, reason: int) -> None:
        """End a connection on an error: CONNACK before it was accepted, DISCONNECT after."""
        if self.session is None and self.version:
            code = reason if self.version == V5 else _V3_CODES.get(reason, 0)
            if code:
                self.send(encode.connack(self.version, code, session_present=False))
        self.close(reason)

    # --- packets -------------------------------------------------------------------------------

    def _check_greeting(self, data: bytes) -> None:
        """Refuse at once, by its first byte, a peer that does not speak MQTT."""
        self._greeted = True
        if data[0] != CONNECT << 4:
            raise PacketError(f"the first byte is 0x{data[0]:02x}: not a CONNECT", PROTOCOL_ERROR)

    def _packet(self, first: int, body: bytes) -> None:
        kind = first >> 4
        if self.session is None:
            self._on_connect(body)
        elif kind == PUBLISH:
            self._on_publish(first & 15, body)
        else:
            handler = self._handlers.get(kind)
            if handler is None or first & 15 != _FLAGS.get(kind, 0):
                message = f"a packet of type {kind} with flags {first & 15} is not expected here"
                raise PacketError(message, PROTOCOL_ERROR)
            handler(body)

    def _on_connect(self, body: bytes) -> None:
        # How to say no depends on the version, so look at it before anything can fail.
        self.version = V5 if len(body) > 6 and body[6] == V5 else V3
        packet = decode.decode_connect(body)
        given = packet.client_id
        packet = replace(packet, client_id=self._broker.access.client_id(given, packet.user))
        refusal = self._refusal(packet)
        if refusal:
            _LOG.info("client %r refused: reason 0x%02x", packet.client_id, refusal)
            self._refuse(refusal)
            return
        client_id = packet.client_id or made_up_client_id()
        self._keepalive = packet.keepalive
        self.max_packet_size = packet.max_packet_size
        session, present = self._broker.connect(packet, client_id, self, self.last_seen)
        self.session = session
        assigned = "" if given else client_id
        found = self._connack_properties(assigned) if self.version == V5 else None
        self.send(encode.connack(self.version, 0, session_present=present, properties=found))
        session.drain(self.last_seen)

    def _refusal(self, packet: Connect) -> int:
        access = self._broker.access
        if not packet.client_id and packet.version == V3 and not packet.clean:
            return _CLIENT_ID_INVALID
        if not self._accepts() or not self._broker.has_room_for(packet.client_id):
            return _SERVER_BUSY
        if self._certificate_name is not None and packet.user != self._certificate_name:
            return _BAD_CREDENTIALS
        if not access.may_connect(packet.client_id, packet.user, packet.password):
            return _BAD_CREDENTIALS
        if packet.will is not None and not access.may_publish(
            packet.client_id, packet.user, packet.will.topic
        ):
            return NOT_AUTHORIZED
        return 0

    def _connack_properties(self, assigned: str) -> props.Properties:
        limits = self._broker.limits
        found: props.Properties = {
            props.RECEIVE_MAXIMUM: limits.max_incoming_qos2,
            props.MAXIMUM_PACKET_SIZE: limits.max_packet_size,
            props.SUBSCRIPTION_IDS_AVAILABLE: 0,
        }
        if assigned:
            found[props.ASSIGNED_CLIENT_ID] = assigned
        return found

    def _on_publish(self, flags: int, body: bytes) -> None:
        session = self.session
        assert session is not None  # noqa: S101 - `_packet` checked
        packet = decode.decode_publish(flags, body, self.version)
        if packet.qos == 2:
            if packet.packet_id in session.incoming_qos2:
                self.send(encode.pubrec(packet.packet_id, self.version))
                return
            if len(session.incoming_qos2) >= self._broker.limits.max_incoming_qos2:
                raise PacketError("too many unfinished QoS 2 publishes", _RECEIVE_MAXIMUM_EXCEEDED)
        reason = 0
        if not self._broker.access.may_publish(session.client_id, session.user, packet.topic):
            _LOG.warning("client %s may not publish on %r", self._name(), packet.topic)
            reason = NOT_AUTHORIZED
        elif packet.topic.startswith("$CONTROL/"):
            if not self._broker.administer(packet.topic, packet.payload, self.last_seen):
                reason = NOT_AUTHORIZED
        else:
            message_ = Message(
                packet.topic,
                packet.payload,
                1 if packet.qos else 0,
                retain=packet.retain,
                properties=packet.properties,
                expires_at=None if packet.expiry is None else self.last_seen + packet.expiry,
                origin=session.client_id,
            )
            if not self._broker.publish(message_, self.last_seen):
                reason = QUOTA_EXCEEDED
        if packet.qos == 1:
            self.send(encode.puback(packet.packet_id, self.version, reason))
        elif packet.qos == 2:
            if not reason or self.version == V3:
                session.incoming_qos2.add(packet.packet_id)
            self.send(encode.pubrec(packet.packet_id, self.version, reason))

    def _on_puback(self, body: bytes) -> None:
        packet_id = decode.decode_acknowledgement(body, self.version)
        if self.session is not None:
            self.session.acknowledge(packet_id, self.last_seen)

    def _on_pubrel(self, body: bytes) -> None:
        packet_id = decode.decode_acknowledgement(body, self.version)
        if self.session is not None:
            self.session.incoming_qos2.discard(packet_id)
        self.send(encode.pubcomp(packet_id, self.version))

    def _on_subscribe(self, body: bytes) -> None:
        packet = decode.decode_subscribe(body, self.version)
        if self.session is None:
            return
        codes, wanting = self._broker.subscribe(self.session, self.session.user, packet.wishes)
        if self.version == V3:
            codes = [min(code, 0x80) for code in codes]
        self.send(encode.suback(packet.packet_id, self.version, codes))
        self._broker.send_retained(self.session, wanting, self.last_seen)

    def _on_unsubscribe(self, body: bytes) -> None:
        packet = decode.decode_unsubscribe(body, self.version)
        if self.session is not None:
            codes = self._broker.unsubscribe(self.session, packet.filters)
            self.send(encode.unsuback(packet.packet_id, self.version, codes))

    def _on_pingreq(self, body: bytes) -> None:
        if body:
            raise PacketError("PINGREQ has a body")
        self.send(encode.PINGRESP)

    def _on_disconnect(self, body: bytes) -> None:
        packet = decode.decode_disconnect(body, self.version)
        session = self.session
        if session is None:
            return
        if packet.session_expiry is not None:
            if session.expiry == 0 and packet.session_expiry:
                message = "DISCONNECT asks to keep a session that CONNECT did not ask to keep"
                raise PacketError(message, PROTOCOL_ERROR)
            session.expiry = packet.session_expiry
        if packet.reason != _WITH_WILL:
            session.will = None
        self.close(0)
