"""Readings, time and processor time of a connector and of a bare library."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.connectors.connector import Connector, ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.reading import Reading
from host.clocks import wall_clock
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.mapping.mapper import Mapper
from streamsql.syntax import CreateSource, parse_script


@dataclass(frozen=True, slots=True)
class Pair:
    """A connector beside the bare library that reads the same device.

    Attributes:
        connector, bare: Read for about so many seconds; return what that took. The peer is another
            process, so that its work is not counted.
    """

    connector: Callable[[float], Coroutine[None, None, "Cost"]]
    bare: Callable[[float], Coroutine[None, None, "Cost"]]


@dataclass(frozen=True, slots=True)
class Cost:
    """Time that readings took in this process."""

    readings: int
    seconds: float
    processor_seconds: float

    def figures(self) -> dict[str, float]:
        """Return readings a second and microseconds of processor time a reading."""
        return {
            "readings/s": self.readings / self.seconds,
            "µs/reading": 1e6 * self.processor_seconds / max(self.readings, 1),
        }


class Stopwatch:
    """Counts what happens between its making and `cost`."""

    def __init__(self) -> None:
        self._began, self._processor = time.perf_counter(), time.process_time()

    def cost(self, readings: int) -> Cost:
        """Return what it took so far."""
        seconds = time.perf_counter() - self._began
        return Cost(readings, seconds, time.process_time() - self._processor)


@dataclass
class Sink:
    """Where the readings of a connector go: they are counted."""

    readings: int = 0
    problems: list[str] = field(default_factory=list)
    first: asyncio.Event = field(default_factory=asyncio.Event)

    def emit(self, readings: Sequence[Reading]) -> None:
        """Count readings."""
        self.readings += len(readings)
        self.first.set()


@contextlib.asynccontextmanager
async def running(
    connector: Connector, endpoint: Mapping[str, object], text: str
) -> AsyncIterator[Sink]:
    """Run a connector over the sources of CREATE SOURCE statements."""
    sink = Sink()
    context = ConnectorContext(
        gateway="gw",
        endpoint_name="here",
        endpoint=endpoint,
        sources=[
            DeclaredSource(each, Mapper(each), wall_clock, {"gateway": "gw"}, sink.problems.append)
            for each in _definitions(text)
        ],
        clock=wall_clock,
        emit=sink.emit,
        problem=sink.problems.append,
    )
    task = asyncio.create_task(connector.run(context))
    try:
        yield sink
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def measure(
    connector: Connector, endpoint: Mapping[str, object], text: str, seconds: float
) -> Cost:
    """Run a connector for some seconds from its first reading on; return what they took.

    Raises:
        RuntimeError: Something was wrong with a reading.
    """
    async with running(connector, endpoint, text) as sink:
        async with asyncio.timeout(60):
            await sink.first.wait()
        before, watch = sink.readings, Stopwatch()
        await asyncio.sleep(seconds)
        cost = watch.cost(sink.readings - before)
    if sink.problems:
        raise RuntimeError(sink.problems[0])
    return cost


def _definitions(text: str) -> list[SourceDefinition]:
    catalog = Catalog(())
    for statement in parse_script(text):
        if isinstance(statement, CreateSource):
            catalog.define(define(statement, catalog))
    return [definition for definition in catalog.sources if definition.mapping is not None]
