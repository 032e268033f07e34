"""A source as its connection to the broker sees it."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.mqtt_options import MqttSource
from gateway.connectors.reading import Reading


class ServedSource(Protocol):
    """A declared source and its share of a broker's messages.

    Attributes:
        filters: Of MQTT, as they are subscribed to, each with whether it tells availability.
        is_in_order: Whether messages of different topics refer to each other.
    """

    source: DeclaredSource
    options: MqttSource
    filters: list[tuple[str, bool]]
    is_in_order: bool

    def match(self, topic: str) -> tuple[Mapping[str, str], bool] | None:
        """Return (levels by name, whether it tells availability), or None if it is not ours."""

    def readings(
        self, topic: str, levels: Mapping[str, str], payload: bytes, *, retained: bool
    ) -> list[Reading]:
        """Return the readings of a message."""

    async def readings_aside(
        self, topic: str, levels: Mapping[str, str], payload: bytes, *, retained: bool
    ) -> list[Reading]:
        """Return the readings of a large message, which is read in a thread."""

    def withdrawn(self, levels: Mapping[str, str], payload: bytes) -> Iterable[Reading]:
        """Return the withdrawals that a message about availability means."""
