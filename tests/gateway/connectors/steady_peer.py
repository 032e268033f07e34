"""A peer of the conformance kit that is served by a context manager, at one port."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import ClassVar

from broker.free_ports import free_port
from gateway.connectors.testing.absence import Transport
from gateway.connectors.testing.source_statements import definitions_of
from streamsql.catalog.definitions import SourceDefinition


class SteadyPeer:
    """Enters what it serves when it is started, and leaves it when it is stopped.

    Attributes:
        statement: Creates the source to read.
    """

    statement: str

    def __init__(self) -> None:
        self.port = free_port()
        self._running: contextlib.AsyncExitStack | None = None

    @property
    def endpoint(self) -> Mapping[str, object]:
        """Settings of the endpoint."""
        raise NotImplementedError

    @property
    def sources(self) -> Sequence[SourceDefinition]:
        return definitions_of(self.statement)

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        """Begin to serve; what is entered into the stack ends with `stop`."""
        raise NotImplementedError

    async def start(self) -> None:
        if self._running is None:
            self._running = contextlib.AsyncExitStack()
            await self.serve(self._running)

    async def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.aclose()


class PortPeer(SteadyPeer):
    """Serves at its port on loopback."""

    transport: ClassVar[Transport] = "tcp"

    @property
    def address(self) -> tuple[Transport, int]:
        return (self.transport, self.port)
