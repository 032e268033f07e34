"""Runs wrappers and takes their readings in."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gateway.connectors.reading import Memory, Reading
from gateway.intake.feeds import Feed, Feeds
from gateway.intake.last_values import LastValues
from gateway.intake.observations import ObservationLane
from gateway.intake.withdrawals import Withdrawals
from gateway.senml import Observed
from gateway.settings import WrapperSettings
from gateway.wrappers.registry import make_wrapper
from gateway.wrappers.wrapper import Simulation, Wrapper, WrapperContext
from host.clocks import Clock
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import Value
from streamsql.errors import DeploymentError
from streamsql.wire.site_messages import WrapperState

log = logging.getLogger(__name__)

RESTART_SECONDS = 1.0
RESTART_MOST_SECONDS = 60.0
MEMORY = "memory"
"""The note on events of a wrapper: its name, and what it wants to know after a restart."""
PROBLEM_SECONDS = 90.0
"""How long a wrapper's last fault counts as present: longer than the longest pause."""


MAX_ERROR = 500
LOG_AT_ONCE = 10.0
LOG_SECONDS = 5.0
"""A wrapper's log lines: so many at once, then one per so many seconds."""


class ConnectorFeed:
    """Stands for an endpoint's connector among the wrappers; others run it."""

    def __init__(self, kind: str, streams: tuple[str, ...]) -> None:
        self.kind = kind
        self.streams = streams

    async def run(self, context: WrapperContext) -> None:
        """Do nothing: `gateway.connectors.running` runs the connector."""


class Device:
    """A wrapper, or the connector of an endpoint, and how it is doing."""

    def __init__(
        self,
        name: str,
        wrapper: Wrapper,
        options: Mapping[str, object],
        correct_times: bool = False,
    ) -> None:
        self.name = name
        self.correct_times = correct_times
        self.wrapper = wrapper
        self.options = options
        self.readings = 0
        self.errors = 0
        self.last_error = ""
        self.note = ""
        self.memory: Memory | None = None
        self._failed_at = float("-inf")
        self._may_log = LOG_AT_ONCE

    def failed(self, message: str) -> None:
        """Count a fault. One that repeats itself is logged once, many others now and then."""
        now = time.monotonic()
        self._may_log = min(self._may_log + (now - self._failed_at) / LOG_SECONDS, LOG_AT_ONCE)
        if message[:MAX_ERROR] != self.last_error and self._may_log >= 1:
            self._may_log -= 1
            log.warning("wrapper %s: %s", self.name, message[:MAX_ERROR])
        self.errors += 1
        self.last_error = message[:MAX_ERROR]
        self._failed_at = now

    def remember(self, memory: Memory) -> None:
        """Keep what is to go with the next readings."""
        self.memory = memory

    def noted(self, text: str) -> None:
        """Keep what the wrapper has come to, and log it."""
        self.note = text[:MAX_ERROR]
        log.info("wrapper %s: %s", self.name, self.note)

    @property
    def problem(self) -> str:
        """What is wrong at present, or empty."""
        recent = time.monotonic() - self._failed_at < PROBLEM_SECONDS
        return f"{self.name}: {self.last_error}" if recent and self.last_error else ""

    def state(self) -> WrapperState:
        """Return the facts that the gateway announces."""
        return WrapperState(
            self.name,
            self.wrapper.kind,
            self.wrapper.streams,
            self.readings,
            self.errors,
            self.last_error,
            self.note,
        )


class _Taken:
    """The events of one source in a batch of readings.

    Attributes:
        events: All of them.
        observed: Device, time and row of those that are no withdrawals.
    """

    __slots__ = ("events", "observed", "schema")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.events: list[SourceEvent] = []
        self.observed: list[Observed] = []


class _Batch:
    """What a batch of readings has become.

    Attributes:
        newest: The last event of each sensor, and its source.
        withdrawals: Finds the rows that matching withdrawals mean.
    """

    __slots__ = ("by_source", "newest", "withdrawals")

    def __init__(self, engine: RecordedSite) -> None:
        self.by_source: dict[str, _Taken] = {}
        self.newest: dict[str, tuple[SourceEvent, SourceDefinition]] = {}
        self.withdrawals = Withdrawals(engine)

    def of(self, definition: SourceDefinition) -> _Taken:
        """Return the events of a source, none at first."""
        taken = self.by_source.get(definition.name)
        if taken is None:
            taken = self.by_source[definition.name] = _Taken(definition.schema)
        return taken


class Devices:
    """All wrappers of a gateway.

    Args:
        gateway: Id of the gateway.
        clock: The gateway's time.
        definitions: The sources produced here, by name.
        engine: Where events go.
        lane: Where observations go.
        last: Where last values go.
        on_readings: Called after something was ingested.
        correction: Returns the microseconds to add to the times of wrappers that ask for it.

    Attributes:
        memories: What wrappers want to know after a restart, by name.
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        gateway: str,
        settings: Sequence[WrapperSettings],
        *,
        clock: Clock,
        definitions: Mapping[str, SourceDefinition],
        engine: RecordedSite,
        lane: ObservationLane,
        last: LastValues,
        on_readings: Callable[[], None],
        correction: Callable[[], int] = lambda: 0,
    ) -> None:
        """Make the wrappers.

        Raises:
            DeploymentError: A kind of wrapper is unknown.
        """
        self.gateway = gateway
        self.clock = clock
        self.definitions = definitions
        self._feeds = Feeds(definitions)
        self.engine = engine
        self.lane = lane
        self.last = last
        self.on_readings = on_readings
        self.correction = correction
        self.memories: dict[str, Memory] = {}
        self.all = [
            Device(name, make_wrapper(wrapper), wrapper.options, wrapper.correct_times)
            for name, wrapper in zip(_names(settings), settings, strict=True)
        ]

    @property
    def wrapped(self) -> list[Device]:
        """The wrappers that `supervise` runs."""
        return [each for each in self.all if not isinstance(each.wrapper, ConnectorFeed)]

    def define(self, definitions: Mapping[str, SourceDefinition]) -> None:
        """Take readings of these sources from now on."""
        self.definitions = definitions
        self._feeds.define(definitions)

    def attach(self, endpoint: str, kind: str, streams: tuple[str, ...]) -> "EndpointPort":
        """Return where an endpoint's connector puts its readings; counts go on if it had one."""
        name = f"{kind}/{endpoint}"
        device = next((each for each in self.all if each.name == name), None)
        if device is None:
            device = Device(name, ConnectorFeed(kind, streams), {})
            self.all.append(device)
        device.wrapper = ConnectorFeed(kind, streams)
        return EndpointPort(self, device)

    def detach(self, endpoint: str, kind: str) -> None:
        """Forget an endpoint that feeds nothing any more."""
        self.all = [device for device in self.all if device.name != f"{kind}/{endpoint}"]

    async def supervise(self, device: Device) -> None:
        """Run a wrapper; after a fault start it again, with pauses that double."""
        pause = RESTART_SECONDS
        while True:
            began = time.monotonic()
            context = WrapperContext(
                gateway=self.gateway,
                clock=self.clock,
                emit=partial(self.emit, device),
                problem=device.failed,
                options=device.options,
                note=device.noted,
                remember=device.remember,
                memory=self.memories.get(device.name),
            )
            try:
                await device.wrapper.run(context)
            except DeploymentError as error:
                device.failed(str(error))
            except Exception as error:
                device.failed(f"{type(error).__name__}: {error}")
                log.debug("wrapper %s", device.name, exc_info=error)
            else:
                return
            pause = RESTART_SECONDS if time.monotonic() - began > RESTART_MOST_SECONDS else pause
            await asyncio.sleep(pause)
            pause = min(pause * 2, RESTART_MOST_SECONDS)

    def emit(self, device: Device, readings: Sequence[Reading]) -> None:
        """Ingest readings of a wrapper; bad ones are counted against it, the others pass.

        All of them are in the journal when this returns.
        """
        now = self.clock()
        correction = self.correction() if device.correct_times else 0
        batch = _Batch(self.engine)
        for reading in readings:
            try:
                fed = self._feeds.fed_by(reading)
                if reading.matching:
                    self._withdraw(reading, fed, batch, now)
                    device.readings += 1
                    continue
                events = [feed.event(reading, now, correction) for feed in fed]
            except ValueError as error:
                device.failed(f"reading of {reading.sensor or reading.source!s:.60}: {error}")
                continue
            device.readings += 1
            sensor = reading.sensor
            for feed, event in zip(fed, events, strict=True):
                if not feed.keeps(event):
                    continue
                taken = batch.of(feed.definition)
                taken.events.append(event)
                if not event.delete:
                    taken.observed.append((sensor or self.gateway, event.ts, event.row))
                    if sensor:
                        batch.newest[sensor] = (event, feed.definition)
        if batch.by_source:
            for sensor, (event, definition) in batch.newest.items():
                self.last.note(sensor, event, definition)
            self._ingest(device, batch.by_source)

    def _withdraw(self, reading: Reading, fed: Sequence[Feed], batch: _Batch, now: int) -> None:
        """Withdraw the rows that a matching withdrawal means; raises as `Withdrawals.resolved`."""
        for feed in fed:
            before = batch.by_source.get(feed.definition.name)
            events = before.events if before is not None else ()
            if found := batch.withdrawals.resolved(reading, feed.definition, events):
                batch.of(feed.definition).events += [feed.event(each, now) for each in found]

    def _ingest(self, device: Device, taken: Mapping[str, _Taken]) -> None:
        for name, batch in taken.items():
            self.lane.add(name, batch.observed, batch.schema)
        note = None
        if device.memory is not None:
            self.memories[device.name] = device.memory
            note = (MEMORY, (device.name, device.memory))
            device.memory = None
        self.engine.take_in({name: batch.events for name, batch in taken.items()}, note)
        self.on_readings()

    def simulate(self, arguments: Mapping[str, Value]) -> dict[str, Value]:
        """Pass a command to the simulated devices; answer whether one could follow it."""
        rest = dict(arguments)
        action = str(rest.pop("action", ""))
        answer: dict[str, Value] = {"done": False, "message": "nothing is simulated here"}
        for device in self.all:
            if isinstance(device.wrapper, Simulation):
                try:
                    return {"done": True, "message": device.wrapper.command(action, rest)}
                except ValueError as error:
                    answer = {"done": False, "message": str(error)}
        return answer

    def problems(self) -> list[str]:
        """Return what is wrong at present."""
        return [device.problem for device in self.all if device.problem]

    def notes(self) -> list[str]:
        """Return what wrappers have come to."""
        return [f"{device.name}: {device.note}" for device in self.all if device.note]


class EndpointPort:
    """Where the connector of an endpoint puts readings and reports."""

    def __init__(self, devices: Devices, device: Device) -> None:
        self._devices = devices
        self._device = device
        self.failed = device.failed
        self.noted = device.noted
        self.remember = device.remember

    @property
    def memory(self) -> Memory | None:
        """What was remembered last."""
        return self._devices.memories.get(self._device.name)

    def emit(self, readings: Sequence[Reading]) -> None:
        """Ingest readings."""
        self._devices.emit(self._device, readings)


def _names(settings: Sequence[WrapperSettings]) -> list[str]:
    names: list[str] = []
    for wrapper in settings:
        same = sum(1 for name in names if name.split("-")[0] == wrapper.kind)
        names.append(f"{wrapper.kind}-{same + 1}" if same else wrapper.kind)
    return names
