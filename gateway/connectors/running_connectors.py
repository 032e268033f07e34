"""Runs connectors: one per endpoint, with all its sources."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.connectors.connector import (
    Connector,
    ConnectorContext,
    PastSimulation,
    Simulation,
)
from gateway.connectors.connector_intake import ConnectorIntake, Port
from gateway.connectors.declared_source import DeclaredSource, RowMapper
from gateway.connectors.endpoint_secrets import Secrets
from gateway.connectors.handed_over import as_handed_over
from gateway.connectors.options import CONNECTOR, CORRECT_TIMES, convert_options, own_options
from gateway.connectors.reading import PastPack, Reading
from gateway.connectors.registry import ConnectorMissingError, ConnectorRegistry, MakeConnector
from host.clocks import Clock
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Value
from streamsql.errors import DeploymentError, FederationError
from streamsql.wire.site_messages import DeclaredState

log = logging.getLogger(__name__)

RESTART_SECONDS = 1.0
RESTART_MOST_SECONDS = 60.0
SETTLE_SECONDS = 0.2
"""How long after a change of its sources a connector is started: others may follow at once."""
STOP_SECONDS = 1.0
"""Within which a cancelled connector has to end."""
LEFT_SECONDS = 5.0
"""For which one that has not is waited for: on a busy machine it may still be closing sockets."""
PROBLEM_SECONDS = 90.0
"""How long a fault counts as present if nothing comes after it: longer than the longest pause."""
MAX_REASON = 500
NOTHING_SIMULATED = "nothing is simulated here"
SHOWN = 200
"""Characters of a reason in the site's state, which tells of up to 1,000 sources."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """Parts that all connectors of a gateway share.

    Attributes:
        gateway: Its id.
        clock: The gateway's time.
        registry: The connectors that may run.
        open_port: Returns the port of an endpoint of a connector's kind that feeds some sources.
        close_port: Called with endpoint and kind when nothing feeds through it any more.
        kept: Returns when all that was emitted is on disk.
        make_mapper: Compiles the mapping of a definition; raises ValueError or FederationError.
        correction: Returns the microseconds by which `clock` goes before this machine's clock.
    """

    gateway: str
    clock: Clock
    registry: ConnectorRegistry
    open_port: Callable[[str, str, tuple[str, ...]], Port]
    close_port: Callable[[str, str], None]
    kept: Callable[[], Awaitable[None]]
    make_mapper: Callable[[SourceDefinition], RowMapper]
    correction: Callable[[], int] = lambda: 0

    def machine_clock(self) -> int:
        """Return the time of this machine, which intake will correct."""
        return self.clock() - self.correction()


class EndpointRunner:
    """The connector of one endpoint: started, restarted and stopped.

    Attributes:
        problem: Of the endpoint: why nothing comes from it now, or empty.
        problems: By source: why it is left out, or empty.
        sources: Those that are served, by name; of the connector that was started last.
    """

    def __init__(self, name: str, settings: Mapping[str, Any], runtime: Runtime) -> None:
        self.name = name
        self.kind = str(settings[CONNECTOR])
        self.problem = ""
        self.problems: dict[str, str] = {}
        self.sources: dict[str, DeclaredSource] = {}
        self._options = own_options(settings)
        self._clock = runtime.machine_clock if settings.get(CORRECT_TIMES) else runtime.clock
        self._secrets = Secrets(self._options)
        self._runtime = runtime
        self._definitions: tuple[SourceDefinition, ...] = ()
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._connector: object = None
        self._connector_life = 0
        self._life = 0
        self._failed_at = 0.0

    @property
    def definitions(self) -> tuple[SourceDefinition, ...]:
        """The sources that it is to serve."""
        return self._definitions

    def serve(self, definitions: Sequence[SourceDefinition]) -> None:
        """Serve these sources from now on, and no others.

        What the connector emits from here on for the former ones is refused: it was made by their
        definitions. It is cancelled, and may emit before it notices.
        """
        if tuple(definitions) == self._definitions:
            return
        self._definitions = tuple(definitions)
        self._life += 1
        self._cancel()
        names = {definition.name for definition in definitions}
        self.sources = {name: found for name, found in self.sources.items() if name in names}
        self.problems, self.problem = {}, ""
        if definitions:
            self._task = asyncio.create_task(self._run(self._life), name=self.name)
        else:
            self._runtime.close_port(self.name, self.kind)

    async def stop(self) -> bool:
        """Stop the connector; return whether it has ended within the second that it may take."""
        self._life += 1
        self._cancel()
        return await self._until_ended()

    def simulate(self, action: str, arguments: dict[str, Value]) -> str | None:
        """Let simulated devices do something; return what was done, or None: none are simulated.

        Raises:
            ValueError: The action is unknown, its target is not behind this endpoint, or the
                devices are about to start again.
        """
        connector = self._connector if self._task is not None else None
        if not isinstance(connector, Simulation):
            return None
        if self._connector_life != self._life:
            raise ValueError(f"endpoint {self.name} is starting again: repeat the command")
        return connector.command(action, arguments)

    def past(self, hour: int, every: int) -> Iterator[PastPack] | None:
        """Return what simulated devices would have read in an hour, or None: none are simulated.

        Raises:
            ValueError: They are about to start again.
        """
        connector = self._connector if self._task is not None else None
        if not isinstance(connector, PastSimulation):
            return None
        if self._connector_life != self._life:
            raise ValueError(f"endpoint {self.name} is starting again: repeat the command")
        return connector.past(hour, every)

    def problem_of(self, source: str) -> str:
        """Return why rows of a source do not come, or empty."""
        if source in self.problems:
            return self.problems[source]
        if self.problem and time.monotonic() - self._failed_at >= PROBLEM_SECONDS:
            self.problem = ""
        named = f"endpoint {self.name}"
        if not self.problem or self.problem.startswith((f"{named}: ", f"{named} ")):
            return self.problem
        return f"{named}: {self.problem}"

    def _cancel(self) -> None:
        stopping, self._task = self._task, None
        if stopping is not None:
            stopping.cancel()
            self._ending.add(stopping)
            stopping.add_done_callback(self._ending.discard)

    async def _run(self, life: int) -> None:
        """Run the connector; after a fault make another one, after pauses that double."""
        await self._until_ended()
        await asyncio.sleep(SETTLE_SECONDS)
        pause = RESTART_SECONDS
        while True:
            began = time.monotonic()
            try:
                await self._live(life)
            except Exception as error:  # noqa: BLE001 - a connector may raise anything
                if life != self._life:
                    return  # its fault came before its cancellation, which a TaskGroup then drops
                self._fail(self._port(), self._reason(error))
                if isinstance(error, ConnectorMissingError):
                    self._failed_at = float("inf")  # until the gateway is restarted
                    return
            else:
                return
            pause = RESTART_SECONDS if time.monotonic() - began > RESTART_MOST_SECONDS else pause
            await asyncio.sleep(pause)
            pause = min(pause * 2, RESTART_MOST_SECONDS)

    async def _live(self, life: int) -> None:
        """Make a connector and run it to its end.

        Raises:
            ConnectorMissingError: There is no such connector here.
            DeploymentError: The endpoint's settings are wrong.
        """
        runtime = self._runtime
        # Libraries may take a second to load.
        make = await asyncio.to_thread(runtime.registry.factory, self.kind)
        connector = make()
        convert_options(self._options, connector.endpoint_options, f"endpoint {self.name}")
        port = self._port()
        served = self._prepared(make, port)
        if not served:
            await asyncio.Event().wait()  # for other definitions
        intake = ConnectorIntake(port, runtime.kept, lambda: life == self._life)

        def emit(readings: Sequence[Reading]) -> None:
            intake.emit(readings)
            if readings:
                self.problem = ""

        def problem(text: str) -> None:
            if life == self._life:  # else it is none of the connector that serves now
                self._fail(port, text)

        context = ConnectorContext(
            gateway=runtime.gateway,
            endpoint_name=self.name,
            endpoint=self._options,
            sources=served,
            clock=self._clock,
            emit=emit,
            kept=intake.kept,
            problem=problem,
            note=lambda text: port.noted(self._secrets.hidden(text)),
            remember=intake.remember,
            memory=port.memory,
            describe=port.describe,
        )
        self._connector, self._connector_life = connector, life
        await _run_alone(connector, context)
        port.noted("its connector has ended")

    def _prepared(self, make: MakeConnector, port: Port) -> tuple[DeclaredSource, ...]:
        """Return the sources whose options are right; the others have a problem from then on."""
        connector = make()
        options = connector.source_options
        served: dict[str, DeclaredSource] = {}
        for definition in self._definitions:
            try:
                source = self._source(as_handed_over(definition, connector), port)
                source.options_as(options)
            except (FederationError, ValueError) as error:
                text = _words(error) if isinstance(error, FederationError) else str(error)
                self.problems[definition.name] = self._secrets.hidden(text)[:MAX_REASON]
                port.failed(self.problems[definition.name])
            else:
                served[definition.name] = source
        self.sources = served
        return tuple(served.values())

    def _source(self, definition: SourceDefinition, port: Port) -> DeclaredSource:
        runtime = self._runtime
        known = self.sources.get(definition.name)
        source = DeclaredSource(
            definition,
            runtime.make_mapper(definition),
            self._clock,
            {"gateway": runtime.gateway, "endpoint": self.name},
            lambda text: port.failed(f"source {definition.name}: {text}"),
            self._secrets.hidden,
        )
        if known is not None:
            source.go_on(known)
        return source

    def _port(self) -> Port:
        streams = tuple(definition.name for definition in self._definitions)
        return self._runtime.open_port(self.name, self.kind, streams)

    def _reason(self, error: Exception) -> str:
        if isinstance(error, DeploymentError):
            return _words(error)
        log.debug("connector of endpoint %s", self.name, exc_info=error)
        return f"{type(error).__name__}: {error}" if str(error) else repr(error)

    def _fail(self, port: Port, text: str) -> None:
        self.problem = self._secrets.hidden(text)[:MAX_REASON]
        self._failed_at = time.monotonic()
        port.failed(self.problem)

    async def _until_ended(self) -> bool:
        """Wait for cancelled connectors; return whether they have ended. Others are left alone."""
        if not self._ending:
            return True
        # All of them: the last one may have been cancelled while it waited for the one before.
        _done, pending = await asyncio.wait(set(self._ending), timeout=STOP_SECONDS)
        if pending:
            _done, lasting = await asyncio.wait(pending, timeout=LEFT_SECONDS - STOP_SECONDS)
            self._ending -= lasting
            log.warning(
                "the connector of endpoint %s (%s) does not stop: it has swallowed cancellation",
                self.name,
                self.kind,
            )
        return not pending


class RunningConnectors:
    """The connectors of all endpoints of a gateway."""

    def __init__(self, endpoints: Mapping[str, Mapping[str, Any]], runtime: Runtime) -> None:
        self._runners = {
            name: EndpointRunner(name, settings, runtime) for name, settings in endpoints.items()
        }

    def serve(self, by_endpoint: Mapping[str, Sequence[SourceDefinition]]) -> None:
        """Serve these sources through their endpoints, and no others."""
        for name, runner in self._runners.items():
            runner.serve(by_endpoint.get(name, ()))

    def simulate(self, arguments: Mapping[str, Value]) -> dict[str, Value]:
        """Pass a command to the simulated devices; answer whether one could follow it."""
        rest = dict(arguments)
        action = str(rest.pop("action", ""))
        refusal = NOTHING_SIMULATED
        for runner in self._runners.values():
            try:
                done = runner.simulate(action, rest)
            except ValueError as error:
                refusal = str(error)
            else:
                if done is not None:
                    return {"done": True, "message": done}
        return {"done": False, "message": refusal}

    def past(self, hour: int, every: int) -> Iterator[PastPack]:
        """Yield what simulated devices would have read in an hour; see `PastSimulation`."""
        found = [runner.past(hour, every) for runner in self._runners.values()]
        simulated = [packs for packs in found if packs is not None]
        if not simulated:
            raise ValueError(NOTHING_SIMULATED)
        for packs in simulated:
            yield from packs

    async def stop(self) -> None:
        """Stop all connectors."""
        await asyncio.gather(*(runner.stop() for runner in self._runners.values()))

    def state_of(self, definition: SourceDefinition, endpoint: str) -> DeclaredState:
        """Return how a source is doing that an endpoint serves."""
        runner = self._runners[endpoint]
        source = runner.sources.get(definition.name)
        return DeclaredState(
            definition.name,
            definition.version,
            runner.problem_of(definition.name)[:SHOWN],
            endpoint=endpoint,
            rows=0 if source is None else source.rows,
            bad=0 if source is None else source.bad,
            last_bad="" if source is None else source.last_bad[:SHOWN],
        )


async def _run_alone(connector: Connector, context: ConnectorContext) -> None:
    """Run a connector in a task of its own.

    A TaskGroup of Python 3.11 that has failed leaves its task as one that is being cancelled
    (`Task.cancelling`): the next instance in the same task would take that for its own end.

    Raises:
        ConnectionError: It was cancelled by itself, and by nobody else.
    """
    alone = asyncio.create_task(connector.run(context), name=f"{context.endpoint_name} connector")
    try:
        await alone
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if alone.cancelled() and task is not None and not task.cancelling():
            raise ConnectionError("the connector has cancelled itself") from None
        raise


def _words(error: FederationError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
