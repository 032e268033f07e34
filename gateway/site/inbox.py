"""Messages that arrive for a site: each is checked and handed to its part.

No payload stops the site. What cannot be used is a dead letter; so is what a defect of ours trips
over, which is logged with its place.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

from msgspec.structs import asdict

from gateway.observations.followed_logs import FollowedLogs
from gateway.observations.observation_lanes import ObservationLanes
from gateway.observations.observation_reader import PACK, ObservationReader, SystemLane
from gateway.observations.pack_answers import PackAnswers
from gateway.observations.pack_requests import LOG
from gateway.observations.stream_interest import StreamInterest
from gateway.observations.unrecoverable_packs import redefined
from gateway.site.declared_orders import DeclaredOrders
from gateway.site.flow_reports import FlowReports
from gateway.site.left_fragments import LeftFragments
from gateway.site.membership import Membership
from gateway.site.receiver_requests import MAX_SMALL, ReceiverRequests
from gateway.site.traffic import Traffic
from gateway.site.window_fills import FILL, WindowFills
from host.clocks import Clock, monotonic_clock
from host.mqtt import Message
from host.mqtt.dead_letters import DeadLetters
from stream_engine.snapshot.journal import Note
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.catalog.system import SYS_STREAM
from streamsql.errors import (
    DeploymentError,
    FederationError,
    InternalError,
    StepBudgetError,
    WireError,
)
from streamsql.wire.codec import decode_json, decode_packed
from streamsql.wire.fill_messages import PackName
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch, ObservationPack, QueryProblem
from streamsql.wire.site_messages import SiteRole, SiteState
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.source_shapes import DIFFERENCE_CODE
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)


def _log_after(pack: ObservationPack) -> tuple[int, ...]:
    """Return how far the log of a pack's stream has come with it."""
    life = pack.epoch if pack.life is None else pack.life
    return () if pack.n is None else (life, pack.n + 1)


class Host(Protocol):
    """The site's host as the inbox needs it."""

    engine: RecordedSite
    clock: Clock
    topics: Topics
    membership: Membership
    dead_letters: DeadLetters
    flow_reports: FlowReports
    traffic: Traffic
    left_fragments: LeftFragments
    lanes: ObservationLanes | None
    pack_answers: PackAnswers
    fills: WindowFills
    site_time: Callable[[int], int]

    def report_failure(self, query: str, failure: FederationError) -> None:
        """Tell whoever started a query that it does not run here, and why."""

    def dropped(self, query: str) -> None:
        """Note that a query is wanted nowhere any more."""

    def say(self, query: str, problem: QueryProblem | None) -> None:
        """Publish what is wrong with a query here; None: nothing is any more."""

    def configure(self, settings: SiteSettings | None) -> None:
        """Let the engine work otherwise; None: as at the beginning."""


class SiteInbox:
    """Takes messages in; see `SiteHost` for the callbacks.

    Attributes:
        batches: Batches from other sites so far.
        logs: What is read here of what gateways publish.
        orders: What the catalog says of declared sources.
        interest: Which streams are read by others.
    """

    def __init__(
        self,
        host: Host,
        *,
        on_command: Callable[[str, Command], None] | None,
        on_own_state: Callable[[SiteState, bool], None] | None,
        on_own_link: Callable[[tuple[str, ...]], None] | None,
    ) -> None:
        self.batches = 0
        self.logs = FollowedLogs()
        self._host = host
        self._on_command = on_command
        self._on_own_state = on_own_state
        self._on_own_link = on_own_link
        self._differing: dict[str, FragmentBundle] = {}
        self.orders = DeclaredOrders()
        self.interest = StreamInterest()
        self._observations = ObservationReader(self.orders.layout_of)
        self._system = SystemLane()
        self._requests = ReceiverRequests(host, self.logs, self.count)
        host.fills.recall = self._recall_filled

    def take(self, message: Message) -> None:
        """Ingest one message, whatever is in it."""
        self._host.dead_letters.guard(self._dispatch, message)

    def withdrawn(self, name: str) -> None:
        """Stop a query, or drop a source, that was withdrawn while the broker was away."""
        if not self.orders.withdrawn(name):
            self.uninstall(name)

    def uninstall(self, query: str) -> None:
        """Stop a query here."""
        self._differing.pop(query, None)
        self._host.fills.drop(query)
        self._host.engine.uninstall(query)
        self._listen(self._observations.uninstalled(query))

    def to_remember(self) -> dict[str, Any]:
        """Return plain values that the next life needs: packs counted, and how far logs are."""
        seen, logs = self._observations.seen(), self.logs.progress()
        return {PACK: seen, LOG: logs, FILL: self._host.fills.to_remember()}

    def resume(
        self,
        remembered: Mapping[str, Any],
        notes: Iterable[Note],
        since: int,
        unsaved: Iterable[str] = (),
    ) -> None:
        """Go on with what an earlier life ran.

        Args:
            remembered: As `to_remember` has returned it.
            notes: What has been noted since, in order.
            since: Since when it has heard nothing, in microseconds; 0: there was none.
            unsaved: Queries that restart without their state.
        """
        notes = list(notes)
        counted, logs = list(remembered.get(PACK, ())), list(remembered.get(LOG, ()))
        for kind, content in notes:
            if kind == PACK:
                gateway, stream, epoch, number, *log = content
                counted.append((gateway, stream, epoch, number))
                logs += [(gateway, stream, *log)] if log else []
            elif kind == LOG:
                logs.append(content)
        self._observations.recall(counted)
        streams: set[str] = set()
        for bundle in self._host.engine.bundles():
            streams = self._observations.installed(bundle, self._host.engine.site)
        self._listen(streams)
        before = remembered.get(FILL, ())
        self._host.fills.resume(before, notes, unsaved, time.monotonic())
        if since:
            known = {(gateway, stream) for gateway, stream, *_ in counted}
            self.logs.restore(sorted(known), logs, since)

    def is_whole(self, query: str) -> bool:
        """Whether a query here has everything that gateways have published until now."""
        return self.logs.is_whole(self._observations.streams_of(query))

    def readers(self, stream: str) -> list[str]:
        """Return the queries that read here what gateways publish of a stream."""
        return self._observations.readers(stream)

    def _dispatch(self, message: Message) -> None:
        host, payload = self._host, message.payload
        me = host.engine.site
        match host.topics.parts(message.topic):
            case ["q", query, "x", to, sender] if to == me:
                self._batch(query, sender, payload)
            case ["gw", other, "obs", SYS_STREAM.name] if host.lanes is not None:
                told = self._system.events(other, payload, host.clock())
                if told and SYS_STREAM.name in self._observations.streams():
                    host.engine.take_in({SYS_STREAM.name: told})
            case ["gw", gateway, "obs" | "hist", stream] if host.lanes is not None:
                pack = self._observations.pack(stream, payload)
                if pack is not None:
                    host.fills.heard(stream, (gateway, pack.epoch, pack.seq))
                    for due in self.logs.arrived(gateway, message, stream, pack, host.clock()):
                        self._count(due, pack if due is message else None)
            case ["q", query, "frag", to] if to == me:
                self._fragment(query, payload)
            case ["gw", site, "state"]:
                self._state(site, message)
            case ["gw", site, "cmd", verb, sender] if site == me:
                self._requests.take(verb, sender, payload)
            case ["gw", site, "cmd", verb] if site == me:
                self._command(verb, decode_json(payload, Command, limit=MAX_SMALL))
            case ["gw", site, "fill"] if site == me:
                host.fills.take(message, time.monotonic())
            case ["gw", site, "settings"] if site == me:
                self._settings(payload)
            case ["source" | "interest" as kind, level]:
                self._order(kind, level, payload)
            case ["gw", site, "link", *levels] if site == me:
                self._own_link(levels, message)
            case _:
                raise WireError(f"no handler reads {message.topic!r:.200}")

    def _order(self, kind: str, level: str, payload: bytes) -> None:
        if kind == "interest":
            self.interest.heard(level, payload)
            return
        self._host.left_fragments.saw(self.orders.name(level))
        self.orders.take(level, payload)

    def _batch(self, query: str, sender: str, payload: bytes) -> None:
        host = self._host
        self.batches += 1
        batch = decode_packed(payload, DeltaBatch)
        host.engine.receive(query, sender, batch)
        if host.engine.runs(query):
            rows = len(batch.deltas) + len(batch.annotated)
            host.traffic.received(query, sender, rows, len(payload))

    def _own_link(self, levels: list[str], message: Message) -> None:
        if message.retain and message.payload and self._on_own_link is not None:
            self._on_own_link(tuple(levels))

    def count(self, due: Iterable[Message]) -> None:
        """Ingest packs whose turn it is."""
        for message in due:
            self._count(message)

    def _count(self, message: Message, pack: ObservationPack | None = None) -> None:
        """Ingest a pack; one that cannot be used does not stop the next."""
        self._host.dead_letters.guard(partial(self._observe, pack=pack), message)

    def _observe(self, message: Message, pack: ObservationPack | None) -> None:
        _gw, gateway, lane, stream = self._host.topics.parts(message.topic)
        if pack is None:  # it has waited as bytes: decoded packs are ten times as large
            pack = self._observations.pack(stream, message.payload)
        if pack is None:
            return
        if self._observations.is_outdated(stream, pack):
            self._refuse(gateway, stream, pack)
            return
        events, seen = self._observations.events_of(gateway, stream, pack)
        if events and seen is not None:
            # What was kept while the broker was away is no later than it was then: each lane is in
            # order, so each has a watermark of its own.
            origin = gateway if lane == "obs" else f"{gateway}/{lane}"
            note = (PACK, (*seen, *_log_after(pack)))
            self._host.engine.take_in({stream: events}, note, origin)

    def _refuse(self, gateway: str, stream: str, pack: ObservationPack) -> None:
        """Name what is not counted: rows that were made by another definition of their source."""
        lost = redefined(gateway, stream, pack, self._host.clock())
        seen = self._observations.outdated(gateway, stream, pack)
        if seen is None:
            return
        self._host.engine.take_in({}, (PACK, (*seen, *_log_after(pack))))
        self.logs.findings.losses.append(lost)

    def _fragment(self, query: str, payload: bytes) -> None:
        if not payload:
            self.uninstall(query)
            self._host.dropped(query)
            return
        bundle = decode_packed(payload, FragmentBundle)
        if bundle.query != query:
            raise WireError(f"a bundle of query {bundle.query!r:.80} on the topic of {query!r:.80}")
        self._host.left_fragments.saw(query)
        self._install(bundle)

    def redefined(self, source: str, stopped: Iterable[FragmentBundle]) -> None:
        """Note that a source has another definition here.

        Args:
            source: Its name.
            stopped: Queries that were stopped, because they read it as it was before.
        """
        waiting = list(self._differing.values())
        for bundle in stopped:
            self._differing[bundle.query] = bundle
            self._listen(self._observations.uninstalled(bundle.query))
            self._host.report_failure(
                bundle.query,
                DeploymentError(
                    f"the definition of source {source} has changed",
                    hint="the query goes on when it is planned for the new one",
                    code=DIFFERENCE_CODE,
                ),
            )
        for bundle in waiting:
            with contextlib.suppress(Exception):  # it was told to whoever waits for the query
                self._install(bundle)

    def _install(self, bundle: FragmentBundle) -> None:
        """Run a query; whoever waits for it is told why it does not run.

        Raises:
            Exception: It cannot be built.
        """
        query = bundle.query
        try:
            self._host.fills.begin(bundle, time.monotonic())
            self._host.engine.install(bundle)
        except StepBudgetError as error:
            self._host.report_failure(query, error)
            return
        except Exception as error:
            # The bundle is well formed, so somebody waits for the answer to it.
            failure = (
                error
                if isinstance(error, FederationError)
                else InternalError(f"query {query} cannot be built: {error!r:.300}")
            )
            if failure.code == DIFFERENCE_CODE:
                self._differing[query] = bundle  # until the definition comes that it was made for
            self._host.report_failure(query, failure)
            raise
        if self._differing.pop(query, None) is not None:
            self._host.say(query, None)
        for site, epoch in self._host.membership.lost():
            self._host.engine.site_lost(site, epoch, query)  # its windows need not wait for it
        self._listen(self._observations.installed(bundle, self._host.engine.site))
        log.info("query %s version %d installed", query, bundle.version)

    def _recall_filled(self, stream: str, packs: Iterable[PackName]) -> None:
        """Let packs that the lake has given count no more when they are sent again."""
        self._observations.recall((gateway, stream, e, number) for gateway, e, number in packs)

    def _listen(self, streams: set[str]) -> None:
        if self._host.lanes is not None:
            self._host.lanes.want(streams)
            # Hosts that report to `sys_stream` send no observations.
            self.logs.want(streams - {SYS_STREAM.name}, self._host.clock())

    def _state(self, site: str, message: Message) -> None:
        host, now = self._host, monotonic_clock()
        if not message.payload:
            host.membership.removed(site, now)
            self.logs.removed(site, host.clock())
            return
        state = decode_json(message.payload, SiteState, limit=MAX_SMALL)
        if site != host.engine.site:
            is_present = host.membership.heard(site, state, now, retained=message.retain)
            if is_present and state.role == SiteRole.GATEWAY:
                self._gateway(site, state, retained=message.retain)
            return
        if message.retain:
            host.left_fragments.remembered()
        if self._on_own_state is not None:
            self._on_own_state(state, message.retain)

    def _gateway(self, site: str, state: SiteState, *, retained: bool) -> None:
        corrected, to_site_time = int(state.clock.corrected_ms * 1_000), self._host.site_time
        self.logs.heard(
            site,
            state.epoch,
            online=state.online,
            streams=state.sources,
            started=to_site_time(state.started + corrected) if state.started else None,
            at=to_site_time(state.ts + corrected),
            now=self._host.clock(),
            retained=retained,
        )

    def _settings(self, payload: bytes) -> None:
        settings = decode_json(payload, SiteSettings, limit=MAX_SMALL) if payload else None
        self._host.configure(settings)
        if settings is None:
            log.info("settings: as in the site's file")
        else:
            values = asdict(settings).items()
            log.info("settings: %s", ", ".join(f"{name} {value}" for name, value in values))

    def _command(self, verb: str, command: Command) -> None:
        host = self._host
        if verb == "resync":  # of any channel: the coordinator sees both ends
            destination = "" if command.channel == "out" else command.channel
            host.engine.resync(command.query, destination)
        elif verb == "flow":
            host.flow_reports.forget()  # a coordinator that has just started knows no counts
        elif verb == "mark":
            host.left_fragments.marked(command.id, time.monotonic())
        elif self._on_command is not None:
            self._on_command(verb, command)
