"""Runs a connector as a gateway does, and records what it says and emits."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from typing_extensions import override

from gateway.connectors.connector import Connector
from gateway.connectors.reading import Memory, Reading
from gateway.connectors.registry import ConnectorRegistry, MakeConnector
from gateway.connectors.running_connectors import EndpointRunner, Runtime
from gateway.connectors.testing.peer import Peer
from host.clocks import wall_clock
from streamsql.mapping.mapper import Mapper
from streamsql.wire.site_messages import SensorDescription

PATIENCE = 30.0
"""Seconds that anything may take on a machine which does much else."""


class Recorder:
    """Takes what a connector emits and reports."""

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self.readings: list[Reading] = []
        self.faults: list[str] = []
        self.notes: list[str] = []

    def emit(self, readings: Sequence[Reading]) -> None:
        """Keep readings."""
        self.readings += readings

    def failed(self, message: str) -> None:
        """Keep a fault."""
        self.faults.append(message)

    def noted(self, text: str) -> None:
        """Keep a note."""
        self.notes.append(text)

    def remember(self, memory: Memory) -> None:
        """Keep what is to be known after a restart."""
        self.memory = memory

    def describe(self, sensors: Sequence[SensorDescription], rooms: Sequence[str]) -> None:
        """Keep nothing: no check asks for it."""


class OneConnector(ConnectorRegistry):
    """Knows the connector on trial."""

    def __init__(self, make: MakeConnector, started: list[float]) -> None:
        super().__init__()
        self._make = make
        self._started = started

    @override
    def factory(self, kind: str) -> MakeConnector:
        def make() -> Connector:
            self._started.append(time.monotonic())
            return self._make()

        return make


class Trial:
    """A connector that serves a peer.

    Attributes:
        make: Makes the connector.
        peer: What it reads.
        recorder: What it emitted and reported.
        started: When connectors were made, in seconds.
        keeping: While it is not set, nothing is kept: the gateway is behind.
    """

    def __init__(self, make: MakeConnector, peer: Peer) -> None:
        self.peer = peer
        self.recorder = Recorder()
        self.started: list[float] = []
        self.keeping = asyncio.Event()
        self.keeping.set()
        self.make = make
        self._runner: EndpointRunner | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the gateway for the endpoint."""
        return {**self.peer.endpoint, "connector": self.make().kind}

    async def begin(self) -> None:
        """Run the connector; the peer has run once, so its settings are known.

        After `end` it is another life of the gateway, which knows what was remembered.
        """
        runtime = Runtime(
            gateway="trial",
            clock=wall_clock,
            registry=OneConnector(self.make, self.started),
            open_port=lambda *_of: self.recorder,
            close_port=lambda *_of: None,
            kept=self._kept,
            make_mapper=Mapper,
        )
        self._runner = EndpointRunner("trial", self.settings, runtime)
        self._runner.serve(tuple(self.peer.sources))

    def change_sources(self, *, version: int) -> None:
        """Serve the peer's sources by definitions of another version from now on."""
        if self._runner is not None:
            replace = msgspec.structs.replace
            self._runner.serve([replace(each, version=version) for each in self.peer.sources])

    async def end(self) -> bool:
        """Stop the connector; return whether it has stopped within a second."""
        runner, self._runner = self._runner, None
        return runner is None or await runner.stop()

    @property
    def problem(self) -> str:
        """Problem that the gateway would report now."""
        runner = self._runner
        if runner is None:
            return ""
        problems = (runner.problem_of(source.name) for source in self.peer.sources)
        return next(filter(None, problems), "")

    def times(self, number: int) -> int:
        """Return how often a reading with that number was emitted."""
        return sum(number in reading.values.values() for reading in self.recorder.readings)

    def has(self, number: int) -> bool:
        """Whether a reading with that number was emitted."""
        return any(number in reading.values.values() for reading in self.recorder.readings)

    async def until(
        self, condition: Callable[[], bool], what: str, seconds: float | None = None
    ) -> None:
        """Wait until something is so.

        Raises:
            AssertionError: It is not in time.
        """
        seconds = PATIENCE if seconds is None else seconds
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {seconds:g} s: {what}; problem: {self.problem or 'none'}; "
                    f"faults: {self.recorder.faults[-3:]}"
                )
            await asyncio.sleep(0.02)

    async def reads(self, number: int, seconds: float | None = None) -> None:
        """Let the peer give a reading until it arrives: whoever subscribes late misses some.

        Raises:
            AssertionError: It does not in time.
        """
        deadline = time.monotonic() + (PATIENCE if seconds is None else seconds)
        while not self.has(number):
            if time.monotonic() > deadline:
                await self.until(lambda: self.has(number), f"reading {number} is emitted", 0.0)
            await self.peer.send(number)
            for _ in range(50):
                if self.has(number):
                    return
                await asyncio.sleep(0.02)

    async def _kept(self) -> None:
        await self.keeping.wait()
