"""Runs an engine site: inbox in, step, outbox out; resynchronises after every interruption.

The engine is pure; this is its clock and its network. What arrives while a step runs or the site
rests is one batch. While the broker is away nothing is queued: on reconnecting every channel sends
a snapshot, which the receivers turn into the exact difference.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable

from gateway.buffer.published_packs import PublishedPacks
from gateway.observations.observation_lanes import ObservationLanes
from gateway.observations.pack_answers import PackAnswers
from gateway.observations.pack_requests import PackRequests
from gateway.observations.unrecoverable_packs import Missing, Withdrawn
from gateway.site.channel_requests import forget_command
from gateway.site.flow_reports import FlowReports
from gateway.site.inbox import SiteInbox
from gateway.site.left_fragments import LeftFragments
from gateway.site.membership import Membership
from gateway.site.process_numbers import measured_host
from gateway.site.stopped_queries import StoppedQueries
from gateway.site.system_reports import Meter, SystemReports
from gateway.site.traffic import Traffic
from gateway.site.window_fills import WindowFills
from host.clocks import Clock, wall_clock
from host.defects import Defects
from host.mqtt import Message, MessageClient, QueueFull
from host.mqtt.dead_letters import DeadLetters
from host.mqtt.publishing import publish_or_warn
from host.resync_requests import ResyncRequests
from stream_engine.site.step_result import Forget, Outgoing
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.errors import FederationError, InternalError, WireError
from streamsql.wire.codec import encode_json, encode_packed
from streamsql.wire.messages import Command, QueryProblem
from streamsql.wire.site_messages import SiteState
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

FULL_PAUSE = 1.0
SHORTEST_REST = 0.001
LONGEST_SLEEP = 5.0
"""Between two log entries of steps that fail."""


def ignore(_given: object) -> None:
    """Do nothing with what a host reports."""


class SiteHost:
    """Hosts one `RecordedSite` on a `MessageClient`.

    Args:
        grace_seconds: How long an offline site's rows stay.
        tick_seconds: Longest rest between two steps while there is something to do.
        speed: How fast the site's clock passes against the wall, to turn waits into seconds.
        site_time: Turns a time of the wall into one of the site's clock, in microseconds.
        reads_observations: Listen to the observation lanes of streams read here (base sites).
        on_command: Called with verb and command for verbs the host does not know.
        on_own_state: Called with the state under our own id, and whether it was retained.
        on_own_link: Called with the topic levels of a link retained under our own id.
        on_step: Called after each step, with whether the broker is there.
        on_missing: Called with packs that will never come.
        on_withdrawn: Called with losses that are none.
        published: What this site has published of its streams.
        meter: Returns what the process has counted beside the host, for reports on the site.
        settings: How the engine works until it is told otherwise.
        stopped: Where queries are noted that must not run again.
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        engine: RecordedSite,
        client: MessageClient,
        topics: Topics,
        clock: Clock,
        *,
        grace_seconds: float,
        tick_seconds: float,
        speed: float = 1.0,
        reads_observations: bool = False,
        on_command: Callable[[str, Command], None] | None = None,
        on_own_state: Callable[[SiteState, bool], None] | None = None,
        on_own_link: Callable[[tuple[str, ...]], None] | None = None,
        on_step: Callable[[bool], None] | None = None,
        on_missing: Callable[[Missing], None] = ignore,
        on_withdrawn: Callable[[Withdrawn], None] = ignore,
        site_time: Callable[[int], int] = int,
        published: PublishedPacks | None = None,
        meter: Meter = tuple,
        settings: SiteSettings | None = None,
        stopped: StoppedQueries | None = None,
    ) -> None:
        self._stopped = stopped
        self.engine = engine
        self.client = client
        self.topics = topics
        self.clock = clock
        self.tick_seconds = tick_seconds
        self.speed = speed
        self.batches_sent = 0
        self.steps = 0
        self.worked_seconds = 0.0
        self.defects = Defects("a step", "the site")
        self.problem = ""
        grace = int(grace_seconds * 1_000_000)
        self.membership = Membership(grace, self._site_lost, self._site_removed)
        self.dead_letters = DeadLetters(engine.site, client, topics)
        self.traffic = Traffic()
        self.left_fragments = LeftFragments()
        measured = lambda: (*measured_host(self), *meter())  # noqa: E731
        self.reports = SystemReports(engine, clock, speed=speed, meter=measured)
        self.is_untold: Callable[[str], bool] = lambda _query: False
        self.flow_reports = FlowReports(engine, client, topics, self.traffic, self._is_unfinished)
        self.lanes = ObservationLanes(client, topics) if reads_observations else None
        self.fills = WindowFills(engine, client, topics, clock, is_base=reads_observations)
        self.fills.say = self.say
        self.fills.catch_up = lambda: self._step_or_report(time.monotonic())
        self.inbox = SiteInbox(
            self, on_command=on_command, on_own_state=on_own_state, on_own_link=on_own_link
        )
        self._on_step = on_step
        self.site_time = site_time
        packs = published or PublishedPacks(engine.epoch)
        self.pack_answers = PackAnswers(engine.site, client, topics, packs)
        self.pack_requests = PackRequests(
            *(engine, client, topics, clock, self.inbox.logs),
            on_due=self._count_due,
            on_missing=on_missing,
            on_withdrawn=on_withdrawn,
            on_change=self.flow_reports.look_again,
        )
        self._own_settings = settings or SiteSettings()
        self._wake = asyncio.Event()
        self._requests = ResyncRequests()
        self._snapshots_due: float | None = None
        self.configure(None)

    @property
    def site(self) -> str:
        """This site's id."""
        return self.engine.site

    def _is_unfinished(self, query: str) -> bool:
        whole = self.inbox.is_whole(query)
        whole = whole and not self.fills.is_filling(query, time.monotonic())
        return not whole or self.reports.is_new(query) or self.is_untold(query)

    async def start(self) -> None:
        """Register callbacks and subscribe; call once, right after connecting.

        Raises:
            SubscribeRefused: The broker does not let us read what is ours.
        """
        self.client.on_messages(self._on_messages)
        self.client.on_arrival(self._glance)
        self.client.on_connection(self._on_connection)
        topics, me = self.topics, self.site
        await self.client.subscribe(
            topics.state("+"),
            topics.fragment("+", me),
            topics.exchange("+", me, "+"),
            topics.command(me, "+"),
            topics.request(me),
            topics.settings(me),
            topics.fill(me),
            *(topics.source(), topics.interest()),
        )

    def _glance(self, message: Message) -> None:
        """Interrupt the recursions of a query that is being stopped; called on the network thread.

        The message waits behind a step that may work on that very query for minutes.
        """
        if message.payload or not message.topic.startswith(f"{self.topics.root}/"):
            return
        match self.topics.parts(message.topic):
            case ["q", query, "frag", to] if to == self.site:
                self.engine.interrupt(query)

    async def run(self) -> None:
        """Step whenever there is something to do, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stepping())
            if self.lanes is not None:
                group.create_task(self.lanes.run())

    def wake(self) -> None:
        """Ask for a step soon, after something was ingested."""
        self._wake.set()

    def configure(self, settings: SiteSettings | None) -> None:
        """Let the engine work otherwise from the next step on; None: as at the beginning."""
        used = settings or self._own_settings
        self.engine.configure(used)
        self.reports.seconds = used.report_seconds
        self._wake.set()

    def report_failure(self, query: str, failure: FederationError) -> None:
        """Tell whoever started a query that it does not run here, and why."""
        log.warning("query %s stopped here: %s", query, failure.message)
        self.say(
            query,
            QueryProblem(failure.code, failure.message, failure.hint, wall_clock(), self.site),
        )

    def dropped(self, query: str) -> None:
        """Note that a query is wanted nowhere any more."""
        if self._stopped is not None:
            self._stopped.discard(query)

    def say(self, query: str, problem: QueryProblem | None) -> None:
        """Publish what is wrong with a query here; None: nothing is any more."""
        payload = b"" if problem is None else encode_json(problem)
        publish_or_warn(self.client, self.topics.error(query, self.site), payload, retain=True)

    # Stepping ---------------------------------------------------------------------------------

    async def _stepping(self) -> None:
        while True:
            await self._sleep()
            self._wake.clear()
            began = time.monotonic()
            self._step_or_report(began)
            # A busy site works half of the time at most: the longer a step takes, the more the
            # next one takes in at once. An idle one answers at once.
            took = time.monotonic() - began
            await asyncio.sleep(min(max(took, SHORTEST_REST), self.tick_seconds))

    def _step_or_report(self, now: float) -> None:
        """Step; a defect outside of queries is counted and logged, and the site goes on.

        A site that cannot step any more ends: it would only seem to answer.
        """
        try:
            self._step(now)
            self.defects.passed()
        except Exception as error:
            if not self.defects.survives(error):
                raise
            self.problem = f"a defect interrupted a step: {error!r:.200}"
            # What the step was to send is lost with it: every channel begins with a snapshot.
            self._snapshots_due = now + FULL_PAUSE

    async def _sleep(self) -> None:
        seconds = self._seconds_to_next()
        if seconds <= 0 or self._wake.is_set():
            return
        # Not asyncio.wait_for: it loses a cancellation that meets the event.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _seconds_to_next(self) -> float:
        now = time.monotonic()
        waits = [LONGEST_SLEEP]
        report = self.reports.next_due()
        if report is not None:
            waits.append(report - now)
        wakeup = self.engine.next_wakeup()
        if wakeup is not None:
            waits.append((wakeup - self.clock()) / 1_000_000 / self.speed)
        deadline = self.membership.next_deadline()
        if deadline is not None:
            waits.append(deadline / 1_000_000 - now)
        if self.client.connected:
            times = (
                self._snapshots_due,
                self._requests.next_due(self.engine.unsynchronised()),
                *(self.inbox.logs.next_due(), self.left_fragments.next_due()),
                self.flow_reports.next_due(now),
                self.fills.next_due(),
            )
            waits.extend(moment - now for moment in times if moment is not None)
        return min(waits)

    def _step(self, now: float) -> None:
        self.membership.check(int(now * 1_000_000))
        for name in self._stopped_meanwhile(now):
            log.info("%s was withdrawn while the broker was away", name)
            self.inbox.withdrawn(name)
        self._send_snapshots_if_due(now)
        self.reports.publish(now)
        began = time.perf_counter()
        result = self.engine.step(self.clock())
        self.worked_seconds += time.perf_counter() - began
        self.steps += 1
        for query, failure in result.failures:
            self.report_failure(query, failure)
        for outgoing in result.outgoing:
            self._send(outgoing, now)
        self._request_resyncs(now)
        self.pack_requests.follow(now)
        self.fills.ask(now)
        self._tell_forgotten(result.forgets)
        self.flow_reports.publish(now)
        if self._on_step is not None:
            self._on_step(self.client.connected)

    def _stopped_meanwhile(self, now: float) -> list[str]:
        """Return what was withdrawn while the broker was away; see `SiteInbox.withdrawn`.

        What the broker retains is known by then; so gateways that are not among it, although their
        readings were read here, were removed meanwhile.
        """
        due = self.left_fragments.next_due()
        if due is None or now < due:
            return []
        for site in sorted(self.engine.origins() - self.membership.known()):
            self._site_removed(site)
        for site in sorted(self.inbox.logs.silent()):
            self.inbox.logs.removed(site, self.clock())
        running = (*self.engine.queries, *self.inbox.orders.names())
        return self.left_fragments.stopped(running, now)

    def _send_snapshots_if_due(self, now: float) -> None:
        due = self._snapshots_due
        if due is not None and now >= due and self.client.connected:
            self._snapshots_due = None
            self.engine.resync_all()

    def _send(self, outgoing: Outgoing, now: float) -> None:
        """Publish a batch. One that cannot go is made good by a snapshot of every channel."""
        if self._snapshots_due is not None:
            return
        if not self.client.connected:
            self._snapshots_due = now
            return
        topics, me, query, to = self.topics, self.site, outgoing.query, outgoing.destination
        topic = topics.exchange(query, to, me) if to else topics.output(query, me)
        try:
            payload = encode_packed(outgoing.batch)
            self.client.publish(topic, payload)
        except QueueFull:
            log.warning("too many messages wait for the broker; snapshots will follow")
            self._snapshots_due = now + FULL_PAUSE
        except WireError as error:
            self.engine.uninstall(query)
            self.report_failure(query, InternalError(f"query {query}: {error.message}"))
        else:
            self.batches_sent += 1
            self.traffic.sent(outgoing, len(payload))

    def _request_resyncs(self, now: float) -> None:
        waiting = self.engine.unsynchronised()
        self.traffic.waiting(waiting, now)
        if not self.client.connected:
            return
        for query, sender in self._requests.due(waiting, now):
            command = Command(query=query, channel=self.site)
            topic = self.topics.request(sender, "resync", self.site)
            publish_or_warn(self.client, topic, encode_json(command))

    def _tell_forgotten(self, forgets: Iterable[Forget]) -> None:
        """Tell senders what they need not remember; what gets lost is told with the next one."""
        if not self.client.connected:
            return
        for told in forgets:
            command = forget_command(told, self.site)
            topic = self.topics.request(told.sender, "forget", self.site)
            publish_or_warn(self.client, topic, encode_json(command))

    # What comes in ----------------------------------------------------------------------------

    def _site_lost(self, site: str, epoch: int) -> None:
        log.warning("site %s is lost: its rows leave every result", site)
        self.engine.site_lost(site, epoch)

    def _site_removed(self, site: str) -> None:
        log.info("site %s was removed permanently: its watermarks are discarded", site)
        self.engine.site_removed(site)

    def _on_connection(self, connected: bool) -> None:
        if connected:
            now = time.monotonic()
            self._snapshots_due = now
            self.membership.reconnected(int(now * 1_000_000))
            self.flow_reports.forget()
            self._requests.want(self.engine.senders())
            mark = Command(id=self.left_fragments.reconnected())
            publish_or_warn(self.client, self.topics.command(self.site, "mark"), encode_json(mark))
        else:
            self.inbox.logs.cut_off(self.clock())
        self._wake.set()

    def _count_due(self, due: list[Message]) -> None:
        self.inbox.count(due)
        self._wake.set()

    def _on_messages(self, burst: list[Message]) -> None:
        for message in burst:
            self.inbox.take(message)
        self._wake.set()
