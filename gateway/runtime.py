"""A gateway as a whole: client, engine site, connectors, buffer and announcements, wired."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import PublishedPacks
from gateway.declared.declared_sources import Definitions
from gateway.declared.endpoint_states import endpoint_states
from gateway.declared.served_devices import BOOK, declared_sources, kept_sources
from gateway.declared.source_book import SourceBook
from gateway.declared.trial_commands import TrialCommands
from gateway.gateway_settings import GatewaySettings
from gateway.intake.devices import MEMORY, Devices
from gateway.intake.last_values import LastValues
from gateway.intake.links import LinkPublishers
from gateway.intake.observations import ObservationLane
from gateway.observations.unrecoverable_packs import Missing
from gateway.session.announcer import Announcer
from gateway.session.clock_exchange import ClockExchange
from gateway.session.command_answers import CommandAnswers
from gateway.session.connection_problems import ConnectionProblems
from gateway.session.description import birth_of, ended_state
from gateway.session.identity import (
    BeginAgainError,
    OutdatedEpochError,
    Session,
    StolenIdError,
    Verdict,
    judge,
)
from gateway.site.host import SiteHost
from gateway.site.process_numbers import measured_connectors, measured_process
from gateway.site.stopped_queries import StoppedQueries
from gateway.site_clock import clock_from, site_time
from gateway.site_commands import handlers_of
from gateway.site_state import counted_columns, present_state
from gateway.state.readings_on_disk import KeptReadings
from gateway.state.state_keeper import StateKeeper
from gateway.state.state_losses import Loss
from host.clocks import wall_clock
from host.files.site_directory import SiteDirectory
from host.mqtt import MessageClient, SubscribeRefused, Will, open_service_client
from host.mqtt.broker_passwords import password_file
from stream_engine.site.measured_values import Measured
from stream_engine.site.step_budget import StepBudget
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.catalog.system import SYS_STREAM
from streamsql.errors import DeploymentError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import Birth, SiteRole, SiteState
from streamsql.wire.source_shapes import layout_of
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.1
LINK_SECONDS = 0.5
LOOK_BACK_SECONDS = 3.0
"""How long after each connect the links retained under our id are read."""
STOPPED = "stopped_queries.json"
CUT_OFF = "connection_problem.json"

MakeClient = Callable[[Will], MessageClient]


class Gateway:
    """One life of a gateway or base site; `run` lives until it is cancelled.

    Args:
        settings: See `GatewaySettings`.
        directory: The site's locked data directory.
        epoch: Of this life.
        make_client: Makes the message client with the given will.
        budget: Ends queries that take too much in one step.
        stopped: The queries that ran here and must not again.
        settings_file: Where the settings were read, if they may be written.

    Raises:
        DeploymentError: The broker's address is wrong.
    """

    def __init__(  # noqa: PLR0913  (where it lives, and what watches over it)
        self,
        settings: GatewaySettings,
        directory: SiteDirectory,
        epoch: int,
        make_client: MakeClient | None = None,
        *,
        budget: StepBudget | None = None,
        stopped: StoppedQueries | None = None,
        settings_file: Path | None = None,
    ) -> None:
        self.settings = settings
        self.settings_file = settings_file
        stopped = stopped or StoppedQueries(directory.path / STOPPED)
        self.session = Session(epoch, wall_clock(), os.urandom(8).hex())
        self.topics = Topics(settings.site)
        me = settings.gateway
        book = SourceBook(directory.path / BOOK)
        self.definitions: Definitions = kept_sources(settings, book)
        # Sources that are declared later are not in it: whoever reads them remembers them.
        will = Will(self.topics.state(me), encode_json(self._ended("lost")))
        self.passwords = password_file(settings.broker_password_file)
        self.client = (make_client or self._open_client)(will)
        self.connection_problems = ConnectionProblems(directory.path / CUT_OFF, wall_clock)
        self.clock = ClockExchange(me, self.client, self.topics, settings.clock)
        clock = clock_from(settings.clock, self.clock.corrected)
        self.engine = RecordedSite(
            me, epoch, stopwatch=time.perf_counter_ns, budget=budget, refusal=stopped.refusal
        )
        published = PublishedPacks(epoch)
        self.host = SiteHost(
            self.engine,
            self.client,
            self.topics,
            clock,
            grace_seconds=settings.grace_seconds,
            tick_seconds=settings.tick_ms / 1000,
            speed=settings.clock.speed,
            reads_observations=settings.role == SiteRole.BASE,
            on_command=self._command,
            on_own_state=self._own_state,
            on_own_link=self._own_link,
            on_step=self._stepped,
            on_missing=self._missed,
            on_withdrawn=lambda lost: self.keeper.withdraw(lost.origin),
            site_time=partial(site_time, settings.clock),
            published=published,
            meter=self._measured,
            settings=settings.engine,
            stopped=stopped,
        )
        self.buffer = DiskBuffer(directory.path / "buffer.sqlite", settings.buffer)
        self.lane = ObservationLane(me, epoch, self.client, self.topics, self.buffer, published)
        self.host.fills.cut = self.lane.cut
        self.lane.is_read = self.host.inbox.interest.is_read
        self.lane.is_waited_for = self.host.inbox.interest.is_waited_for
        self.last = LastValues(me, epoch, self.client, self.topics)
        self.links = LinkPublishers(me, self.engine, self.client, self.topics)
        self.devices = Devices(
            me,
            clock=clock,
            definitions=self.definitions,
            engine=self.engine,
            lane=self.lane,
            last=self.last,
            on_readings=self.host.wake,
            on_described=self._described,
            correction=lambda: self.clock.correction,
        )
        self._kept = KeptReadings(
            self.lane.flush,
            lambda: self.lane.is_kept and self.keeper.holds_all,
            lambda: self.engine.pending_events,
        )
        self.declared = declared_sources(
            settings,
            book,
            engine=self.engine,
            devices=self.devices,
            kept=self._kept.wait,
            on_redefined=self.host.inbox.redefined,
            on_definitions=self._defined,
        )
        self.endpoints = endpoint_states(settings)
        self.trials = TrialCommands(settings, clock, self.client, self.topics)
        self.declared.declare_all()
        self.host.inbox.orders.go_by(self.declared)
        self.keeper = StateKeeper(
            self.engine,
            directory.path / "state",
            settings.snapshots,
            clock,
            host_state=self._to_remember,
            say=self.host.say,
            hears=self._hearing if settings.role == SiteRole.BASE else None,
            is_whole=self.host.inbox.logs.are_whole,
            told=self.host.flow_reports.forget,
        )
        self.host.is_untold = self.keeper.is_untold
        self.announcer = Announcer(
            me, self.client, self.topics, self._birth, lambda: present_state(self), self._announced
        )
        self.announcer.columns = lambda: counted_columns(self)
        self._commands = CommandAnswers(me, self.client, self.topics, handlers_of(self))
        self._connections = 0
        self._connected = asyncio.Event()
        self._others_run = self._stopping = False
        self._end: asyncio.Future[DeploymentError] | None = None

    async def run(self) -> None:
        """Serve until cancelled; announces a clean stop then.

        Raises:
            StolenIdError: Another, newer process runs under this id.
            OutdatedEpochError: The epoch is not above those of earlier lives.
            RenamedError: The settings have another name now.
            SubscribeRefused: The broker's access rules keep us from what is ours.
        """
        self._end = asyncio.get_running_loop().create_future()
        self._recall()
        self.client.on_connection(self._on_connection)
        self.client.on_failure(self.connection_problems.failed)
        ended: BaseException | None = None
        try:
            await self.client.connect(timeout=None)
            self.declared.begin()  # says which queries it stops: the client takes it from here on
            await self.host.start()
            async with asyncio.TaskGroup() as group:
                group.create_task(self.host.run())
                group.create_task(self._lanes())
                group.create_task(self._retained())
                group.create_task(self.announcer.run())
                group.create_task(self._until_ended(self._end))
                group.create_task(self.clock.run())
                group.create_task(self._look_back())
                group.create_task(self.declared.run())
        except* (StolenIdError, OutdatedEpochError, BeginAgainError) as errors:
            ended = errors.exceptions[0]
        finally:
            await self._stop()
        if ended is not None:  # not above: what is raised there comes in a group in Python 3.11.2
            raise ended from None

    async def _stop(self) -> None:
        self._stopping = True
        if not self._others_run:
            self.lane.flush()
        # The other may be gone before it speaks again: our "online" must not be the last word.
        self.announcer.publish_state(self._ended("lost" if self._others_run else "stopped"))
        await self._commands.close()
        await self.trials.close()
        await self.client.close()
        await self.keeper.stop()
        self.lane.settle()
        self.buffer.close()

    def _open_client(self, will: Will) -> MessageClient:
        given = self.settings
        me, keepalive, passwords = given.gateway, given.keepalive, self.passwords
        return open_service_client(given, me, will, keepalive=keepalive, passwords=passwords)

    # What is kept ------------------------------------------------------------------------------

    def _stepped(self, connected: bool) -> None:
        self.keeper.stepped(connected=connected)

    def _missed(self, lost: Missing) -> None:
        queries = self.host.inbox.readers(lost.stream)
        span = (lost.since, lost.until, lost.reason)
        lost_here = Loss(*span, heard=True, newest=lost.newest, origin=lost.origin)
        self.keeper.missed(queries, lost_here)

    def _hearing(self) -> frozenset[str]:
        return self.engine.readers_of(SYS_STREAM.name)

    def _to_remember(self) -> dict[str, Any]:
        return {MEMORY: self.devices.memories, **self.host.inbox.to_remember()}

    def _recall(self) -> None:
        restored = self.keeper.restore()
        host = restored.host or {}
        self.devices.memories.update(host.get(MEMORY, {}))
        self.devices.memories.update(c for kind, c in restored.notes if kind == MEMORY)
        away = self.keeper.losses.away_since
        self.host.inbox.resume(host, restored.notes, away, restored.unsaved)

    # Jobs -------------------------------------------------------------------------------------

    async def _lanes(self) -> None:
        replay_each = max(int(self.settings.buffer.replay_per_second * FLUSH_SECONDS), 1)
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            self.lane.flush_due(time.monotonic())
            self.lane.settle()
            self.lane.replay(replay_each)

    async def _retained(self) -> None:
        while True:
            await asyncio.sleep(LINK_SECONDS)
            self.links.publish_changes(time.monotonic())
            self.last.publish_due(time.monotonic())

    async def _look_back(self) -> None:
        """After each connect, read which links are retained under our id.

        An earlier life may have left some, and a broker that fell may have found old ones again.
        """
        topic = self.topics.link(self.settings.gateway)
        while True:
            await self._connected.wait()
            self._connected.clear()
            try:
                await self.client.subscribe(topic)
            except SubscribeRefused as error:
                log.warning("links of earlier runs are not cleared: %s", error)
                continue
            await asyncio.sleep(LOOK_BACK_SECONDS)
            await self.client.unsubscribe(topic)

    async def _until_ended(self, end: asyncio.Future[DeploymentError]) -> None:
        raise await end

    # What we have ----------------------------------------------------------------------------

    def _defined(self, definitions: Definitions) -> None:
        """Go by other sources: intake, links, births."""
        self.lane.flush()
        self.definitions = dict(definitions)
        self.lane.stamps = {
            name: (definition.version, layout_of(definition.scan()))
            for name, definition in definitions.items()
        }
        self.devices.define(self.definitions)
        self.links.define(self.definitions.values())
        self.last.define(self.definitions)
        self.announcer.announce()

    def _described(self) -> None:
        self.announcer.announce()

    def _ended(self, reason: str) -> SiteState:
        definitions = tuple(self.definitions.values())
        return ended_state(self.settings, self.session, reason, definitions)

    # What we say ------------------------------------------------------------------------------

    def _birth(self) -> Birth:
        return birth_of(
            self.settings,
            self.session,
            definitions=tuple(self.definitions.values()),
            connectors=[device.state() for device in self.devices.all],
            sensors=self.devices.sensors,
            rooms=self.devices.rooms,
            rows=self.engine.source_rows,
        )

    def _measured(self) -> Iterator[Measured]:
        host, devices = self.host, self.devices
        yield from measured_process(host, self.client.pending(), self.buffer.state())
        yield from self.clock.measured()
        yield from measured_connectors([device.state() for device in devices.all])

    def _announced(self) -> None:
        self.links.forget()
        self.last.forget()

    # What we hear -----------------------------------------------------------------------------

    def _on_connection(self, connected: bool) -> None:
        if self._stopping:
            return
        log.info("broker %s", "connected" if connected else "lost; reconnecting")
        if connected:
            self.connection_problems.over()
            self._connections += 1
            self._connected.set()
            self.announcer.announce()
        elif (whole_at := self.host.inbox.logs.whole_at(self.host.clock())) is not None:
            self.keeper.cut_off(whole_at)

    def _own_link(self, levels: tuple[str, ...]) -> None:
        self.links.found(levels)

    def _own_state(self, state: SiteState, retained: bool) -> None:
        """Somebody published state under our id: ourselves, our will, a predecessor, a thief."""
        verdict = judge(self.session, state, first=retained and self._connections == 1)
        if verdict == Verdict.OUTDATED:
            self.announcer.announce()
        elif verdict == Verdict.PREDECESSOR:
            self._finish(OutdatedEpochError(state.epoch))
        elif verdict == Verdict.STOLEN:
            self._finish(
                StolenIdError(
                    f"another process runs as {self.settings.gateway!r} with a newer "
                    "session; this process stops to keep their readings apart",
                    hint="give every gateway its own id, or stop the other process",
                )
            )

    def begin_again(self, reason: BeginAgainError) -> None:
        """End this life on request."""
        self._finish(reason)

    def _finish(self, reason: DeploymentError) -> None:
        self._others_run = not isinstance(reason, BeginAgainError)
        if self._end is not None and not self._end.done():
            self._end.set_result(reason)

    def _command(self, verb: str, command: Command) -> None:
        self._commands.heard(verb, command)
