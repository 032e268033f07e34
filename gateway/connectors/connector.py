"""The protocol between a gateway and its connectors.

A connector serves one endpoint (a device, a broker, a database) with all its sources. The gateway
makes it with no arguments and runs it; what it raises is shown, and it is started again after a
pause that doubles. When the set of its sources changes it is cancelled and another one is made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.options import convert_options
from gateway.connectors.reading import Emit, Memory, PastPack, Reading
from host.clocks import Clock
from streamsql.data.types import Value
from streamsql.wire.site_messages import SensorDescription

Options = TypeVar("Options", bound=msgspec.Struct)

EMITTED_AT_ONCE = 1_000
"""Readings of `emit_in_parts`."""


def nobody_listens(_text: str) -> None:
    """Drop a text."""


def nobody_remembers(_memory: Memory) -> None:
    """Forget what is to be remembered."""


def nobody_looks(_sensors: Sequence[SensorDescription], _rooms: Sequence[str]) -> None:
    """Drop a description."""


async def kept_at_once() -> None:
    """Return: where no journal is kept there is nothing to wait for."""


@dataclass(slots=True)
class ConnectorContext:
    """Context in which a connector runs.

    Attributes:
        gateway: Id of the gateway.
        endpoint_name: As the gateway's settings and the sources' `endpoint` name it.
        endpoint: From the gateway's settings: address and secrets, without "connector". Read it
            with `endpoint_as`.
        sources: The sources to serve, at least one; their options were checked.
        clock: The gateway's time; a connector never asks another clock.
        emit: Where readings go: hands over a whole batch and never blocks. Raises CancelledError
            when another connector has taken this one's place: the readings are not ingested.
        kept: Returns when all that was emitted before is on disk and outlives this process. A
            protocol with acknowledgements acknowledges after it. While the gateway is behind it
            returns late, which is how a connector learns to read slower.
        problem: Report a fault of the endpoint in plain words; the connector goes on. Faults of one
            source are reported with `DeclaredSource.problem`. Never put a secret into a text.
        note: Say in plain words what the connector has come to, where that is no fault.
            Raises CancelledError when readings were refused.
        remember: Say, before readings are emitted, what to know after a restart of the gateway
            that knows of them: both are kept, or neither; an empty batch keeps it alone. Raises
            CancelledError as `emit` does.
        memory: What was remembered last, in an earlier life of the gateway too; or None.
        describe: Tell which sensors stand behind the endpoint, and in which rooms: the map and the
            page Gateways show them. A later description replaces it.
        is_trial: Somebody tries a source for some seconds while the endpoint's own connector may
            run: nothing is to be left behind there, and nothing taken from the other one.
    """

    gateway: str
    endpoint_name: str
    endpoint: Mapping[str, object]
    sources: Sequence[DeclaredSource]
    clock: Clock
    emit: Emit
    kept: Callable[[], Awaitable[None]] = kept_at_once
    problem: Callable[[str], None] = nobody_listens
    note: Callable[[str], None] = nobody_listens
    remember: Callable[[Memory], None] = nobody_remembers
    memory: Memory | None = field(default=None)
    describe: Callable[[Sequence[SensorDescription], Sequence[str]], None] = nobody_looks
    is_trial: bool = False

    async def emit_in_parts(self, readings: Sequence[Reading]) -> None:
        """Emit many readings, a thousand at a time; others have their turn between.

        Who is cancelled meanwhile has emitted a part of them.
        """
        for start in range(0, len(readings), EMITTED_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            self.emit(readings[start : start + EMITTED_AT_ONCE])

    def endpoint_as(self, kind: type[Options]) -> Options:
        """Return the endpoint's settings as the connector's struct.

        Raises:
            DeploymentError: One is missing, unknown or wrong; names it, never its value.
        """
        return convert_options(dict(self.endpoint), kind, f"endpoint {self.endpoint_name}")


class Connector(Protocol):
    """Reads the devices behind one endpoint until it is cancelled.

    `run` is called once per instance. It must not swallow cancellation, and ends within a second of
    it. An exception that leaves it is shown as the endpoint's problem, without secrets, and another
    instance is made after a pause that doubles up to a minute; `run` need not do that itself. It
    raises when a connection is lost.

    Attributes:
        kind: The name in `WITH (connector = …)` and in settings.
        endpoint_options: What an endpoint's settings may hold beside "connector"; declared with
            `forbid_unknown_fields=True`.
        source_options: What a source's WITH clause may hold of the connector's own options; all of
            them arrive as text and are converted. Declared with `forbid_unknown_fields=True`.

    A class of which `hands_over_records` is true calls `read_record` of its sources: FROM holds its
    addresses. Without it FROM holds paths in the payloads that it gives to `read`.
    """

    @property
    def kind(self) -> str:
        """See above; a class says `kind = "…"`."""

    @property
    def endpoint_options(self) -> type[msgspec.Struct]:
        """See above; a class says `endpoint_options = …`."""

    @property
    def source_options(self) -> type[msgspec.Struct]:
        """See above; a class says `source_options = …`."""

    async def run(self, context: ConnectorContext) -> None:
        """Emit readings for ever."""


@runtime_checkable
class Simulation(Protocol):
    """A connector whose devices can be told what to do, because they are simulated."""

    def command(self, action: str, arguments: dict[str, Value]) -> str:
        """Do it; return what was done.

        Raises:
            ValueError: The action is unknown or its target is not behind this gateway.
        """


@runtime_checkable
class PastSimulation(Protocol):
    """A connector whose simulated devices know what they would have read."""

    def past(self, hour: int, every: int) -> Iterator[PastPack]:
        """Yield the readings of an hour since 1970, one of a sensor every so many microseconds.

        Raises:
            ValueError: The devices do not run, or cannot say.
        """
