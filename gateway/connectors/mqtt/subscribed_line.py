"""One connection with its subscriptions: messages to readings, acknowledged once they are kept."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.mapping_thread import LARGE_PAYLOAD
from gateway.connectors.mqtt.broker_connection import BrokerConnection
from gateway.connectors.mqtt.message_queues import Match, MessageQueues
from gateway.connectors.mqtt.served_source import ServedSource
from gateway.connectors.mqtt.subscription_plan import Subscription
from gateway.connectors.reading import Reading
from gateway.connectors.turns import Turn
from host.mqtt.packet_stream import Received

MAX_WAITING = 5_000
"""Messages that wait to be kept; with more, the broker is read no further."""
MAX_WAITING_BYTES = 16_000_000
RESUMED = 0.5
"""Of both: with less it is read again."""
MAX_BATCH = 2_000
"""Messages that are kept together, at most."""
MAX_READINGS = 2_000
"""With as many, a batch is handed over."""
LAST_SECONDS = 0.5


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
        self._subscriptions: dict[int, list[Subscription]] | None = None
        self._early: list[Received] = []
        self._queues = MessageQueues(self._find)
        self._order: deque[int] = deque()
        self._kept: set[int] = set()
        self._waiting = 0
        self._bytes = 0
        self._paused_at: int | None = None
        self._mapped_came: int | None = None
        self._wake = asyncio.Event()
        self.connection = connect(self._received)

    async def subscribe(self, subscriptions: Sequence[Subscription], former: Iterable[str]) -> None:
        """Subscribe, and end those of earlier lives that are wanted no more.

        `run` has to be under way: a broker may send many retained messages before it answers.

        Args:
            subscriptions: What is wanted.
            former: Filters that the broker may have kept.

        Raises:
            ConnectionError: The connection was lost.
        """
        known: dict[int, list[Subscription]] = {}
        self._subscriptions = known
        for each in subscriptions:
            known.setdefault(each.number, []).append(each)
        early, self._early = self._early, []
        self._queue(early)
        wanted = {each.topic_filter for each in subscriptions}
        self.connection.unsubscribe([each for each in former if each not in wanted])
        # All are sent before an answer is waited for: retained messages come before later answers.
        refusals = await asyncio.gather(
            *(
                self.connection.subscribe([(each.topic_filter, each.qos)], each.number)
                for each in subscriptions
            )
        )
        for each, refused in zip(subscriptions, refusals, strict=True):
            if refused:
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

    def read_until(self, source: ServedSource, now: int) -> int:
        """Return up to which time messages of a source that is read in order were mapped.

        While one is mapped, that is when it came. Times are microseconds since 1970.
        """
        times = (self._paused_at, self._mapped_came, self._queues.waits_since(source))
        return min([now, *(time for time in times if time is not None)])

    def _note_resumed(self) -> None:
        self._paused_at = self._context.clock() if self._is_full(1.0) else None

    def _received(self, messages: list[Received]) -> None:
        self._waiting += len(messages)
        self._order.extend(message.packet_id for message in messages if message.packet_id)
        self._bytes += sum(len(message.payload) for message in messages)
        if self._is_full(1.0):
            self.connection.pause()
            self._paused_at = self._paused_at or self._context.clock()
        if self._subscriptions is None:
            # Of a session that the broker has kept; whose they are is found out when it is known.
            self._early += messages
        else:
            self._queue(messages)

    def _queue(self, messages: Iterable[Received]) -> None:
        self._queues.add(messages, self._context.clock())
        if self._queues:
            self._wake.set()

    def _is_full(self, share: float) -> bool:
        return self._waiting > MAX_WAITING * share or self._bytes > MAX_WAITING_BYTES * share

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            batch, readings = await self._mapped()
            if readings:
                await self._context.emit_in_parts(readings)
                await self._until_kept(batch)
            self._acknowledge(batch)
            if not self._is_full(RESUMED):
                self.connection.resume()
                if self._paused_at is not None:
                    # After the loop has read what waited on the connection.
                    asyncio.get_running_loop().call_soon(self._note_resumed)
            if not self._queues:
                self._wake.clear()
            else:
                await asyncio.sleep(0)  # others have their turn

    async def _mapped(self) -> tuple[list[Received], list[Reading]]:
        """Map messages of the next queue for a turn; return them and their readings."""
        turn = Turn()
        queue = self._queues.next_queue()
        batch: list[Received] = []
        readings: list[Reading] = []
        while queue.messages and len(batch) < MAX_BATCH:
            _, message, matches, self._mapped_came = queue.messages.popleft()
            batch.append(message)
            if len(message.payload) <= LARGE_PAYLOAD:
                readings += self._readings(message, matches)
            else:
                readings += await self._readings_aside(message, matches)
            if len(readings) >= MAX_READINGS or turn.is_over:
                break
        self._mapped_came = None
        self._queues.end_turn(queue)
        self._waiting -= len(batch)
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
                self._acknowledge(batch)
            raise

    def _acknowledge(self, batch: list[Received]) -> None:
        """Acknowledge messages that are kept, when all that came before them are, too."""
        kept, order = self._kept, self._order
        kept.update(message.packet_id for message in batch if message.packet_id)
        packet_ids: list[int] = []
        while order and order[0] in kept:
            packet_ids.append(order.popleft())
        kept.difference_update(packet_ids)
        if packet_ids:
            self.connection.acknowledge(packet_ids)

    def _readings(self, message: Received, matches: Iterable[Match]) -> Iterator[Reading]:
        for source, levels, is_availability in matches:
            if is_availability:
                yield from source.withdrawn(levels, message.payload)
            else:
                yield from source.readings(
                    message.topic, levels, message.payload, retained=message.retain
                )

    async def _readings_aside(self, message: Received, matches: Iterable[Match]) -> list[Reading]:
        readings: list[Reading] = []
        for source, levels, is_availability in matches:
            if not is_availability:
                readings += await source.readings_aside(
                    message.topic, levels, message.payload, retained=message.retain
                )
        return readings

    def _find(self, message: Received) -> Iterator[Match]:
        known = self._subscriptions or {}
        # Once each: two filters may have the same number.
        numbers = dict.fromkeys(message.subscriptions) or known
        # The broker keeps the subscriptions of earlier lives: their numbers are not ours.
        found = (each for number in numbers for each in known.get(number, ()))
        for subscription in found:
            for source, is_availability in subscription.readers:
                matched = source.match(message.topic)
                # A message that two filters of a source match comes for each of them.
                if matched is not None and matched[1] == is_availability:
                    yield source, *matched
