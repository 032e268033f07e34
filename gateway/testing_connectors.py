"""For tests and benchmarks: a connector that hears what it is told, and declared sources for it."""

import asyncio
from typing import Any, ClassVar

import msgspec

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.options import Seconds
from gateway.connectors.reading import Reading
from gateway.connectors.registry import BuiltIn
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.mapping.source_mapping import ColumnMapping, SourceMapping


class TellingEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Any password will do."""

    url: str = "telling://here"
    password: str = ""


class TellingOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which payloads a source wants: those told on its topic."""

    topic: str
    interval: Seconds = Seconds(1)


class TellingConnector:
    """Hears the payloads, or emits the readings, that a test tells it.

    Attributes:
        lives: All instances that ever ran, in order.
        running: The instances that run, by endpoint.
        started: Endpoints of all that were ever started, in order.
        refusing: What `run` raises, by endpoint.
    """

    kind = "telling"
    endpoint_options: type[msgspec.Struct] = TellingEndpoint
    source_options: type[msgspec.Struct] = TellingOptions
    running: ClassVar[dict[str, "TellingConnector"]] = {}
    lives: ClassVar[list["TellingConnector"]] = []
    started: ClassVar[list[str]] = []
    refusing: ClassVar[dict[str, Exception]] = {}

    def __init__(self) -> None:
        self.context: ConnectorContext | None = None
        self._failure: asyncio.Future[None] | None = None

    async def run(self, context: ConnectorContext) -> None:
        """Be there until cancelled, or fail as told."""
        self.context = context
        self._failure = asyncio.get_running_loop().create_future()
        self.lives.append(self)
        self.started.append(context.endpoint_name)
        if context.endpoint_name in self.refusing:
            raise self.refusing[context.endpoint_name]
        self.running[context.endpoint_name] = self
        try:
            await self._failure
        finally:
            if self.running.get(context.endpoint_name) is self:
                del self.running[context.endpoint_name]

    def fail(self, error: Exception) -> None:
        """Let `run` raise."""
        assert self._failure is not None  # noqa: S101
        self._failure.set_exception(error)

    def emit(self, *readings: Reading) -> None:
        """Emit readings."""
        assert self.context is not None  # noqa: S101
        self.context.emit(readings)

    def tell(self, topic: str, payload: bytes, **facts: str) -> None:
        """Hand a payload to the sources of a topic."""
        assert self.context is not None  # noqa: S101
        for source in self.context.sources:
            if source.options_as(TellingOptions).topic == topic:
                self.context.emit(source.read(payload, facts, topic=topic))

    @classmethod
    def forget(cls) -> None:
        """Begin as if none had ever run."""
        cls.running.clear()
        cls.lives.clear()
        cls.started.clear()
        cls.refusing.clear()


TELLING = BuiltIn(__name__, "TellingConnector")


def declared(  # noqa: PLR0913  (what a definition consists of)
    name: str = "climate",
    *,
    columns: tuple[tuple[str, DataType], ...] = (
        ("device", DataType.TEXT),
        ("celsius", DataType.DOUBLE),
    ),
    version: int = 1,
    endpoint: str = "home",
    topic: str = "air",
    key: tuple[int, ...] = (0,),
    units: tuple[str, ...] = (),
    **mapping: Any,
) -> SourceDefinition:
    """Return a source declared for the telling connector, fed by JSON fields of its columns."""
    schema = Schema.of(*columns)
    given = units or ("",) * len(columns)
    return SourceDefinition(
        name,
        SourceKind.STREAM,
        schema,
        key=key,
        version=version,
        mapping=SourceMapping(
            **{
                "connector": "telling",
                "endpoint": endpoint,
                "columns": tuple(ColumnMapping(unit=unit) for unit in given),
                "options": (("topic", topic),),
                **mapping,
            }
        ),
    )
