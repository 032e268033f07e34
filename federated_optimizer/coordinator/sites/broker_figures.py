"""Figures that a broker publishes about itself below `$SYS/broker`, and how long it takes."""

import asyncio
import logging
import time
from collections.abc import Iterator

from host.metrics.families import Family, Sample, counter, gauge
from host.mqtt import MessageClient, MessagingError
from streamsql.errors import DeploymentError

log = logging.getLogger(__name__)

_ROOT = "$SYS/broker/"
FAMILIES: dict[str, Family] = {
    "uptime": gauge("pando_broker_uptime_seconds", "Time since the start of the broker."),
    "clients/connected": gauge("pando_broker_clients", "Connected clients."),
    "publish/messages/received": counter(
        "pando_broker_messages_received_total", "Messages taken from publishers."
    ),
    "publish/messages/sent": counter(
        "pando_broker_messages_sent_total", "Messages delivered to subscribers."
    ),
    "publish/messages/dropped": counter(
        "pando_broker_messages_dropped_total", "Messages lost to a full queue or an expiry."
    ),
    "retained messages/count": gauge("pando_broker_retained_messages", "Retained messages."),
}
"""The figures that Mosquitto and the embedded broker both have, by the rest of their topic."""

TOPICS = tuple(_ROOT + name for name in FAMILIES)
_MAX_PAYLOAD = 40
MOST_ROUNDS = 100
ROUND_SECONDS = 5.0
"""Within which a message has come back."""


class BrokerFigures:
    """The last figures of one broker. Bounded by `FAMILIES`."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._timing = asyncio.Lock()
        self._awaited: tuple[str, asyncio.Future[float]] | None = None

    async def follow(self, client: MessageClient) -> None:
        """Subscribe; a broker whose access rules forbid it has no figures here."""
        try:
            await client.subscribe(*TOPICS, qos=0)
        except MessagingError as error:
            log.warning("the broker's figures are missing in /metrics: %s", error.message)

    def hear(self, topic: str, payload: bytes) -> bool:
        """Ingest a message; return whether it is of the broker itself.

        Other texts than numbers ("12 seconds" is one) are ignored.
        """
        if self._awaited is not None and topic == self._awaited[0]:
            if not self._awaited[1].done():
                self._awaited[1].set_result(time.perf_counter())
            return True
        if not topic.startswith("$SYS/"):
            return False
        name = topic.removeprefix(_ROOT)
        text = payload[:_MAX_PAYLOAD].decode("ascii", "replace").partition(" ")[0]
        if name in FAMILIES and text.isdecimal():
            self._values[name] = float(text)
        return True

    async def round_trips(
        self, client: MessageClient, topic: str, rounds: int
    ) -> tuple[float, ...]:
        """Return milliseconds of messages over the broker to ourselves, one after the other.

        A message between sites goes the same way: from a client to the broker to a client.

        Args:
            client: Whose messages `hear` hears.
            topic: On which it may publish, and that nobody else uses.
            rounds: Messages; at most `MOST_ROUNDS`.

        Raises:
            DeploymentError: The broker is away, refuses the topic, or one did not come back.
        """
        async with self._timing:
            if not client.connected:
                raise DeploymentError("the console is not connected to its broker")
            await client.subscribe(topic)
            try:
                count = max(min(rounds, MOST_ROUNDS), 1)
                return tuple([await self._round_trip(client, topic) for _ in range(count)])
            except TimeoutError:
                raise DeploymentError(
                    f"a message over the broker did not come back within {ROUND_SECONDS:g} s",
                    hint="the log of the broker may say why",
                ) from None
            finally:
                self._awaited = None
                await client.unsubscribe(topic)

    async def _round_trip(self, client: MessageClient, topic: str) -> float:
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._awaited = (topic, future)
        began = time.perf_counter()
        client.publish(topic, b"hop")
        async with asyncio.timeout(ROUND_SECONDS):
            return 1_000 * (await future - began)

    def samples(self) -> Iterator[Sample]:
        """Yield what was heard last."""
        for name, value in self._values.items():
            yield FAMILIES[name].at(value)
