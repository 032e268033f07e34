"""The MQTT connector: messages of a broker to readings, acknowledged once they are kept."""

import asyncio
import contextlib
import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

import msgspec

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.mqtt.broker_connection import BrokerConnection, UnsupportedVersionError
from gateway.connectors.mqtt.mqtt_options import MqttEndpoint, MqttSource
from gateway.connectors.mqtt.subscribed_source import SubscribedSource, covers
from gateway.connectors.reading import Reading
from host.mqtt.packet_stream import Received

MAX_WAITING = 5_000
"""Messages that wait to be kept; with more, the broker is read no further."""
MAX_WAITING_BYTES = 16_000_000
MAX_BATCH = 2_000
"""Messages that are mapped before others get their turn on the event loop."""
LAST_SECONDS = 0.5
MAX_TOPICS = 20_000
"""Topics whose sources are remembered."""

_MAX_NUMBER = 268_435_455
"""Of a subscription, in MQTT 5."""

_Match = tuple[SubscribedSource, Mapping[str, str], bool]


class MqttConnector:
    """Serves one broker with all sources that name it."""

    kind = "mqtt"
    endpoint_options = MqttEndpoint
    source_options = MqttSource

    def __init__(self) -> None:
        self._context: ConnectorContext
        self._connection: BrokerConnection
        self._sources: list[SubscribedSource] = []
        self._subscribed: dict[int, list[SubscribedSource]] = {}
        self._matches: dict[tuple[str, tuple[int, ...]], tuple[_Match, ...]] = {}
        self._waiting: list[Received] = []
        self._bytes = 0
        self._wake = asyncio.Event()

    async def run(self, context: ConnectorContext) -> None:
        """Read the broker until the connection is lost.

        Raises:
            ConnectionError: It was lost, or could not be made.
        """
        self._context = context
        endpoint = context.endpoint_as(MqttEndpoint)
        self._sources = [
            SubscribedSource(source, is_trial=context.is_trial) for source in context.sources
        ]
        client_id = endpoint.client_id or f"pando-{context.gateway}-{context.endpoint_name}"
        if context.is_trial:
            # The broker keeps one connection of a name, and no session of this one.
            client_id = f"pando-try-{secrets.token_hex(6)}"
            endpoint = msgspec.structs.replace(endpoint, session_hours=0.0)
        self._connection = BrokerConnection(endpoint, client_id, endpoint.version, self._received)
        try:
            await self._open(endpoint, client_id)
            await self._subscribe()
            self._note()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._connection.run())
                group.create_task(self._work())
                for served in self._sources:
                    if served.options.request:
                        group.create_task(self._ask(served.options))
        except* ConnectionError as errors:
            raise errors.exceptions[0] from None
        finally:
            self._connection.close()

    async def _open(self, endpoint: MqttEndpoint, client_id: str) -> None:
        try:
            await self._connection.open()
        except UnsupportedVersionError:
            self._connection.close()
            self._context.note("the broker speaks MQTT 3.1.1 only")
            self._connection = BrokerConnection(endpoint, client_id, "3.1.1", self._received)
            await self._connection.open()

    def _note(self) -> None:
        filters = sum(len(source.filters) for source in self._sources)
        self._context.note(f"subscribed to {filters} topic filters of {len(self._sources)} sources")

    async def _subscribe(self) -> None:
        """Subscribe to each filter once: a second time would replace the first."""
        readers: dict[str, list[SubscribedSource]] = {}
        for source in self._sources:
            for topic_filter in source.filters:
                readers.setdefault(topic_filter, []).append(source)
        for topic_filter, sources in readers.items():
            if not self._connection.names_subscriptions and any(
                other != topic_filter and covers(other, topic_filter) for other in readers
            ):
                continue  # without numbers a message comes once for each filter that it matches
            number = 1 + zlib.crc32(topic_filter.encode()) % _MAX_NUMBER
            self._subscribed[number] = sources
            qos = max(source.options.qos for source in sources)
            if await self._connection.subscribe([(topic_filter, qos)], number):
                for source in sources:
                    source.source.problem(
                        f"the broker refused the subscription to {topic_filter!r:.100}; "
                        "check its access rules"
                    )

    async def _ask(self, options: MqttSource) -> None:
        """Ask devices that speak only when asked, for ever."""
        while True:
            self._connection.publish(options.request, options.request_payload)
            await asyncio.sleep(options.request_every)

    def _received(self, messages: list[Received]) -> None:
        self._waiting += messages
        self._bytes += sum(len(message.payload) for message in messages)
        if len(self._waiting) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            self._connection.pause()
        self._wake.set()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            self._bytes -= sum(len(message.payload) for message in batch)
            readings = [reading for message in batch for reading in self._readings(message)]
            if readings:
                self._context.emit(readings)
                await self._until_kept(batch)
            self._connection.acknowledge(batch)
            if not self._waiting:
                self._wake.clear()
                self._connection.resume()
            else:
                await asyncio.sleep(0)  # others have their turn

    async def _until_kept(self, batch: list[Received]) -> None:
        """Wait until a batch is on disk; who is stopped meanwhile waits for a last moment.

        What is not acknowledged comes again, to the connector that follows.
        """
        try:
            await self._context.kept()
        except asyncio.CancelledError:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._context.kept()
                self._connection.acknowledge(batch)
            raise

    def _readings(self, message: Received) -> Iterator[Reading]:
        for source, levels, is_availability in self._matching(message):
            if is_availability:
                yield from source.withdrawn(levels, message.payload)
            else:
                yield from source.readings(
                    message.topic, levels, message.payload, retained=message.retain
                )

    def _matching(self, message: Received) -> tuple[_Match, ...]:
        place = (message.topic, message.subscriptions)
        found = self._matches.get(place)
        if found is None:
            found = tuple(self._find(message))
            if len(self._matches) >= MAX_TOPICS:
                self._matches.clear()
            self._matches[place] = found
        return found

    def _find(self, message: Received) -> Iterable[_Match]:
        # The broker keeps the subscriptions of earlier lives: their numbers are not ours.
        named = (self._subscribed.get(number, ()) for number in message.subscriptions)
        asked = chain.from_iterable(named) if message.subscriptions else self._sources
        for source in dict.fromkeys(asked):
            matched = source.match(message.topic)
            if matched is not None:
                yield source, *matched
