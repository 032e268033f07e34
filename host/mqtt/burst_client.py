"""A paho client that reads and writes many messages at once.

paho asks the system for one byte of a packet, then another, then the rest, and makes ten objects of
it, a hundred with the properties of MQTT 5. Here one call reads what there is; publishes and
acknowledgements are taken out of it, and paho gets the rest: connecting, subscribing, keeping
alive. A message takes 2 µs instead of 26, and of 110 in MQTT 5 (benchmarks/intake.py).
"""

import logging
from collections.abc import Callable, Iterable
from time import monotonic

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from typing_extensions import override

from host.mqtt.packet_stream import (
    PUBACK,
    PUBLISH,
    PacketStream,
    Received,
    puback_packets,
    read_publish,
)

_LOG = logging.getLogger(__name__)

READ_BYTES = 262_144
REFUSED = 0x80
"""From here on reason codes of MQTT 5 are failures."""
HEARD_SECONDS = 1.0
"""Between two publishes that paho reads itself. It hangs up if it hears nothing for too long, and
the answer to its question may stand behind many publishes."""


def _ignore(_given: object) -> None:
    """Do nothing."""


class BurstClient(Client):
    """Reads publishes in bursts; nothing is acknowledged but by `acknowledge`.

    Publishes go out with `send`; their acknowledgements are reported, not kept.

    Attributes:
        on_burst: Called with publishes in order, on the thread that reads.
        on_acknowledged: Called with the ids of publishes of ours, likewise.
        on_refused: Called with the id of a publish that the broker does not take, and its reason
            code (MQTT 5).
    """

    def __init__(
        self,
        client_id: str,
        version: MQTTProtocolVersion = MQTTProtocolVersion.MQTTv311,
        *,
        clean: bool,
    ) -> None:
        self._is_5 = version == MQTTProtocolVersion.MQTTv5
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=None if self._is_5 else clean,
            protocol=version,
            manual_ack=True,
        )
        self.on_burst: Callable[[list[Received]], None] = _ignore
        self.on_acknowledged: Callable[[list[int]], None] = _ignore
        self.on_refused: Callable[[tuple[int, int]], None] = _ignore
        self.on_message = self._read_by_paho
        self._stream = PacketStream()
        self._given = b""
        self._ended: OSError | bool = False
        self._burst: list[Received] = []
        self._heard_at = float("-inf")

    @property
    def is_5(self) -> bool:
        """Whether it speaks MQTT 5."""
        return self._is_5

    def speak(self, version: MQTTProtocolVersion) -> None:
        """Speak another version from the next connect on, with the same clean start."""
        self._is_5 = version == MQTTProtocolVersion.MQTTv5
        self._protocol = version

    @property
    def has_more(self) -> bool:
        """Whether the TLS layer holds bytes that the socket does not show."""
        pending = getattr(self.socket(), "pending", None)
        return pending is not None and bool(pending())

    @override
    def reconnect(self) -> MQTTErrorCode:
        self._stream.clear()
        self._given, self._ended, self._burst = b"", False, []
        return super().reconnect()

    @override
    def loop_read(self, max_packets: int = 1) -> MQTTErrorCode:
        """Read what there is, at most `READ_BYTES`, and report it."""
        if self.socket() is None:
            return MQTTErrorCode.MQTT_ERR_NO_CONN
        try:
            data = super()._sock_recv(READ_BYTES)
        except BlockingIOError:
            return MQTTErrorCode.MQTT_ERR_SUCCESS
        except OSError as error:
            self._ended = error
            return super().loop_read()
        if not data:
            self._ended = True
            return super().loop_read()
        return self._take(data)

    def _take(self, data: bytes) -> MQTTErrorCode:
        acknowledged: list[int] = []
        now = monotonic()
        for packet, body in self._stream.packets(data):
            kind = packet[0] & 0xF0
            if kind == PUBLISH and body:
                if now - self._heard_at < HEARD_SECONDS:
                    if self._take_publish(packet, body):
                        continue
                else:
                    self._heard_at = now
            if kind == PUBACK and body and len(packet) >= body + 2:
                packet_id = packet[body] << 8 | packet[body + 1]
                if len(packet) > body + 2 and packet[body + 2] >= REFUSED:
                    self.on_refused((packet_id, packet[body + 2]))
                else:
                    acknowledged.append(packet_id)
                continue
            self._report()  # before what paho makes of the next packet
            self._given = packet
            result = super().loop_read()
            if result != MQTTErrorCode.MQTT_ERR_SUCCESS or self.socket() is None:
                return result
        self._report()
        if acknowledged:
            self.on_acknowledged(acknowledged)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _take_publish(self, packet: bytes, body: int) -> bool:
        """Add a publish to the burst; return whether that was possible."""
        try:
            received = read_publish(packet, body, is_5=self._is_5)
        except UnicodeDecodeError:
            return False
        if received is None:
            return False
        self._burst.append(received)
        return True

    def _read_by_paho(self, _client: Client, _userdata: object, message: MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            _LOG.warning("the broker sent a topic that is not UTF-8; ignored")
            if message.qos == 1:
                self.acknowledge([message.mid])
            return
        if message.qos > 1:
            self.ack(message.mid, message.qos)
        numbers = getattr(message.properties, "SubscriptionIdentifier", ())
        self._burst.append(
            Received(
                topic,
                bytes(message.payload),
                message.qos,
                message.retain,
                message.mid if message.qos == 1 else 0,
                tuple(numbers),
            )
        )

    def _report(self) -> None:
        burst, self._burst = self._burst, []
        if burst:
            self.on_burst(burst)

    @override
    def _sock_recv(self, bufsize: int) -> bytes:
        """Return bytes of the packet that is given to paho."""
        given, self._given = self._given[:bufsize], self._given[bufsize:]
        if given:
            return given
        if isinstance(self._ended, OSError):
            raise self._ended
        if self._ended:
            return b""
        raise BlockingIOError

    def acknowledge(self, packet_ids: Iterable[int]) -> None:
        """Tell the broker that publishes of QoS 1 need not be sent again."""
        packets = puback_packets(packet_ids)
        if packets:
            self._packet_queue(PUBACK, packets, 0, 1)

    def send(self, packet: bytes) -> bool:
        """Send a packet as it is; return whether there is a connection."""
        if self.socket() is None:
            return False
        return self._packet_queue(PUBLISH, packet, 0, 1) == MQTTErrorCode.MQTT_ERR_SUCCESS
