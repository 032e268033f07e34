"""A source tried before it is created: its connector runs for some seconds, beside the engine.

What comes is captured and reported, never emitted. One trial runs at a time.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from typing_extensions import override

from gateway.connectors.browsing import BrowseContext, Browser
from gateway.connectors.connector import Connector, ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.endpoint_secrets import Secrets
from gateway.connectors.handed_over import as_handed_over
from gateway.connectors.mapping_thread import mapping_thread
from gateway.connectors.options import CONNECTOR, convert_options, own_options
from gateway.connectors.reading import Reading
from gateway.connectors.registry import ConnectorRegistry
from gateway.connectors.trial_capture import Capture
from host.clocks import Clock
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Value
from streamsql.errors import DeploymentError, FederationError
from streamsql.mapping.assignment import Assigned, Unserved, assignment
from streamsql.mapping.mapper import Mapper
from streamsql.wire.trial_messages import SourceTrial, TrialReport

log = logging.getLogger(__name__)

REPORT_SECONDS = 0.4
STOP_SECONDS = 1.0
MAX_PROBLEM = 1_000

Report = Callable[[TrialReport], None]


@dataclass(frozen=True, slots=True)
class TrialSite:
    """Gateway as trials need it.

    Attributes:
        gateway: Its id.
        endpoints: Of its settings.
        registry: The connectors that may run.
        clock: The gateway's time.
    """

    gateway: str
    endpoints: Mapping[str, Mapping[str, Any]]
    registry: ConnectorRegistry
    clock: Clock


class SourceTrials:
    """Runs one trial at a time.

    Args:
        site: Where.
        report: Called with what a trial has found, some times a second.
    """

    def __init__(self, site: TrialSite, report: Report) -> None:
        self._site = site
        self._report = report
        self._task: asyncio.Task[None] | None = None
        self._id = ""

    def start(self, trial_id: str, trial: SourceTrial) -> None:
        """Run a trial; what is wrong with it is reported."""
        if self._task is not None and not self._task.done():
            self._report(
                TrialReport(
                    trial_id,
                    0,
                    problem=f"gateway {self._site.gateway} tries another source at the moment",
                    hint="wait until that has ended, at most 30 s, or stop it",
                    done=True,
                )
            )
            return
        self._id = trial_id
        self._task = asyncio.create_task(_Trial(self._site, trial_id, trial, self._report).run())

    def stop(self, trial_id: str) -> None:
        """End a trial early, if it runs."""
        if self._task is not None and trial_id == self._id:
            self._task.cancel()

    async def close(self) -> None:
        """End whatever runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=2 * STOP_SECONDS)


class _CapturedSource(DeclaredSource):
    """A source whose payloads are captured; it gives no readings."""

    capture: Capture

    @override
    def read(
        self, payload: bytes, levels: Mapping[str, str] | None = None, /, **facts: Value
    ) -> list[Reading]:
        if self.capture.wants(str(facts.get("topic", ""))):
            known, arrival = self._known(levels, facts), self._clock()
            mapped = self._mapper.map(payload, known, arrival)
            self.capture.add(self.definition, payload, known, arrival, mapped)
        return []

    @override
    async def read_aside(
        self, payload: bytes, levels: Mapping[str, str] | None = None, /, **facts: Value
    ) -> list[Reading]:
        if self.capture.wants(str(facts.get("topic", ""))):
            known, arrival = self._known(levels, facts), self._clock()
            mapping = partial(self._mapper.map, payload, known, arrival)
            mapped = await mapping_thread().run(mapping)
            self.capture.add(self.definition, payload, known, arrival, mapped)
        return []

    @override
    def read_record(
        self,
        values: Mapping[str, object],
        levels: Mapping[str, str] | None = None,
        device: str = "",
        /,
        **facts: Value,
    ) -> list[Reading]:
        if self.capture.wants(str(facts.get("topic", ""))):
            known, arrival = self._known(levels, facts), self._clock()
            mapped = self._mapper.map_record(values, known, arrival)
            self.capture.add(self.definition, values, known, arrival, mapped)
        return []

    @override
    def read_decoded(
        self, payload: bytes, values: Mapping[str, object], /, **facts: Value
    ) -> list[Reading]:
        known, arrival = self._known(None, facts), self._clock()
        mapped = self._mapper.map_record(values, known, arrival)
        # What a trial of announcements leaves out must not fill it.
        is_wanted = not (mapped.ignored and self.capture.is_whole)
        if is_wanted and self.capture.wants(str(facts.get("topic", ""))):
            self.capture.add(self.definition, payload, known, arrival, mapped)
        return []


class _Trial:
    """One trial."""

    def __init__(self, site: TrialSite, trial_id: str, trial: SourceTrial, report: Report) -> None:
        self._site = site
        self._id = trial_id
        self._trial = trial
        self._send = report
        self._capture = Capture(trial)
        self._secrets = Secrets({})
        self._number = 0
        self._notes: list[str] = []
        self._problem, self._hint = "", ""

    async def run(self) -> None:
        """Run the connector until the trial ends; whatever happens is reported."""
        reporting = asyncio.create_task(self._keep_reporting())
        try:
            async with asyncio.timeout(self._trial.seconds):
                await self._live()
        except TimeoutError:
            pass  # the usual end
        except FederationError as error:
            self._fail(error.message, error.hint)
        except Exception as error:
            log.debug("trial %s", self._id, exc_info=error)
            self._fail(f"{type(error).__name__}: {error}" if str(error) else repr(error))
        finally:
            reporting.cancel()
            self._report(done=True)

    async def _live(self) -> None:
        """Run until enough has come.

        Raises:
            DeploymentError: The endpoint or an option is wrong.
        """
        definitions = [order.definition for order in self._trial.orders]
        endpoint = self._endpoint(definitions)
        settings = self._site.endpoints[endpoint]
        self._secrets = Secrets(settings)
        kind = str(settings[CONNECTOR])
        make = await asyncio.to_thread(self._site.registry.factory, kind)
        connector = make()
        options = own_options(settings)
        convert_options(options, connector.endpoint_options, f"endpoint {endpoint}")
        if self._trial.browse:
            await self._until_enough(self._browsing(definitions[0], endpoint, options, connector))
            return
        sources = [self._source(d, endpoint, connector) for d in definitions]
        await self._until_enough(connector.run(self._context(endpoint, options, sources)))

    def _browsing(
        self,
        definition: SourceDefinition,
        endpoint: str,
        options: Mapping[str, Any],
        connector: Connector,
    ) -> Coroutine[Any, Any, None]:
        """Return what lists what the device offers.

        Raises:
            DeploymentError: The connector cannot do that, or an option is wrong.
        """
        if not isinstance(connector, Browser):
            raise DeploymentError(
                f"connector {connector.kind} cannot list what its devices offer",
                hint="write the statement with the addresses of the device's manual, and try that",
            )
        clock = self._site.clock
        context = BrowseContext(
            gateway=self._site.gateway,
            endpoint_name=endpoint,
            endpoint=options,
            offer=lambda record: self._capture.offer(definition, record, clock()),
            options=dict(definition.mapping.options) if definition.mapping else {},
            note=self._note,
        )
        context.options_as(connector.browse_options)
        return connector.browse(context)

    async def _until_enough(self, work: Coroutine[Any, Any, None]) -> None:
        running = asyncio.create_task(work)
        full = asyncio.create_task(self._capture.full.wait())
        try:
            await asyncio.wait({running, full}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
                await asyncio.sleep(0)
        finally:
            full.cancel()
            running.cancel()
            done, _ = await asyncio.wait({running}, timeout=STOP_SECONDS)
            if not done:
                log.warning("the connector of trial %s does not stop", self._id)

    def _context(
        self, endpoint: str, options: Mapping[str, Any], sources: list[DeclaredSource]
    ) -> ConnectorContext:
        return ConnectorContext(
            gateway=self._site.gateway,
            endpoint_name=endpoint,
            endpoint=options,
            sources=sources,
            clock=self._site.clock,
            emit=lambda _readings: None,
            problem=self._fail,
            note=self._note,
            is_trial=True,
        )

    def _endpoint(self, definitions: list[SourceDefinition]) -> str:
        """Return the endpoint of all sources.

        Raises:
            DeploymentError: They are not served here, or by several endpoints.
        """
        me = self._site.gateway
        kinds = {name: str(each[CONNECTOR]) for name, each in self._site.endpoints.items()}
        found: set[str] = set()
        for definition in definitions:
            assert definition.mapping is not None  # noqa: S101  (orders have been checked)
            # Somebody has chosen this gateway, whatever the statement says of others.
            match assignment(
                msgspec.structs.replace(definition.mapping, gateways=(me,)), me, kinds
            ):
                case Assigned(endpoint=endpoint):
                    found.add(endpoint)
                case Unserved(reason=reason):
                    hint = "endpoints are defined in the gateway's settings file"
                    raise DeploymentError(f"gateway {me}: {reason}", hint=hint)
                case None:
                    raise DeploymentError(f"{definition.name} is not for gateway {me}")
        if len(found) != 1:
            raise DeploymentError("the sources of a trial have several endpoints")
        return found.pop()

    def _source(
        self, definition: SourceDefinition, endpoint: str, connector: Connector
    ) -> DeclaredSource:
        """Return a source that captures.

        Raises:
            DeploymentError: Its options are wrong.
        """
        definition = as_handed_over(definition, connector)
        try:
            mapper = Mapper(definition)
        except ValueError as error:
            raise DeploymentError(str(error)) from None
        facts = {"gateway": self._site.gateway, "endpoint": endpoint}
        source = _CapturedSource(
            definition, mapper, self._site.clock, facts, self._fail, self._secrets.hidden
        )
        source.capture = self._capture
        source.options_as(connector.source_options)
        return source

    def _note(self, text: str) -> None:
        self._notes.append(self._secrets.hidden(text)[:MAX_PROBLEM])
        del self._notes[:-10]

    def _fail(self, text: str, hint: str = "") -> None:
        self._problem = self._secrets.hidden(text)[:MAX_PROBLEM]
        self._hint = self._secrets.hidden(hint)[:MAX_PROBLEM]

    async def _keep_reporting(self) -> None:
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            self._report()

    def _report(self, *, done: bool = False) -> None:
        """Report what is new, in messages of bounded size."""
        while True:
            samples, offers = self._capture.taken(), self._capture.offered()
            if not (samples or offers or done or self._notes):
                return
            last = done and not self._capture.waiting
            report = TrialReport(
                self._id,
                self._number,
                samples,
                offers=offers,
                dropped=self._capture.dropped,
                notes=tuple(self._notes),
                problem=self._problem,
                hint=self._hint,
                done=last,
            )
            self._number += 1
            self._notes = []
            self._send(report)
            if last or not self._capture.waiting:
                return
