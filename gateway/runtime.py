"""A gateway as a whole: wires client, engine site, wrappers, buffer and announcements together."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.clock import clock_from, wall_clock
from gateway.intake.links import LinkPublisher
from gateway.intake.observations import ObservationLane
from gateway.intake.validation import event_of
from gateway.session.epoch import SiteDirectory
from gateway.settings import GatewaySettings, WrapperSettings
from gateway.site.host import SiteHost
from gateway.wrappers.registry import make_wrapper
from gateway.wrappers.wrapper import Reading, Simulation, WrapperContext
from messaging import MessageClient, QueueFull, Will, open_client
from stream_engine.site import SiteEngine
from streamsql.algebra.operators import SourceKind
from streamsql.data.events import SourceEvent
from streamsql.data.types import Value
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import (
    Birth,
    Command,
    SiteState,
    SourceRows,
    WrapperState,
)
from streamsql.wire.topics import Topics, check_id

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.1
STATE_SECONDS = 10.0
LINK_SECONDS = 0.5
MAX_BIRTH_ROWS = 20_000
RESTART_SECONDS = 1.0
RESTART_MOST_SECONDS = 60.0


class StolenIdError(DeploymentError):
    """Another process runs under our id."""

    code = "stolen_id"


class _WrapperRun:
    """A wrapper and how it is doing."""

    def __init__(self, settings: WrapperSettings) -> None:
        self.wrapper = make_wrapper(settings)
        self.options = settings.options
        self.readings = 0
        self.errors = 0
        self.last_error = ""

    def failed(self, message: str) -> None:
        if message != self.last_error:
            log.warning("wrapper %s: %s", self.wrapper.kind, message)
        self.errors += 1
        self.last_error = message[:500]

    def state(self) -> WrapperState:
        kind = self.wrapper.kind
        return WrapperState(
            kind, kind, self.wrapper.streams, self.readings, self.errors, self.last_error
        )


class Gateway:
    """One gateway or base site; `run` lives until it is cancelled.

    Args:
        settings: See `GatewaySettings`.
        directory: The site's locked data directory.
        client: A message client; made from the settings when None.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        directory: SiteDirectory,
        client: MessageClient | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock_from(settings.clock)
        self.epoch = directory.next_epoch()
        self.instance = secrets.token_hex(8)
        self.topics = Topics(settings.site)
        self.started = wall_clock()
        self.client = client or open_client(
            settings.broker,
            settings.gateway,
            will=Will(self.topics.state(settings.gateway), encode_json(self._state("lost"))),
            keepalive=settings.keepalive,
        )
        self.engine = SiteEngine(settings.gateway, self.epoch)
        self.definitions = {definition.name: definition for definition in settings.sources}
        for definition in settings.sources:
            self.engine.declare(definition.scan())
        self.host = SiteHost(
            self.engine,
            self.client,
            self.topics,
            self.clock,
            grace_seconds=settings.grace_seconds,
            tick_seconds=settings.tick_ms / 1000,
            speed=settings.clock.speed,
            reads_observations=settings.role == "base",
            on_command=self._command,
            on_own_state=self._own_state,
        )
        self.buffer = DiskBuffer(directory.path / "buffer.sqlite", settings.buffer)
        self.lane = ObservationLane(
            settings.gateway, self.epoch, self.client, self.topics, self.buffer
        )
        self.links = [
            LinkPublisher(settings.gateway, d, self.engine, self.client, self.topics)
            for d in settings.sources
            if d.kind == SourceKind.LINK
        ]
        self.wrappers = [_WrapperRun(wrapper) for wrapper in settings.wrappers]
        self._stolen: asyncio.Future[None] | None = None
        self._must_announce = True

    async def run(self) -> None:
        """Serve until cancelled; announces a clean stop then.

        Raises:
            StolenIdError: Another, newer process runs under this id.
        """
        self._stolen = asyncio.get_running_loop().create_future()
        self.client.on_connection(self._on_connection)
        await self.client.connect(timeout=None)
        await self.host.start()
        jobs = [self.host.run(), self._lanes(), self._announcements(), self._watch_id()]
        jobs.extend(self._supervise(wrapper) for wrapper in self.wrappers)
        try:
            async with asyncio.TaskGroup() as group:
                for job in jobs:
                    group.create_task(job)
        except* StolenIdError as errors:
            raise errors.exceptions[0] from None
        finally:
            await self._stop()

    async def _stop(self) -> None:
        if self._stolen is None or not self._stolen.done():
            with contextlib.suppress(QueueFull):
                self.lane.flush()
                self._publish_state(self._state("stopped"))
        await self.client.close()
        self.lane.settle()
        self.buffer.close()

    # Readings ---------------------------------------------------------------------------------

    async def _supervise(self, run: _WrapperRun) -> None:
        """Run a wrapper; after a fault start it again, with pauses that double."""
        pause = RESTART_SECONDS
        while True:
            began = time.monotonic()
            context = WrapperContext(
                gateway=self.settings.gateway,
                clock=self.clock,
                emit=lambda readings, run=run: self._emit(run, readings),  # type: ignore[misc]
                problem=run.failed,
                options=run.options,
            )
            try:
                await run.wrapper.run(context)
            except Exception as error:  # noqa: BLE001  (a device's fault must not stop the gateway)
                run.failed(f"{type(error).__name__}: {error}")
            else:
                return
            pause = RESTART_SECONDS if time.monotonic() - began > RESTART_MOST_SECONDS else pause
            await asyncio.sleep(pause)
            pause = min(pause * 2, RESTART_MOST_SECONDS)

    def _emit(self, run: _WrapperRun, readings: Sequence[Reading]) -> None:
        """Take readings of a wrapper; bad ones are counted against it."""
        now = self.clock()
        batches: dict[str, list[SourceEvent]] = {}
        for reading in readings:
            definition = self.definitions.get(reading.source)
            try:
                if definition is None:
                    raise ValueError(f"no source {reading.source!r:.60} at this gateway")  # noqa: TRY301
                event = event_of(reading, definition, now)
            except ValueError as error:
                run.failed(f"reading of {reading.sensor or reading.source}: {error}")
                continue
            run.readings += 1
            batches.setdefault(definition.name, []).append(event)
            if not reading.delete:
                name = reading.sensor or self.settings.gateway
                self.lane.add(definition.name, name, event.ts, event.row, definition.schema)
        for source, events in batches.items():
            self.engine.ingest(source, events)
        if batches:
            self.host.wake()

    async def _lanes(self) -> None:
        """Send observations, catch up on history, keep links published."""
        replay_each = max(int(self.settings.buffer.replay_per_second * FLUSH_SECONDS), 1)
        link_due = 0.0
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            self.lane.flush()
            self.lane.settle()
            self.lane.replay(replay_each)
            if time.monotonic() >= link_due:
                link_due = time.monotonic() + LINK_SECONDS
                for publisher in self.links:
                    publisher.publish_changes()

    # Announcements ----------------------------------------------------------------------------

    async def _announcements(self) -> None:
        """Publish birth and state after each connect, then state every ten seconds."""
        while True:
            if self._must_announce and self.client.connected:
                self._must_announce = False
                self._announce()
            elif self.client.connected:
                self._publish_state(self._state())
            for _ in range(int(STATE_SECONDS / FLUSH_SECONDS)):
                await asyncio.sleep(FLUSH_SECONDS)
                if self._must_announce:
                    break

    def _announce(self) -> None:
        try:
            topic = self.topics.birth(self.settings.gateway)
            self.client.publish(topic, encode_json(self._birth()), retain=True)
            self._publish_state(self._state())
        except QueueFull:
            self._must_announce = True
            return
        for publisher in self.links:
            publisher.forget()

    def _publish_state(self, state: SiteState) -> None:
        topic = self.topics.state(self.settings.gateway)
        with contextlib.suppress(QueueFull):
            self.client.publish(topic, encode_json(state), retain=True)

    def _state(self, reason: str = "") -> SiteState:
        online = not reason
        if not online:
            return SiteState(
                False, self.epoch, self.started, self.settings.role, reason, instance=self.instance
            )
        problems = [w.last_error for w in self.wrappers if w.last_error]
        return SiteState(
            online=True,
            epoch=self.epoch,
            ts=wall_clock(),
            role=self.settings.role,
            detail="; ".join(filter(None, [self.buffer.problem, *problems]))[:500],
            instance=self.instance,
            buffer=self.buffer.state(),
            counters={
                "batches_sent": self.host.batches_sent,
                "batches_received": self.host.batches_received,
                "bad_payloads": self.host.bad_payloads,
                "pending": self.client.pending(),
                "readings": sum(w.readings for w in self.wrappers),
                "errors": sum(w.errors for w in self.wrappers),
            },
        )

    def _birth(self) -> Birth:
        current = []
        for definition in self.settings.sources:
            if definition.key:
                rows = tuple(self.engine.source_rows(definition.name))[:MAX_BIRTH_ROWS]
                current.append(SourceRows(definition.name, rows))
        return Birth(
            gateway=self.settings.gateway,
            epoch=self.epoch,
            seq=0,
            ts=wall_clock(),
            role=self.settings.role,
            sensors=self.settings.sensors,
            wrappers=tuple(run.state() for run in self.wrappers),
            sources=tuple(self.definitions),
            rooms=self.settings.rooms,
            current=tuple(current),
            capabilities=("filter", "project", "window", "join", "aggregate", "fixpoint"),
        )

    def _on_connection(self, connected: bool) -> None:
        log.info("broker %s", "connected" if connected else "lost; trying again")
        if connected:
            self._must_announce = True

    def _command(self, verb: str, command: Command) -> None:
        if verb in ("rebirth", "ping", "flush"):
            self._must_announce = True
        elif verb == "simulate":
            self._simulate(command)
        else:
            log.warning("unknown command %r %s", verb[:40], command.id)

    def _simulate(self, command: Command) -> None:
        """Pass a command to the simulated motes and answer whether they could follow it."""
        arguments = dict(command.arguments)
        action = str(arguments.pop("action", ""))
        answer: dict[str, Value] = {"done": False, "message": "no simulated motes here"}
        for run in self.wrappers:
            if isinstance(run.wrapper, Simulation):
                try:
                    answer = {"done": True, "message": run.wrapper.command(action, arguments)}
                except ValueError as error:
                    answer = {"done": False, "message": str(error)}
        response = Command(id=command.id, arguments=answer)
        with contextlib.suppress(QueueFull, WireError):
            topic = self.topics.response(self.settings.gateway, check_id(command.id or "simulate"))
            self.client.publish(topic, encode_json(response))

    def _own_state(self, state: SiteState) -> None:
        """Somebody published state under our id: ourselves, our will, or a thief."""
        if state.instance in ("", self.instance):
            if not state.online and state.epoch >= self.epoch:
                self._must_announce = True
            return
        newer = (state.epoch, state.ts) > (self.epoch, self.started)
        if state.online and newer and self._stolen is not None and not self._stolen.done():
            self._stolen.set_result(None)
        elif state.epoch >= self.epoch:
            self._must_announce = True

    async def _watch_id(self) -> None:
        if self._stolen is None:
            return
        await self._stolen
        raise StolenIdError(
            f"another process runs as {self.settings.gateway!r} with a newer session; "
            "this one stops so that readings are not mixed",
            hint="give every gateway an id of its own, or stop the other process",
        )


async def serve(settings: GatewaySettings) -> None:
    """Run a gateway in its own data directory until cancelled."""
    with SiteDirectory(Path(settings.data_dir)) as directory:
        await Gateway(settings, directory).run()
