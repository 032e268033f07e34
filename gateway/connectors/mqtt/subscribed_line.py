"""One connection with its subscriptions: messages to readings, acknowledged once they are kept."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.mqtt.broker_connection import BrokerConnection
from gateway.connectors.mqtt.subscribed_source import SubscribedSource
from gateway.connectors.mqtt.subscription_plan import Subscription
from gateway.connectors.reading import Reading
from host.mqtt.packet_stream import Received

MAX_WAITING = 5_000
"""Messages that wait to be kept; with more, the broker is read no further."""
MAX_WAITING_BYTES = 16_000_000
MAX_BATCH = 2_000
"""Messages that are kept together, at most."""
MAX_READINGS = 2_000
"""With as many, a batch is handed over."""
SLICE_SECONDS = 0.02
"""For which messages are mapped before others get their turn on the event loop."""
LAST_SECONDS = 0.5
MAX_TOPICS = 20_000
"""Topics whose sources are remembered."""

_Match = tuple[SubscribedSource, Mapping[str, str], bool]


class SubscribedLine:
    """Reads one connection for the sources that subscribe over it.

    Args:
        context: Of the connector.
        connect: Makes the connection, given what to call with messages.
    """

    def __init__(
        self,
        context: ConnectorContext,
        connect: Callable[[Callable[[list[Received]], None]], BrokerConnection],
    ) -> None:
        self._context = context
        self._subscriptions: dict[int, Subscription] = {}
        self._matches: dict[tuple[str, tuple[int, ...]], tuple[_Match, ...]] = {}
        self._waiting: list[Received] = []
        self._bytes = 0
        self._wake = asyncio.Event()
        self.connection = connect(self._received)

    async def subscribe(self, subscriptions: Sequence[Subscription], former: Iterable[str]) -> None:
        """Subscribe, and end those of earlier lives that are wanted no more.

        Args:
            subscriptions: What is wanted.
            former: Filters that the broker may have kept.

        Raises:
            ConnectionError: The connection was lost.
        """
        self._subscriptions = {each.number: each for each in subscriptions}
        wanted = {each.topic_filter for each in subscriptions}
        self.connection.unsubscribe([each for each in former if each not in wanted])
        for number, each in self._subscriptions.items():
            if await self.connection.subscribe([(each.topic_filter, each.qos)], number):
                for source, _ in each.readers:
                    source.source.problem(
                        f"the broker refused the subscription to {each.topic_filter!r:.100}; "
                        "check its access rules"
                    )

    async def run(self) -> None:
        """Read until the connection is lost.

        Raises:
            ConnectionError: It was lost; says why.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self.connection.run())
            group.create_task(self._work())

    def _received(self, messages: list[Received]) -> None:
        self._waiting += messages
        self._bytes += sum(len(message.payload) for message in messages)
        if len(self._waiting) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            self.connection.pause()
        self._wake.set()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            batch, readings = self._mapped()
            if readings:
                self._context.emit(readings)
                await self._until_kept(batch)
            self.connection.acknowledge(batch)
            if not self._waiting:
                self._wake.clear()
                self.connection.resume()
            else:
                await asyncio.sleep(0)  # others have their turn

    def _mapped(self) -> tuple[list[Received], list[Reading]]:
        """Take messages for a moment; return them and their readings."""
        end = time.perf_counter() + SLICE_SECONDS
        readings: list[Reading] = []
        number = 0
        for message in self._waiting:
            readings += self._readings(message)
            number += 1
            if number >= MAX_BATCH or len(readings) >= MAX_READINGS or time.perf_counter() >= end:
                break
        batch, self._waiting = self._waiting[:number], self._waiting[number:]
        self._bytes -= sum(len(message.payload) for message in batch)
        return batch, readings

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
                self.connection.acknowledge(batch)
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

    def _find(self, message: Received) -> Iterator[_Match]:
        known = self._subscriptions
        numbers = message.subscriptions or known
        # The broker keeps the subscriptions of earlier lives: their numbers are not ours.
        for subscription in (known[number] for number in numbers if number in known):
            for source, is_availability in subscription.readers:
                matched = source.match(message.topic)
                # A message that two filters of a source match comes for each of them.
                if matched is not None and matched[1] == is_availability:
                    yield source, *matched
