"""Figures that a broker publishes about itself below `$SYS/broker`, as last heard."""

import logging
from collections.abc import Iterator

from host.metrics.families import Family, Sample, counter, gauge
from host.mqtt import MessageClient, MessagingError

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


class BrokerFigures:
    """The last figures of one broker. Bounded by `FAMILIES`."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}

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
        if not topic.startswith("$SYS/"):
            return False
        name = topic.removeprefix(_ROOT)
        text = payload[:_MAX_PAYLOAD].decode("ascii", "replace").partition(" ")[0]
        if name in FAMILIES and text.isdecimal():
            self._values[name] = float(text)
        return True

    def samples(self) -> Iterator[Sample]:
        """Yield what was heard last."""
        for name, value in self._values.items():
            yield FAMILIES[name].at(value)
