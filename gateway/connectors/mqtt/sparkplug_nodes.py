"""The Sparkplug nodes of one broker: asked for births, looked after, remembered."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.rebirth_requests import (
    RebirthRequests,
    rebirth_command,
    rebirth_topic,
)
from gateway.connectors.mqtt.served_source import ServedSource
from gateway.connectors.mqtt.sparkplug_source import SparkplugSource

TURN_SECONDS = 1.0
"""How often nodes are looked after when nothing comes."""
REMEMBER_MICROS = 100
"""Pause for each device between two times that all of them are remembered: 10,000 have a second."""


class SparkplugNodes:
    """The sources in Sparkplug of one connector, and what they ask of nodes.

    Args:
        context: Of the connector.
        memory: What `to_remember` has returned in an earlier life, or None.
        read_until: Returns up to which time the messages of a source have been read.
    """

    def __init__(
        self,
        context: ConnectorContext,
        memory: object,
        read_until: Callable[[ServedSource], int],
    ) -> None:
        self._context = context
        self._memory: Mapping[object, object] = memory if isinstance(memory, dict) else {}
        self._wake = asyncio.Event()
        self._requests = RebirthRequests(self._wake.set)
        self._sources: list[SparkplugSource] = []
        self._read_until = read_until
        self._remembered_at = 0

    def served(self, source: DeclaredSource) -> SparkplugSource:
        """Return what reads the messages of one more source."""
        memory = self._memory.get(source.name)
        found = SparkplugSource(source, self._requests, memory, self._read_until)
        self._sources.append(found)
        return found

    @property
    def is_changed(self) -> bool:
        """Whether something new is to be remembered."""
        return any(source.is_changed for source in self._sources)

    @property
    def is_to_remember(self) -> bool:
        """Whether something new is to be remembered now; all is written, so many devices wait."""
        if not self.is_changed:
            return False
        devices = sum(source.devices for source in self._sources)
        since = abs(self._context.clock() - self._remembered_at)
        return since >= REMEMBER_MICROS * devices

    def to_remember(self) -> dict[str, object]:
        """Return plain values that the next life reads."""
        self._remembered_at = self._context.clock()
        return {source.source.name: source.to_remember() for source in self._sources}

    async def run(self, publish: Callable[[str, bytes], None]) -> None:
        """Tell nodes to publish births, and withdraw rows of those that do not answer, for ever."""
        while self._sources:
            self._wake.clear()
            self.turn(publish)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TURN_SECONDS):
                    await self._wake.wait()

    def turn(self, publish: Callable[[str, bytes], None]) -> None:
        """Do what is due now; see `run`."""
        now = self._context.clock()
        readings = [reading for source in self._sources for reading in source.due()]
        if readings or self.is_to_remember:
            self._context.emit(readings)
        self._ask(self._requests.due(now), now, publish)

    def _ask(
        self,
        due: Iterable[tuple[tuple[str, str], str, bool]],
        now: int,
        publish: Callable[[str, bytes], None],
    ) -> None:
        for node, reason, is_unanswered in due:
            topic, name = rebirth_topic(node), "/".join(node)
            publish(topic, rebirth_command(now))
            for source in self._sources:
                source.asked(node)
            self._context.note(
                f"told Sparkplug node {name} to publish its birth messages again (rebirth): "
                f"{reason}"
            )
            if is_unanswered:
                self._context.problem(
                    f"Sparkplug node {name} does not answer the command to publish its birth "
                    f"messages again (rebirth); may this gateway publish on {topic}? If the node "
                    "knows no such command, give its sources the option rebirth = 'never'"
                )
