"""Many sites in one process over a network that delays, repeats and loses what it may.

Everything random comes from one seed, so a failing run can be repeated exactly. The network keeps
what MQTT keeps: a channel delivers in order, everything else happens in any order. A will is
delivered behind the last message of the site that died.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from stream_engine.exchange.channel_outbox import RESULT
from stream_engine.site.site_engine import SiteEngine
from stream_engine.site.step_result import Forget, StepResult
from stream_engine.state.watermark import HERE
from streamsql.algebra.operators import Scan
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.errors import FederationError
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch, FlowReport

CONSOLE = "console"
"""Where results go: the receiving end that every query has."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities of what may go wrong with a message."""

    loss: float = 0.0
    repetition: float = 0.0


@dataclass(slots=True)
class Traffic:
    """Messages and encoded bytes by (from, to), and the number of requests for a snapshot."""

    messages: dict[tuple[str, str], int] = field(default_factory=dict)
    bytes: dict[tuple[str, str], int] = field(default_factory=dict)
    requests: int = 0

    @property
    def total_messages(self) -> int:
        """All messages."""
        return sum(self.messages.values())

    @property
    def total_bytes(self) -> int:
        """All bytes."""
        return sum(self.bytes.values())


@dataclass(frozen=True, slots=True)
class _Payload:
    query: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class _Will:
    """The sender died in an epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class _Request:
    """The sender wants a snapshot of a query's channel; `channel` is "" for the result."""

    query: str
    channel: str


@dataclass(frozen=True, slots=True)
class _Told:
    """The sender needs no more of what it names."""

    told: Forget


Flows = dict[str, FlowReport | None]
"""Flow reports of the channels of a query, by site."""

_Message = _Payload | _Will | _Request | _Told


class UnsettledError(AssertionError):
    """The network did not come to rest within the allowed number of actions."""


class Network:
    """The sites that are up, the channels between them, and a console that takes results."""

    def __init__(
        self, sites: Sequence[str], *, seed: int = 0, faults: Faults | None = None
    ) -> None:
        self.now = 0
        self.sites = {site: self.new_site(site, 1) for site in sites}
        self.failures: list[tuple[str, str, FederationError]] = []
        self.traffic = Traffic()
        self.faults = faults or Faults()
        self._random = random.Random(seed)  # noqa: S311  (adversary, not secret)
        self._epochs = dict.fromkeys(sites, 1)
        self._channels: dict[tuple[str, str], deque[_Message]] = {}
        self._bundles: dict[str, FragmentBundle] = {}
        self._scans: dict[str, dict[str, Scan]] = {site: {} for site in sites}
        self._console: dict[tuple[str, str], ReceivingChannel] = {}
        self._to_step: dict[str, None] = {}
        self._asked: dict[tuple[str, str, str], None] = {}

    def new_site(self, site: str, epoch: int) -> SiteEngine:
        """Return a site without sources and queries."""
        return SiteEngine(site, epoch)

    def declare(self, site: str, scan: Scan) -> None:
        """Give a site a source; it has it again after a restart, without rows."""
        self._scans[site][scan.source] = scan
        self.sites[site].declare(scan)

    def install(self, bundle: FragmentBundle, *, at: Sequence[str] | None = None) -> None:
        """Install a query at its sites that are up, or at some of them only, now."""
        self._bundles[bundle.query] = bundle
        for site in self.sites if at is None else at:
            self.sites[site].install(bundle)
            self._to_step[site] = None

    def uninstall(self, query: str) -> None:
        """Stop a query at its sites that are up; what is under way of it means nothing any more."""
        del self._bundles[query]
        for site, engine in self.sites.items():
            engine.uninstall(query)
            self._to_step[site] = None
        for name, sender in list(self._console):
            if name == query:
                del self._console[(name, sender)]

    def ingest(
        self, site: str, source: str, events: Sequence[SourceEvent], origin: str = HERE
    ) -> None:
        """Let something happen to a source at a site that is up."""
        self.sites[site].ingest(source, events, origin)
        self._to_step[site] = None

    def advance(self, now: int) -> None:
        """Move the time of all sites."""
        self.now = max(now, self.now)
        self._to_step.update(dict.fromkeys(self.sites))

    def kill(self, site: str, *, in_flight_survives: bool = True) -> None:
        """Let a site die: its will reaches the others behind its messages, if these survive."""
        del self.sites[site]
        self._to_step.pop(site, None)
        for sender, receiver in list(self._channels):
            if receiver == site or (sender == site and not in_flight_survives):
                del self._channels[(sender, receiver)]
        for other in (*self.sites, CONSOLE):
            self._send(site, other, _Will(self._epochs[site]))

    def restart(self, site: str) -> None:
        """Start a dead site with a new epoch, its sources (empty) and its queries."""
        self._epochs[site] += 1
        engine = self.sites[site] = self.new_site(site, self._epochs[site])
        for scan in self._scans[site].values():
            engine.declare(scan)
        for bundle in self._bundles.values():
            engine.install(bundle)
        self._to_step[site] = None

    def disconnect(self, site: str) -> None:
        """Let the others hold a living site for dead: its will is sent, but it lives on."""
        for other in (*self.sites, CONSOLE):
            if other != site:
                self._send(site, other, _Will(self._epochs[site]))

    def settle(self, *, limit: int = 20_000) -> int:
        """Deliver and step in random order until nothing moves; return the number of actions.

        Faults happen until half of the limit is used up, then the network is perfect, so that a
        correct system always comes to rest.

        Raises:
            UnsettledError: It does not within `limit` actions.
        """
        for action in range(limit):
            if not self.act(faulty=action < limit // 2) and not self._repair():
                return action
        raise UnsettledError(f"still busy after {limit} actions")

    def act(self, *, faulty: bool = True) -> bool:
        """Do one thing that can be done, chosen at random; return whether there was one."""
        choices: list[tuple[str, str] | str] = [c for c, queue in self._channels.items() if queue]
        choices.extend(self._to_step)
        if not choices:
            return False
        chosen = self._random.choice(choices)
        if isinstance(chosen, str):
            del self._to_step[chosen]
            site = self.sites[chosen]
            self._collect(chosen, self.step(chosen))
            if site.queues.batches:
                self._to_step[chosen] = None
        else:
            self._deliver(*chosen, faulty=faulty)
        return True

    def step(self, site: str) -> StepResult:
        """Let a site step."""
        return self.sites[site].step(self.now)

    def result(self, query: str) -> Delta:
        """Return the console's relation: the sum of what all result sites of the plan have sent.

        That of a silent query, which no site sends, is what the sites have.
        """
        total: Delta = {}
        if self._bundles[query].silent:
            for site in self.sites.values():
                accumulate(total, site.kept_result(query))
            return total
        version = self._bundles[query].version
        for (name, _site), channel in self._console.items():
            if name == query and channel.version == version:
                for contents in channel.contents.values():
                    accumulate(total, contents)
        return total

    def state_rows(self) -> dict[str, int]:
        """Return how many rows the operators of each site remember."""
        return {
            name: sum(
                operator.state_rows
                for fragment in site.statistics()
                for operator in fragment.operators
            )
            for name, site in self.sites.items()
        }

    def _collect(self, site: str, result: StepResult) -> None:
        """Put what a step produced on the network."""
        for outgoing in result.outgoing:
            receiver = CONSOLE if outgoing.destination == RESULT else outgoing.destination
            payload = encode_packed(outgoing.batch)
            key = (site, receiver)
            self.traffic.messages[key] = self.traffic.messages.get(key, 0) + 1
            self.traffic.bytes[key] = self.traffic.bytes.get(key, 0) + len(payload)
            self._send(site, receiver, _Payload(outgoing.query, payload))
        for query, sender in result.resyncs:
            self._request(query, site, sender)
        for told in result.forgets:
            self._send(site, told.sender, _Told(told))
        self.failures.extend((site, query, error) for query, error in result.failures)

    def _request(self, query: str, receiver: str, sender: str) -> None:
        """Ask for a snapshot, but not again before the timer fires (see `_repair`)."""
        if (query, receiver, sender) not in self._asked:
            self._asked[(query, receiver, sender)] = None
            self._send(receiver, sender, _Request(query, receiver))
            self.traffic.requests += 1

    def _send(self, sender: str, receiver: str, message: _Message) -> None:
        if receiver == CONSOLE or receiver in self.sites:
            self._channels.setdefault((sender, receiver), deque()).append(message)

    def _deliver(self, sender: str, receiver: str, *, faulty: bool) -> None:
        """Deliver the first message of a channel, or lose it, or deliver it and keep a copy."""
        queue = self._channels[(sender, receiver)]
        message = queue[0]
        chance = self._random.random() if faulty and not isinstance(message, _Will) else 1.0
        if chance >= self.faults.loss + self.faults.repetition or chance < self.faults.loss:
            queue.popleft()
        if chance < self.faults.loss:
            return
        if receiver == CONSOLE:
            self._show(sender, message)
            return
        site = self.sites[receiver]
        match message:
            case _Payload(query, payload):
                site.receive(query, sender, decode_packed(payload, DeltaBatch))
            case _Request(query, channel):
                site.resync(query, RESULT if channel == CONSOLE else channel)
            case _Will(epoch):
                site.site_lost(sender, epoch)
            case _Told(told):
                site.forget(sender, told)
        self._to_step[receiver] = None

    def _show(self, sender: str, message: _Message) -> None:
        """Let the console take a result in."""
        match message:
            case _Payload(query, payload) if query in self._bundles:
                batch = decode_packed(payload, DeltaBatch)
                bundle = self._bundles[query]
                channel = self._console.get((query, sender))
                if channel is None or channel.version < bundle.version:
                    channel = self._console[(query, sender)] = ReceivingChannel(
                        version=bundle.version, streams=bundle.streams
                    )
                if channel.accept(batch)[0] == Reception.GAP:
                    self._request(query, CONSOLE, sender)
            case _Will():
                for (_query, site), channel in self._console.items():
                    if site == sender:
                        channel.lose_sender()
            case _Payload():
                pass  # of a query that is gone
            case _Request() | _Told():
                raise AssertionError("nobody asks the console, or tells it to forget")

    def _repair(self) -> bool:
        """Ask again where a snapshot or a request for one was lost; return whether any was.

        This stands for a host's timer: it asks again while a channel is not synchronised, and
        compares the sequence numbers of flow reports, by which the loss of the last message shows.
        """
        self._asked = {}
        asked = False
        for name, bundle in self._bundles.items():
            flows = {site: engine.flow(name) for site, engine in self.sites.items()}
            for receiver in (*self.sites, CONSOLE):
                for sender in self._behind(name, bundle, receiver, flows):
                    self._request(name, receiver, sender)
                    asked = True
        return asked

    def _behind(self, query: str, bundle: FragmentBundle, receiver: str, flows: Flows) -> list[str]:
        """Return the living senders of which a receiver lacks messages."""
        behind = []
        received: dict[str, int] = {}
        lives: dict[str, int | None] = {}
        if receiver == CONSOLE:
            for (name, sender), channel in self._console.items():
                if name == query and channel.synchronised:
                    received[sender], lives[sender] = channel.expected, channel.epoch
        elif (flow := flows[receiver]) is not None:
            received, lives = flow.received, {**flow.lives}
        to = RESULT if receiver == CONSOLE else receiver
        for sender, sent in flows.items():
            if sent is None or to not in sent.sent or sent.version != bundle.version:
                continue
            if sent.sent[to] != received.get(sender) or lives.get(sender) != sent.epoch:
                behind.append(sender)
        return behind
