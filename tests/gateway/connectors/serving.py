"""A connector that serves sources given as text, and what it said and emitted."""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec

from gateway.connectors.connector import Connector, ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.reading import Memory, Reading
from gateway.connectors.testing.source_statements import definitions_of
from streamsql.mapping.mapper import Mapper

PATIENCE = 30.0

Given = ParamSpec("Given")


def in_loop(test: Callable[Given, Coroutine[None, None, None]]) -> Callable[Given, None]:
    """Run a test in an event loop of its own, for a minute at most."""

    @functools.wraps(test)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 60))

    return run


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


@dataclass
class Served:
    """What a connector did.

    Attributes:
        steps: "emit" and "kept" in their order.
        may_keep: While it is not set, nothing is kept: `kept` waits.
        memory: What an earlier one has remembered.
        memories: What it remembered, in order.
    """

    readings: list[Reading] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    may_keep: asyncio.Event = field(default_factory=asyncio.Event)
    memory: Memory | None = None
    memories: list[Memory] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """The values of what was emitted."""
        return [tuple(reading.values.values()) for reading in self.readings]

    def emit(self, readings: Sequence[Reading]) -> None:
        """Take readings."""
        self.steps.append("emit")
        self.readings += readings

    async def kept(self) -> None:
        """Wait until the test lets it be kept."""
        await self.may_keep.wait()
        self.steps.append("kept")

    def remember(self, memory: Memory) -> None:
        """Take what is to be remembered."""
        self.steps.append("remember")
        self.memories.append(memory)

    async def until_rows(self, number: int) -> list[tuple[object, ...]]:
        """Wait for so many rows; return all of them."""
        await until(lambda: len(self.readings) >= number)
        return self.rows

    async def until_problem(self, part: str) -> None:
        """Wait for a problem that says something."""
        await until(lambda: any(part in text for text in self.problems))


async def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for a condition that has no event of its own.

    Raises:
        TimeoutError: It never held.
    """
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def serving(
    connector: Connector,
    endpoint: Mapping[str, object],
    text: str,
    *,
    keeping: bool = True,
    served: Served | None = None,
) -> AsyncIterator[Served]:
    """Run a connector over the sources that a text creates, until the block ends."""
    served = served or Served()
    if keeping:
        served.may_keep.set()
    sources = [
        DeclaredSource(
            definition, Mapper(definition), now, {"gateway": "gw"}, served.problems.append
        )
        for definition in definitions_of(text)
    ]
    context = ConnectorContext(
        gateway="gw",
        endpoint_name="home",
        endpoint=endpoint,
        sources=sources,
        clock=now,
        emit=served.emit,
        kept=served.kept,
        problem=served.problems.append,
        note=served.notes.append,
        remember=served.remember,
        memory=served.memory,
    )
    served.task = asyncio.create_task(connector.run(context))
    try:
        yield served
    finally:
        served.task.cancel()
        began = time.monotonic()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await served.task
        assert time.monotonic() - began < 1.5, "a connector stops within a second"
