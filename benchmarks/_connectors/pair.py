"""Readings, time and processor time of a connector and of a bare library."""

import asyncio
import contextlib
import operator
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice

from gateway.connectors.connector import Connector, ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.reading import Reading
from host.clocks import wall_clock
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.mapping.mapper import Mapper
from streamsql.syntax import CreateSource, parse_script

Row = tuple[object, ...]
SAMPLE = 1_000
"""Rows that are compared, the first ones of each."""


class Values(StrEnum):
    """Change of the values of a device's rows."""

    REPEAT = "the same rows come again and again, or both read from the beginning"
    RISE = "numbers rise, in rows with the same texts"


@dataclass(frozen=True, slots=True)
class Pair:
    """A connector beside the bare library that reads the same device.

    Attributes:
        connector, bare: Read for about so many seconds; return what that took. The peer is another
            process, so that its work is not counted.
        values: How the rows of both are compared.
        limited_by_peer: Whether the device gives fewer readings than either can take: its rate says
            nothing of them then, CPU a reading does.
    """

    connector: Callable[[float], Coroutine[None, None, "Cost"]]
    bare: Callable[[float], Coroutine[None, None, "Cost"]]
    values: Values = Values.REPEAT
    limited_by_peer: bool = False

    def difference(self, connector: "Cost", bare: "Cost") -> str:
        """Return how the rows of a connector differ from those of the library; empty: not."""
        for name, cost in (("connector", connector), ("bare library", bare)):
            if not cost.rows:
                return f"the {name} has no rows"
            if self.values == Values.RISE and (row := _fallen(cost.rows)) is not None:
                return f"a value of the {name} falls: {row!r:.200}"
        if self.values == Values.RISE:
            return _unlike(connector.rows[0], bare.rows[0])
        for one, other, name in ((connector, bare, "connector"), (bare, connector, "bare library")):
            # Who has read little may lack rows, but has none of its own.
            alone = set(one.rows) - set(other.rows)
            if alone and (len(other.rows) == SAMPLE or len(one.rows) <= len(other.rows)):
                return f"only the {name} has {min(map(repr, alone)):.200}"
        return ""


def _fallen(rows: Sequence[Row]) -> Row | None:
    """Return a row with a number that is less than in the row before of the same texts."""
    last: dict[Row, tuple[float, ...]] = {}
    for row in rows:
        key = tuple(value for value in row if not isinstance(value, int | float))
        numbers = tuple(value for value in row if isinstance(value, int | float))
        before = last.get(key, numbers)
        if len(before) != len(numbers) or any(map(operator.lt, numbers, before)):
            return row
        last[key] = numbers
    return None


def _unlike(one: Row, other: Row) -> str:
    return "" if len(one) == len(other) else f"a row is {one!r:.100}, beside {other!r:.100}"


@dataclass(frozen=True, slots=True)
class Cost:
    """Time that readings took in this process.

    Attributes:
        rows: The first ones, with the values of the columns in order.
    """

    readings: int
    seconds: float
    processor_seconds: float
    rows: tuple[Row, ...] = ()

    def figures(self) -> dict[str, float]:
        """Return readings a second and microseconds of processor time a reading."""
        return {
            "readings/s": self.readings / self.seconds,
            "µs/reading": 1e6 * self.processor_seconds / max(self.readings, 1),
        }


class Stopwatch:
    """Counts what happens between its making and `cost`.

    Attributes:
        rows: The first rows, to be compared.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._began, self._processor = time.perf_counter(), time.process_time()

    def keep(self, rows: Iterable[Row]) -> None:
        """Keep rows, as long as there are not enough."""
        if len(self.rows) < SAMPLE:
            self.rows += islice(rows, SAMPLE - len(self.rows))

    def cost(self, readings: int) -> Cost:
        """Return what it took so far."""
        seconds = time.perf_counter() - self._began
        return Cost(readings, seconds, time.process_time() - self._processor, tuple(self.rows))


@dataclass
class Sink:
    """Where the readings of a connector go: they are counted, and the first ones kept."""

    readings: int = 0
    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    first: asyncio.Event = field(default_factory=asyncio.Event)

    def emit(self, readings: Sequence[Reading]) -> None:
        """Count readings."""
        self.readings += len(readings)
        if len(self.rows) < SAMPLE:
            kept = readings[: SAMPLE - len(self.rows)]
            self.rows += [tuple(reading.values.values()) for reading in kept]
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
        cost = replace(cost, rows=tuple(sink.rows))
    if sink.problems:
        raise RuntimeError(sink.problems[0])
    return cost


def _definitions(text: str) -> list[SourceDefinition]:
    catalog = Catalog(())
    for statement in parse_script(text):
        if isinstance(statement, CreateSource):
            catalog.define(define(statement, catalog))
    return [definition for definition in catalog.sources if definition.mapping is not None]
