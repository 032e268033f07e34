"""Runs wrappers and takes their readings in."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gateway.intake.feeds import Feeds
from gateway.intake.last_values import LastValues
from gateway.intake.observations import ObservationLane
from gateway.intake.validation import event_of
from gateway.settings import WrapperSettings
from gateway.wrappers.registry import make_wrapper
from gateway.wrappers.wrapper import Memory, Reading, Simulation, Wrapper, WrapperContext
from host.clocks import Clock
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
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


class Device:
    """A wrapper and how it is doing."""

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
        """Take readings of a wrapper in; bad ones are counted against it, the others pass."""
        now = self.clock()
        correction = self.correction() if device.correct_times else 0
        batches: dict[str, list[SourceEvent]] = {}
        for reading in readings:
            try:
                events = [
                    (definition, event_of(taken, definition, now, correction))
                    for definition, taken in self._feeds.of(reading)
                ]
            except ValueError as error:
                device.failed(f"reading of {reading.sensor or reading.source!s:.60}: {error}")
                continue
            device.readings += 1
            for definition, event in events:
                if self._feeds.keeps(definition, event):
                    batches.setdefault(definition.name, []).append(event)
                    self._tell(definition, event, reading.sensor)
        if not batches:
            return
        note = None
        if device.memory is not None:
            self.memories[device.name] = device.memory
            note = (MEMORY, (device.name, device.memory))
            device.memory = None
        self.engine.take_in(batches, note)
        self.on_readings()

    def _tell(self, definition: SourceDefinition, event: SourceEvent, sensor: str) -> None:
        if event.delete:
            return
        name = sensor or self.gateway
        self.lane.add(definition.name, name, event.ts, event.row, definition.schema)
        if sensor:
            self.last.note(sensor, event, definition)

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


def _names(settings: Sequence[WrapperSettings]) -> list[str]:
    names: list[str] = []
    for wrapper in settings:
        same = sum(1 for name in names if name.split("-")[0] == wrapper.kind)
        names.append(f"{wrapper.kind}-{same + 1}" if same else wrapper.kind)
    return names
