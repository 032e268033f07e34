"""Runs an engine site: inbox in, step, outbox out; resynchronises after every interruption.

The engine is pure; this is its clock and its network. What arrives within one tick is one batch.
While the broker is away nothing is queued: on reconnecting every channel sends a snapshot, which
the receivers turn into the exact difference.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from gateway.clock import Clock
from gateway.site.membership import Membership
from gateway.site.observation_reader import ObservationReader
from messaging import Message, MessageClient, QueueFull
from stream_engine.site import SiteEngine
from streamsql.errors import FederationError, WireError
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import (
    Command,
    DeadLetter,
    DeltaBatch,
    FlowReport,
    QueryProblem,
    SiteState,
)
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

RESYNC_INTERVAL = 1.0
FLOW_INTERVAL = 0.1
MAX_DEAD_KINDS = 1_000


class SiteHost:
    """Hosts one `SiteEngine` on a `MessageClient`.

    Args:
        speed: How fast the site's clock passes against the wall, to turn waits into seconds.
        reads_observations: Listen to the observation lanes of streams that fragments here read
            directly (base sites).
        on_command: Called with verb and command for verbs the host does not know.
        on_own_state: Called with the retained state under our own id (a stolen id shows there).
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        engine: SiteEngine,
        client: MessageClient,
        topics: Topics,
        clock: Clock,
        *,
        grace_seconds: float,
        tick_seconds: float,
        speed: float = 1.0,
        reads_observations: bool = False,
        on_command: Callable[[str, Command], None] | None = None,
        on_own_state: Callable[[SiteState], None] | None = None,
    ) -> None:
        self.engine = engine
        self.client = client
        self.topics = topics
        self.clock = clock
        self.tick_seconds = tick_seconds
        self.speed = speed
        self.reads_observations = reads_observations
        self.membership = Membership(int(grace_seconds * 1_000_000), self._site_lost)
        self.batches_sent = 0
        self.batches_received = 0
        self.bad_payloads = 0
        self._on_command = on_command
        self._on_own_state = on_own_state
        self._observations = ObservationReader()
        self._listening: set[str] = set()
        self._listener: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._resynced_at: dict[tuple[str, str], float] = {}
        self._owed_resyncs: set[tuple[str, str]] = set()
        self._must_resync_all = False
        self._reported_flow: dict[str, FlowReport] = {}
        self._flow_at = 0.0
        self._dead_kinds: set[tuple[str, str]] = set()

    @property
    def site(self) -> str:
        """This site's id."""
        return self.engine.site

    async def start(self) -> None:
        """Register callbacks and subscribe; call once, right after connecting."""
        self.client.on_messages(self._on_messages)
        self.client.on_connection(self._on_connection)
        topics, me = self.topics, self.site
        await self.client.subscribe(
            topics.state("+"),
            topics.fragment("+", me),
            topics.exchange("+", me, "+"),
            topics.command(me, "+"),
        )

    async def run(self) -> None:
        """Step whenever there is something to do, until cancelled."""
        while True:
            await self._sleep()
            self._wake.clear()
            self.membership.check(_wall())
            self._step()
            await asyncio.sleep(self.tick_seconds)

    def wake(self) -> None:
        """Ask for a step soon, after something was ingested."""
        self._wake.set()

    async def _sleep(self) -> None:
        if self._must_resync_all and self.client.connected:
            return
        try:
            await asyncio.wait_for(self._wake.wait(), timeout=self._seconds_to_next())
        except TimeoutError:
            return

    def _seconds_to_next(self) -> float:
        waits = [FLOW_INTERVAL if self._flow_is_due() else 5.0]
        wakeup = self.engine.next_wakeup()
        if wakeup is not None:
            waits.append((wakeup - self.clock()) / 1_000_000 / self.speed)
        deadline = self.membership.next_deadline()
        if deadline is not None:
            waits.append((deadline - _wall()) / 1_000_000)
        if self._owed_resyncs:
            waits.append(RESYNC_INTERVAL)
        return max(min(waits), 0.0)

    def _step(self) -> None:
        if self._must_resync_all and self.client.connected:
            self._must_resync_all = False
            self.engine.resync_all()
        self._ask_again()
        result = self.engine.step(self.clock())
        for query, failure in result.failures:
            self._report_failure(query, failure)
        for sent in result.outgoing:
            self._send(sent.query, sent.destination, sent.batch)
        for query, sender in result.resyncs:
            self._request_resync(query, sender)
        self._report_flow()

    def _send(self, query: str, destination: str, batch: DeltaBatch) -> None:
        if not self.client.connected:
            self._must_resync_all = True
            return
        topics, me = self.topics, self.site
        topic = topics.exchange(query, destination, me) if destination else topics.output(query, me)
        try:
            self.client.publish(topic, encode_packed(batch))
        except QueueFull:
            self._must_resync_all = True
        else:
            self.batches_sent += 1

    def _request_resync(self, query: str, sender: str) -> None:
        """Ask a sender for a snapshot, at most once a second per channel."""
        key = (query, sender)
        moment = time.monotonic()
        if moment - self._resynced_at.get(key, -RESYNC_INTERVAL) < RESYNC_INTERVAL:
            self._owed_resyncs.add(key)
            return
        self._resynced_at[key] = moment
        if self.client.connected:
            command = Command(query=query, channel=self.site)
            self._publish_small(self.topics.command(sender, "resync"), encode_json(command))

    def _ask_again(self) -> None:
        """Repeat requests that were held back, for channels that are still out of step."""
        owed, self._owed_resyncs = self._owed_resyncs, set()
        waiting = self.engine.unsynchronised()
        for key in sorted(owed & waiting):
            self._request_resync(*key)

    def _publish_small(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        try:
            self.client.publish(topic, payload, retain=retain)
        except QueueFull:
            log.warning("too many messages wait for the broker; %s not sent", topic)

    def _report_failure(self, query: str, failure: FederationError) -> None:
        log.warning("query %s stopped here: %s", query, failure.message)
        problem = QueryProblem(failure.code, failure.message, failure.hint, _wall(), self.site)
        topic = self.topics.error(query, self.site)
        self._publish_small(topic, encode_json(problem), retain=True)

    def _flow_is_due(self) -> bool:
        return any(
            self.engine.flow(query) != self._reported_flow.get(query)
            for query in self.engine.queries
        )

    def _report_flow(self) -> None:
        moment = time.monotonic()
        if moment - self._flow_at < FLOW_INTERVAL or not self.client.connected:
            return
        self._flow_at = moment
        queries = self.engine.queries
        for query in queries:
            report = self.engine.flow(query)
            if report is not None and report != self._reported_flow.get(query):
                self._reported_flow[query] = report
                payload = encode_packed(report)
                self.client.publish(self.topics.flow(query, self.site), payload, qos=0)
        for query in self._reported_flow.keys() - set(queries):
            del self._reported_flow[query]

    def _site_lost(self, site: str) -> None:
        log.warning("site %s is lost: its rows leave every answer", site)
        self.engine.site_lost(site)

    def _on_connection(self, connected: bool) -> None:
        if connected:
            self._must_resync_all = True
            self._reported_flow.clear()
            for query, sender in sorted(self.engine.senders()):
                self._request_resync(query, sender)
        self._wake.set()

    def _on_messages(self, burst: list[Message]) -> None:
        for message in burst:
            try:
                self._dispatch(message)
            except FederationError as error:
                self._dead_letter(message, error)
        self._wake.set()

    def _dispatch(self, message: Message) -> None:
        match self.topics.parts(message.topic):
            case ["q", query, "x", _to, sender]:
                self.batches_received += 1
                batch = decode_packed(message.payload, DeltaBatch)
                self.engine.receive(query, sender, batch)
            case ["gw", gateway, "obs" | "hist" as lane, stream]:
                events = self._observations.events(gateway, lane, stream, message.payload)
                if events:
                    self.engine.ingest(stream, events)
            case ["q", query, "frag", _me]:
                self._install(query, message.payload)
            case ["gw", site, "state"]:
                self._heard_state(site, message.payload)
            case ["gw", _me, "cmd", verb]:
                self._command(verb, decode_json(message.payload, Command))
            case _:
                raise WireError(f"nobody here reads {message.topic!r:.200}")

    def _install(self, query: str, payload: bytes) -> None:
        if not payload:
            self.engine.uninstall(query)
            self._listen(self._observations.uninstalled(query))
            return
        bundle = decode_packed(payload, FragmentBundle)
        if bundle.query != query:
            raise WireError(f"a bundle of query {bundle.query!r:.80} on the topic of {query!r:.80}")
        self.engine.install(bundle)
        if self.reads_observations:
            self._listen(self._observations.installed(bundle, self.site))
        log.info("query %s version %d installed", query, bundle.version)

    def _listen(self, streams: set[str]) -> None:
        """Subscribe to the observation lanes of exactly these streams."""
        if streams == self._listening:
            return
        new, old = streams - self._listening, self._listening - streams
        self._listening = streams
        before = self._listener

        async def change() -> None:
            if before is not None:
                await before
            if new:
                await self.client.subscribe(*self._lanes(new))
            if old:
                await self.client.unsubscribe(*self._lanes(old))

        self._listener = asyncio.create_task(change())

    def _lanes(self, streams: set[str]) -> list[str]:
        topics = self.topics
        lanes = [topics.observation("+", stream) for stream in sorted(streams)]
        return lanes + [topics.history("+", stream) for stream in sorted(streams)]

    def _heard_state(self, site: str, payload: bytes) -> None:
        if not payload:
            return
        state = decode_json(payload, SiteState)
        if site != self.site:
            self.membership.heard(site, state, _wall())
        elif self._on_own_state is not None:
            self._on_own_state(state)

    def _command(self, verb: str, command: Command) -> None:
        if verb == "resync":
            destination = "" if command.channel == "out" else command.channel
            self.engine.resync(command.query, destination)
        elif verb == "flow":
            self._reported_flow.clear()
        elif verb == "flow":
            self._reported_flow.clear()  # a coordinator that has just started knows no counts
        elif self._on_command is not None:
            self._on_command(verb, command)

    def _dead_letter(self, message: Message, error: FederationError) -> None:
        """Count a bad payload, log it once per sender and kind, and keep a copy on the broker."""
        self.bad_payloads += 1
        kind = (message.topic, error.message[:60])
        if kind in self._dead_kinds:
            return
        if len(self._dead_kinds) < MAX_DEAD_KINDS:
            self._dead_kinds.add(kind)
        log.warning("ignored a bad payload on %s: %s", message.topic, error.message)
        letter = DeadLetter(
            message.topic, error.message, _wall(), message.payload[:2000].decode("utf-8", "replace")
        )
        self._publish_small(self.topics.dead(self.site), encode_json(letter))


def _wall() -> int:
    return time.time_ns() // 1000
