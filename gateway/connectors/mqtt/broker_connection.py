"""One connection to a broker on the event loop: no thread, acknowledgements by hand."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags
from paho.mqtt.enums import MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from gateway.connectors.mqtt.mqtt_options import MqttEndpoint
from host.mqtt.broker_address import parse_address, tls_context
from host.mqtt.burst_client import BurstClient
from host.mqtt.packet_stream import Received
from host.mqtt.unreachable import failure_of

CONNECT_SECONDS = 10.0
WINDOW = 1_000
"""Messages that the broker sends before it waits for acknowledgements (MQTT 5)."""
MAX_PACKET = 1_100_000
"""Bytes of a message that the broker is to send at most (MQTT 5)."""
_MISC_SECONDS = 1.0
_SUCCESS = MQTTErrorCode.MQTT_ERR_SUCCESS
_UNSUPPORTED = frozenset({"Unsupported protocol version", "Protocol error"})


class UnsupportedVersionError(ConnectionError):
    """The broker does not speak this version of MQTT."""


class BrokerConnection:
    """A connection; when it is lost, `lost` is done and another one is to be made.

    Args:
        endpoint: Where, and as whom.
        client_id: The broker keeps our session under it.
        version: Of MQTT.
        received: Called on the event loop with what has come, in order.
    """

    def __init__(
        self,
        endpoint: MqttEndpoint,
        client_id: str,
        version: str,
        received: Callable[[list[Received]], None],
    ) -> None:
        self._endpoint = endpoint
        self._address = parse_address(endpoint.address)
        self._is_5 = version == "5"
        protocol = MQTTProtocolVersion.MQTTv5 if self._is_5 else MQTTProtocolVersion.MQTTv311
        clean = endpoint.session_hours == 0
        self._paho = BurstClient(client_id, protocol, clean=clean)
        self._paho.on_burst = received
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self._accepted: asyncio.Future[str] = self._loop.create_future()
        self._granted: dict[int, asyncio.Future[tuple[int, ...]]] = {}
        self._descriptor = -1
        self._is_paused = False
        self._read_at = 0.0
        self.names_subscriptions = self._is_5
        self._prepare()

    def _prepare(self) -> None:
        paho, endpoint = self._paho, self._endpoint
        paho.connect_timeout = CONNECT_SECONDS
        user = endpoint.username or self._address.user
        if user:
            paho.username_pw_set(user, endpoint.password or self._address.password)
        if self._address.tls:
            paths = (Path(p) if p else None for p in (endpoint.ca, endpoint.cert, endpoint.key))
            paho.tls_set_context(tls_context(*paths))
        paho.on_connect = self._on_connect
        paho.on_disconnect = self._on_disconnect
        paho.on_subscribe = self._on_subscribe

    async def open(self) -> None:
        """Connect.

        Raises:
            ConnectionError: It cannot be reached, or refuses us; says why.
            UnsupportedVersionError: It does not speak this version.
        """
        try:
            await asyncio.to_thread(self._connect)
        except (OSError, ValueError) as error:
            failure = failure_of(error, self._address)
            hint = f" ({failure.hint})" if failure.hint else ""
            raise ConnectionError(f"broker {self._address}: {failure.reason}{hint}") from None
        self._attach()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                refusal = await self._accepted
        except TimeoutError:
            refusal = "it does not answer"
        if refusal in _UNSUPPORTED and self._is_5:
            raise UnsupportedVersionError(refusal)
        if refusal:
            raise ConnectionError(f"broker {self._address}: {refusal}")

    def _connect(self) -> None:
        address, endpoint = self._address, self._endpoint
        if not self._is_5:
            self._paho.connect(address.host, address.port, endpoint.keepalive)
            return
        properties = _properties(
            PacketTypes.CONNECT,
            SessionExpiryInterval=int(endpoint.session_hours * 3_600),
            ReceiveMaximum=WINDOW,
            MaximumPacketSize=MAX_PACKET,
        )
        self._paho.connect(
            address.host,
            address.port,
            endpoint.keepalive,
            clean_start=endpoint.session_hours == 0,
            properties=properties,
        )

    async def subscribe(self, filters: Sequence[tuple[str, int]], number: int) -> list[str]:
        """Subscribe to filters with their QoS; return those that the broker refused.

        Args:
            filters: What to subscribe to.
            number: From 1; messages for these subscriptions carry it, where the broker can.
        """
        if self._is_5:
            named = self.names_subscriptions
            properties = (
                _properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=number) if named else None
            )
            options = [(f, SubscribeOptions(qos)) for f, qos in filters]
            result, mid = self._paho.subscribe(options, properties=properties)
        else:
            result, mid = self._paho.subscribe(list(filters))
        if result != MQTTErrorCode.MQTT_ERR_SUCCESS or mid is None:
            raise ConnectionError(f"broker {self._address}: the connection was lost")
        answer: asyncio.Future[tuple[int, ...]] = self._loop.create_future()
        self._granted[mid] = answer
        self._write()
        try:
            while not answer.done():
                # Messages that wait before the answer may take long, and we may not read them yet.
                await asyncio.wait({answer}, timeout=CONNECT_SECONDS)
                silent = self._loop.time() - self._read_at
                if not answer.done() and not self._is_paused and silent >= CONNECT_SECONDS:
                    raise ConnectionError(
                        f"broker {self._address}: it does not answer a subscription"
                    )
            refused = await answer
        finally:
            del self._granted[mid]
        return [filters[position][0] for position in refused]

    def unsubscribe(self, filters: Sequence[str]) -> None:
        """End subscriptions of earlier lives, which the broker has kept with the session."""
        if filters:
            self._paho.unsubscribe(list(filters))
            self._write()

    def publish(self, topic: str, payload: bytes) -> None:
        """Send a message once, as a request to devices; it may get lost."""
        self._paho.publish(topic, payload, qos=0)
        self._write()

    def acknowledge(self, packet_ids: Sequence[int]) -> None:
        """Tell the broker that messages are kept, in the order in which they came (4.6.0-2)."""
        if self.lost.done():
            return  # the broker sends them again
        self._paho.acknowledge(packet_ids)
        self._write()

    def pause(self) -> None:
        """Read nothing until `resume`: the broker then waits, or queues."""
        if not self._is_paused and self._descriptor >= 0:
            self._is_paused = True
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        """Read again."""
        if self._is_paused and self._descriptor >= 0 and not self.lost.done():
            self._is_paused = False
            self._read_at = self._loop.time()
            self._loop.add_reader(self._descriptor, self._readable)
            self._loop.call_soon(self._readable)

    async def run(self) -> None:
        """Keep the connection alive until it is lost.

        Raises:
            ConnectionError: It was lost; says why.
        """
        while not self.lost.done():
            self._paho.loop_misc()
            self._write()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_MISC_SECONDS):
                    await asyncio.shield(self.lost)
        raise ConnectionError(f"broker {self._address}: {self.lost.result()}")

    def close(self) -> None:
        """Disconnect; the broker keeps the session."""
        self._detach()
        with contextlib.suppress(OSError, ValueError):
            self._paho.disconnect()
            # What does not fit the socket's buffer now is not worth waiting for.
            self._paho.loop_write()
        self._end("closed")
        sock = self._paho.socket()
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.close()

    def _attach(self) -> None:
        sock = self._paho.socket()
        if sock is None:
            raise ConnectionError(f"broker {self._address}: it closes the connection at once")
        sock.setblocking(False)
        self._descriptor = sock.fileno()
        self._loop.add_reader(self._descriptor, self._readable)
        self._write()

    def _detach(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            self._loop.remove_writer(self._descriptor)
            self._descriptor = -1

    def _readable(self) -> None:
        if self.lost.done() or self._is_paused:
            return
        self._read_at = self._loop.time()
        reason = ""
        try:
            result = self._paho.loop_read()
            while result == _SUCCESS and self._paho.has_more and not self._is_paused:
                result = self._paho.loop_read()
            if result != _SUCCESS:
                reason = "the connection was lost"
        except Exception as error:  # noqa: BLE001 - paho raises anything on packets that are none
            reason = f"the broker sent a malformed packet ({error!r:.100})"
        if reason:
            self._end(reason)
        self._write()

    def _write(self) -> None:
        """Send what waits; go on when the socket takes more."""
        if self.lost.done() or self._descriptor < 0:
            return
        if self._paho.want_write():
            self._paho.loop_write()
        if self.lost.done() or self._descriptor < 0:
            return
        if self._paho.want_write():
            self._loop.add_writer(self._descriptor, self._write)
        else:
            self._loop.remove_writer(self._descriptor)

    def _end(self, reason: str) -> None:
        self._detach()
        if not self.lost.done():
            self.lost.set_result(reason)
        if not self._accepted.done():
            self._accepted.set_result(reason)
        for answer in self._granted.values():
            if not answer.done():
                answer.set_exception(ConnectionError(f"broker {self._address}: {reason}"))

    def _on_connect(
        self,
        _client: Client,
        _userdata: object,
        _flags: ConnectFlags,
        reason: ReasonCode,
        properties: Properties | None,
    ) -> None:
        if getattr(properties, "SubscriptionIdentifierAvailable", 1) == 0:
            self.names_subscriptions = False
        if not self._accepted.done():
            self._accepted.set_result(str(reason) if reason.is_failure else "")

    def _on_disconnect(
        self,
        _client: Client,
        _userdata: object,
        _flags: DisconnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        text = str(reason)
        self._end(
            "the connection was lost" if text in {"Success", "Normal disconnection"} else text
        )

    def _on_subscribe(
        self,
        _client: Client,
        _userdata: object,
        mid: int,
        reasons: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        answer = self._granted.get(mid)
        if answer is not None and not answer.done():
            answer.set_result(tuple(i for i, reason in enumerate(reasons) if reason.is_failure))


def _properties(packet: int, **values: int) -> Properties:
    properties = Properties(packet)  # type: ignore[no-untyped-call]  # paho types it in part
    for name, value in values.items():
        setattr(properties, name, value)
    return properties
