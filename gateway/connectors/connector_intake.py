"""Intake of an endpoint: what its connector emits is ingested until another one takes its place."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from gateway.connectors.reading import Memory, Reading
from streamsql.wire.site_messages import SensorDescription


class Port(Protocol):
    """Receiver of the readings and reports of one endpoint's connector."""

    @property
    def memory(self) -> Memory | None:
        """Last saved memory."""

    def emit(self, readings: Sequence[Reading]) -> None:
        """Ingest readings."""

    def failed(self, message: str) -> None:
        """Count a fault."""

    def noted(self, text: str) -> None:
        """Keep what the connector has come to."""

    def remember(self, memory: Memory) -> None:
        """Keep what is to go with the next readings."""

    def describe(self, sensors: Sequence[SensorDescription], rooms: Sequence[str]) -> None:
        """Keep which sensors stand behind the endpoint."""


class ConnectorIntake:
    """Intake of one connector; refuses what comes after another one has taken its place.

    A connector that is cancelled runs for some turns of the loop until it notices. What it emits
    then was made by former definitions. If it were dropped silently, the connector would
    acknowledge to its device what nobody has. So a refusal raises the cancellation at once.

    Args:
        port: Of the endpoint.
        kept: Returns when all that was ingested is on disk.
        is_current: Whether the connector is still the one that serves the endpoint.
    """

    def __init__(
        self, port: Port, kept: Callable[[], Awaitable[None]], is_current: Callable[[], bool]
    ) -> None:
        self._port = port
        self._kept = kept
        self._is_current = is_current
        self._has_refused = False

    def emit(self, readings: Sequence[Reading]) -> None:
        """Ingest readings.

        Raises:
            asyncio.CancelledError: Another connector has taken this one's place.
        """
        self._check()
        self._port.emit(readings)

    def remember(self, memory: Memory) -> None:
        """Keep what is to go with the next readings.

        Raises:
            asyncio.CancelledError: Another connector has taken this one's place.
        """
        self._check()
        self._port.remember(memory)

    async def kept(self) -> None:
        """Return when all that was emitted is on disk.

        Raises:
            asyncio.CancelledError: Readings were refused.
        """
        # Without a refusal all was ingested: who is stopped may still wait to acknowledge it.
        if self._has_refused:
            raise asyncio.CancelledError
        await self._kept()

    def _check(self) -> None:
        if not self._is_current():
            self._has_refused = True
            raise asyncio.CancelledError("another connector serves the endpoint now")
