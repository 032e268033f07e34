"""Ingests what connectors emit, and keeps how each of them is doing."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from gateway.connectors.reading import Memory, Reading
from gateway.intake.feeds import Feed, Feeds
from gateway.intake.last_values import LastValues
from gateway.intake.observations import ObservationLane
from gateway.intake.withdrawals import Withdrawals
from host.clocks import Clock
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.wire.senml import Observed
from streamsql.wire.site_messages import ConnectorState, SensorDescription

log = logging.getLogger(__name__)

MEMORY = "memory"
"""The note on events of an endpoint: its name, and what its connector wants to know later."""
PROBLEM_SECONDS = 90.0
"""How long a connector's last fault counts as present: longer than the longest pause."""


MAX_ERROR = 500
LOG_AT_ONCE = 10.0
LOG_SECONDS = 5.0
"""A connector's log lines: so many at once, then one per so many seconds."""


class Device:
    """Devices of an endpoint, and the state of its connector.

    Attributes:
        name: Kind of the connector and name of the endpoint.
        streams: The sources that it feeds.
        correct_times: Whether its times are those of this machine's clock, which is corrected.
        sensors: What its connector has found there.
        rooms: Where they are.
    """

    def __init__(self, name: str, kind: str, *, correct_times: bool = False) -> None:
        self.name = name
        self.kind = kind
        self.streams: tuple[str, ...] = ()
        self.correct_times = correct_times
        self.readings = 0
        self.errors = 0
        self.last_error = ""
        self.note = ""
        self.sensors: tuple[SensorDescription, ...] = ()
        self.rooms: tuple[str, ...] = ()
        self.memory: Memory | None = None
        self._failed_at = float("-inf")
        self._may_log = LOG_AT_ONCE

    def failed(self, message: str) -> None:
        """Count a fault. One that repeats itself is logged once, many others now and then."""
        now = time.monotonic()
        self._may_log = min(self._may_log + (now - self._failed_at) / LOG_SECONDS, LOG_AT_ONCE)
        if message[:MAX_ERROR] != self.last_error and self._may_log >= 1:
            self._may_log -= 1
            log.warning("connector %s: %s", self.name, message[:MAX_ERROR])
        self.errors += 1
        self.last_error = message[:MAX_ERROR]
        self._failed_at = now

    def remember(self, memory: Memory) -> None:
        """Keep what is to go with the next readings."""
        self.memory = memory

    def noted(self, text: str) -> None:
        """Keep what the connector has come to, and log it."""
        self.note = text[:MAX_ERROR]
        log.info("connector %s: %s", self.name, self.note)

    @property
    def problem(self) -> str:
        """Present problem, or empty."""
        recent = time.monotonic() - self._failed_at < PROBLEM_SECONDS
        return f"{self.name}: {self.last_error}" if recent and self.last_error else ""

    def state(self) -> ConnectorState:
        """Return the facts that the gateway announces."""
        return ConnectorState(
            self.name,
            self.kind,
            self.streams,
            self.readings,
            self.errors,
            self.last_error,
            self.note,
        )


class _Taken:
    """The events of one source in a batch of readings.

    Attributes:
        events: All of them.
        observed: Device, time and row of each.
        withdrawn: Positions of those that are withdrawals.
    """

    __slots__ = ("events", "observed", "schema", "withdrawn")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.events: list[SourceEvent] = []
        self.observed: list[Observed] = []
        self.withdrawn: set[int] = set()

    def add(self, event: SourceEvent, device: str) -> None:
        """Append an event of a device."""
        if event.delete:
            self.withdrawn.add(len(self.observed))
        self.events.append(event)
        self.observed.append((device, event.ts, event.row))


class _Batch:
    """Outcome of a batch of readings.

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
    """Whatever stands behind the endpoints of a gateway.

    Args:
        gateway: Id of the gateway.
        clock: The gateway's time.
        definitions: The sources produced here, by name.
        engine: Where events go.
        lane: Where observations go.
        last: Where last values go.
        on_readings: Called after something was ingested.
        on_described: Called when other sensors stand behind an endpoint.
        correction: Returns the microseconds to add to the times of devices that ask for it.

    Attributes:
        memories: What connectors want to know after a restart, by name of the device.
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        gateway: str,
        *,
        clock: Clock,
        definitions: Mapping[str, SourceDefinition],
        engine: RecordedSite,
        lane: ObservationLane,
        last: LastValues,
        on_readings: Callable[[], None],
        on_described: Callable[[], None] = lambda: None,
        correction: Callable[[], int] = lambda: 0,
    ) -> None:
        self.gateway = gateway
        self.clock = clock
        self._feeds = Feeds(definitions)
        self.engine = engine
        self.lane = lane
        self.last = last
        self.on_readings = on_readings
        self.on_described = on_described
        self.correction = correction
        self.memories: dict[str, Memory] = {}
        self.all: list[Device] = []

    def define(self, definitions: Mapping[str, SourceDefinition]) -> None:
        """Take readings of these sources from now on."""
        self._feeds.define(definitions)

    def attach(
        self, endpoint: str, kind: str, streams: tuple[str, ...], *, correct_times: bool = False
    ) -> "EndpointPort":
        """Return where an endpoint's connector puts its readings; counts go on if it had one."""
        name = f"{kind}/{endpoint}"
        device = next((each for each in self.all if each.name == name), None)
        if device is None:
            device = Device(name, kind, correct_times=correct_times)
            self.all.append(device)
        device.streams = streams
        return EndpointPort(self, device)

    def detach(self, endpoint: str, kind: str) -> None:
        """Forget an endpoint that feeds nothing any more."""
        gone = [device for device in self.all if device.name == f"{kind}/{endpoint}"]
        self.all = [device for device in self.all if device not in gone]
        if any(device.sensors or device.rooms for device in gone):
            self.on_described()

    def emit(self, device: Device, readings: Sequence[Reading]) -> None:
        """Ingest readings of a device; bad ones are counted against it, the others pass.

        All of them are in the journal when this returns, with what the device is to remember.
        """
        now = self.clock()
        correction = self.correction() if device.correct_times else 0
        batch = _Batch(self.engine)
        for reading in readings:
            try:
                feed = self._feeds.fed_by(reading)
                if reading.matching:
                    self._withdraw(reading, feed, batch, now)
                    device.readings += 1
                    continue
                event = feed.event(reading, now, correction)
            except ValueError as error:
                device.failed(f"reading of {reading.sensor or reading.source!s:.60}: {error}")
                continue
            device.readings += 1
            sensor = reading.sensor
            if not feed.keeps(event):
                continue
            batch.of(feed.definition).add(event, sensor or self.gateway)
            if sensor and not event.delete:
                batch.newest[sensor] = (event, feed.definition)
        # Without readings what is to be remembered is kept alone; refused ones keep it back.
        if batch.by_source or (not readings and device.memory is not None):
            for sensor, (event, definition) in batch.newest.items():
                self.last.note(sensor, event, definition)
            self._ingest(device, batch.by_source)

    def _withdraw(self, reading: Reading, feed: Feed, batch: _Batch, now: int) -> None:
        """Withdraw the rows that a matching withdrawal means; raises as `Withdrawals.resolved`."""
        before = batch.by_source.get(feed.definition.name)
        events = before.events if before is not None else ()
        if found := batch.withdrawals.resolved(reading, feed.definition, events):
            taken = batch.of(feed.definition)
            for each in found:
                taken.add(feed.event(each, now), each.sensor or self.gateway)

    def _ingest(self, device: Device, taken: Mapping[str, _Taken]) -> None:
        for name, batch in taken.items():
            self.lane.add(name, batch.observed, batch.schema, batch.withdrawn)
        memory, device.memory = device.memory, None
        note = None if memory is None else (MEMORY, (device.name, memory))
        self.engine.take_in({name: batch.events for name, batch in taken.items()}, note)
        if memory is not None:  # it is of these readings, which have been refused if this raises
            self.memories[device.name] = memory
        self.on_readings()

    @property
    def sensors(self) -> tuple[SensorDescription, ...]:
        """All sensors that connectors have found."""
        return tuple(sensor for device in self.all for sensor in device.sensors)

    @property
    def rooms(self) -> tuple[str, ...]:
        """The rooms that they are in."""
        return tuple(dict.fromkeys(room for device in self.all for room in device.rooms))

    def problems(self) -> list[str]:
        """Return what is wrong at present."""
        return [device.problem for device in self.all if device.problem]

    def notes(self) -> list[str]:
        """Return what connectors have come to."""
        return [f"{device.name}: {device.note}" for device in self.all if device.note]


class EndpointPort:
    """Receiver of the readings and reports of an endpoint's connector."""

    def __init__(self, devices: Devices, device: Device) -> None:
        self._devices = devices
        self._device = device
        self.failed = device.failed
        self.noted = device.noted
        self.remember = device.remember

    def describe(self, sensors: Sequence[SensorDescription], rooms: Sequence[str]) -> None:
        """Keep which sensors stand behind the endpoint; the site announces them."""
        device, found = self._device, (tuple(sensors), tuple(rooms))
        if (device.sensors, device.rooms) != found:
            device.sensors, device.rooms = found
            self._devices.on_described()

    @property
    def memory(self) -> Memory | None:
        """Last saved memory."""
        return self._devices.memories.get(self._device.name)

    def emit(self, readings: Sequence[Reading]) -> None:
        """Ingest readings."""
        self._devices.emit(self._device, readings)
