"""A query's fragments at one site: their circuits, and what goes in and out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from stream_engine.circuit.circuit import Circuit, OperatorStatistics
from stream_engine.circuit.closing import ClosingNode
from stream_engine.circuit.compiler import compile_plan
from stream_engine.circuit.nodes import RecursionStatistics
from stream_engine.exchange.inbox import Arrivals, Inbox, oldest, split_port
from stream_engine.exchange.outbox import RESULT, Outbox
from stream_engine.exchange.peered_fixpoint import PeeredFixpoint
from stream_engine.exchange.routing import route
from stream_engine.operators.operator import RecursiveOperator
from stream_engine.recursion.options import RecursionOptions
from stream_engine.recursion.program import never
from stream_engine.recursion.strategies import recursive_operator
from stream_engine.scheduling.measures import QueueMeasures
from stream_engine.scheduling.query_measures import measures_of_queues
from stream_engine.scheduling.query_work import QueryWork
from stream_engine.scheduling.site_work import SiteWork, Stopwatch
from stream_engine.scheduling.waiting import may_wait
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.operators import Fixpoint, RemoteSource, Scan, ScanPart, walk_plan
from streamsql.data.delta import Delta
from streamsql.errors import InternalError
from streamsql.wire.channels import Reception
from streamsql.wire.fragments import Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch, FlowReport, RecursionReport
from streamsql.wire.partitioning import HomeOwner


@dataclass(slots=True)
class SourceChanges:
    """What a query is given of the site's sources in one step; it changes nothing of it.

    Attributes:
        deltas: Changes by scan; empty ones are left out.
        oldest: Time of the oldest reading behind each change; none for expiry.
        current: Returns what a query that starts now begins with.
    """

    deltas: Mapping[Scan, TimedDelta]
    oldest: Mapping[Scan, int]
    current: Callable[[Scan], TimedDelta]


@dataclass(frozen=True, slots=True)
class FragmentStatistics:
    """What a fragment's operators have done at this site."""

    query: str
    version: int
    fragment: str
    operators: tuple[OperatorStatistics, ...]


class InstalledQuery:
    """The fragments of one bundle that run at one site.

    Attributes:
        bundle: The whole plan.
        scans: Every source the fragments here read.
        senders: Remote sites that send to the fragments here.
        runs_through: Whether every step has to work until nothing waits between its operators.
    """

    def __init__(  # noqa: PLR0913  (what runs, where, from which numbers on, and until when)
        self,
        bundle: FragmentBundle,
        *,
        site: str,
        epoch: int,
        first: int,
        first_life: int = 0,
        interrupted: Callable[[], bool] = never,
    ) -> None:
        """Compile the fragments.

        Args:
            bundle: The whole plan.
            site: This site's id.
            epoch: This site's epoch.
            first: First sequence number of outgoing channels.
            first_life: Lives that the recursions have had here, in this version and epoch.
            interrupted: Whether it is to stop at once; recursions ask in the middle of a change.

        Raises:
            InternalError: The bundle contradicts itself.
        """
        self.bundle = bundle
        self.epoch = epoch
        self._site = site
        fragments = _producers_first(bundle, site)
        self._circuits: dict[str, Circuit] = {
            fragment.id: compile_plan(
                fragment.plan, _fixpoints_at(site, fragment, epoch, first_life, interrupted)
            )
            for fragment in fragments
        }
        self._plan = [(fragment, self._circuits[fragment.id]) for fragment in fragments]
        self._timed = [circuit for circuit in self._circuits.values() if circuit.is_timed]
        self._recursions: dict[str, PeeredFixpoint] = {
            f"{fragment.id}/{number}": fixpoint
            for fragment in fragments
            for number, fixpoint in enumerate(self._circuits[fragment.id].fixpoints)
            if isinstance(fixpoint, PeeredFixpoint)
        }
        links = _Links(bundle, site, self._recursions)
        self._inbox = Inbox(bundle.version, links.incoming)
        self._outbox = Outbox(
            version=bundle.version,
            epoch=epoch,
            first=first,
            ports=links.outgoing,
            recursions=self._recursions,
        )
        self._closing = [
            node.closing
            for circuit in self._circuits.values()
            for node in circuit.nodes
            if isinstance(node, ClosingNode)
        ]
        self.runs_through = not may_wait(bundle, site)
        self._work: QueryWork | None = None
        self._fresh = True
        self._starting = False
        self._recursive_news = False
        self._wakeup: int | None = None
        self.scans: tuple[Scan, ...] = tuple(
            dict.fromkeys(scan for circuit in self._circuits.values() for scan in circuit.scans)
        )
        self.senders: tuple[str, ...] = tuple(self._inbox.channels)
        self._holds = False
        self._hold()

    def _hold(self) -> None:
        """Let no window close before every sender has been heard, given up, or waited for."""
        self._holds = bool(self._closing) and not self._inbox.is_complete
        if self._holds:
            for closing in self._closing:
                closing.hold(_longest_idle(self.bundle))

    def _release_if_complete(self) -> None:
        if self._holds and self._inbox.is_complete:
            for closing in self._closing:
                closing.release()
        self._holds = self._holds and not self._inbox.is_complete

    def receive(self, sender: str, batch: DeltaBatch) -> Reception:
        """Take a batch in; it is worked on in the next step.

        Raises:
            WireError: It does not fit the plan.
        """
        reception = self._inbox.accept(sender, batch)
        port, within = split_port(batch.port)
        if within and reception == Reception.ACCEPTED:
            self._recursions[port].receive(sender, within, batch.annotated, batch.kills)
            self._recursive_news = True
        return reception

    def lose(self, site: str, epoch: int | None) -> None:
        """Retract, in the next step, everything a site has sent."""
        for recursion in self._recursions.values():
            recursion.lose(site, epoch)
        self._recursive_news = bool(self._recursions)
        self._inbox.lose(site, epoch)

    def request_snapshot(self, destination: str) -> bool:
        """Send a channel's contents in the next step; False if there is no such channel."""
        return self._outbox.request_snapshot(destination)

    def request_all_snapshots(self) -> None:
        """Send the contents of every channel in the next step."""
        for destination in self._outbox.channels:
            self._outbox.request_snapshot(destination)

    def unsynchronised(self) -> list[str]:
        """Return the senders whose channel waits for a snapshot."""
        return [by for by, channel in self._inbox.channels.items() if not channel.synchronised]

    def has_work(self, sources: SourceChanges, now: int) -> bool:
        """Whether a step would do anything."""
        if self.is_busy:
            return True
        deltas = sources.deltas
        for scan in self.scans:
            if scan in deltas:
                return True
        return self._wakeup is not None and self._wakeup <= now

    @property
    def is_busy(self) -> bool:
        """Whether something waits for the next step."""
        work = self._work
        return not self.is_at_rest or (work is not None and work.batches > 0)

    @property
    def is_at_rest(self) -> bool:
        """Whether everything that came in has at least reached the queues between operators."""
        news = self._fresh or self._recursive_news
        if self._holds and self._inbox.is_complete:
            return False
        return not news and self._inbox.is_empty and self._outbox.is_empty

    def step(
        self, sources: SourceChanges, now: int, stopwatch: Stopwatch | None = None
    ) -> list[tuple[str, DeltaBatch]]:
        """Run every affected fragment once, producers first; return (destination, batch) pairs.

        Args:
            sources: Of the site.
            now: Microseconds since 1970 UTC.
            stopwatch: To measure every operator with, or None.

        Raises:
            RecursionLimitError: A recursion grew past its limit.
        """
        sources = self._begin(sources)
        self._recursive_news = False
        arrived = self._inbox.take()
        for fragment, circuit in self._plan:
            self._run(fragment, circuit, sources, arrived, now, stopwatch)
        for port, recursion in self._recursions.items():
            for message in recursion.drain():
                self._outbox.collect_recursive(port, message)
        self._note_wakeup()
        return list(self._outbox.flush(now))

    # --- operators one by one -------------------------------------------------------------------

    def admit(self, sources: SourceChanges, now: int, site_work: SiteWork) -> None:
        """Put what has come in into the queues between operators, which the site works on.

        For queries that need not run through (`runs_through`). `flush` has to follow.
        """
        self._starting = self._starting or self._fresh
        sources = self._begin(sources)
        self.queues(site_work).admit(
            sources.deltas,
            sources.oldest,
            self._inbox.take(),
            now=now,
            batch=site_work.batch,
            stopwatch=site_work.stopwatch if site_work.is_measured else None,
        )
        self._note_wakeup()

    def queues(self, site_work: SiteWork) -> QueryWork:
        """Return the queues between the operators; the site has them from the first call on."""
        if self._work is None:
            self._work = QueryWork(
                self.bundle.query,
                self._plan,
                site=self._site,
                outbox=self._outbox,
                enqueue=site_work.put,
                orders=site_work.orders,
            )
            site_work.add(self._work)
        return self._work

    def flush(self, now: int) -> list[tuple[str, DeltaBatch]]:
        """Return (destination, batch) pairs with what has been given since the last flush.

        A query that has just started gives nothing until all it began with has gone through: its
        receivers would take a part of the answer for the whole.
        """
        if self._starting:
            if self._work is not None and self._work.batches:
                return []
            self._starting = False
        return list(self._outbox.flush(now))

    @property
    def waiting(self) -> QueryWork | None:
        """The queues between the operators, if there ever were any."""
        return self._work

    def _begin(self, sources: SourceChanges) -> SourceChanges:
        """Return the changes of the sources, or all there is if this is the first step."""
        if self._holds:
            self._release_if_complete()
        if not self._fresh:
            return sources
        self._fresh = False
        return replace(sources, deltas={s: sources.current(s) for s in self.scans})

    def _note_wakeup(self) -> None:
        if self._timed:
            times = [circuit.next_wakeup() for circuit in self._timed]
            self._wakeup = min([time for time in times if time is not None], default=None)

    def _run(  # noqa: PLR0913, PLR0917  (what runs, on what, when, and how it is measured)
        self,
        fragment: Fragment,
        circuit: Circuit,
        sources: SourceChanges,
        arrived: dict[str, Arrivals],
        now: int,
        stopwatch: Stopwatch | None,
    ) -> None:
        """Let a fragment take what has changed, if it depends on anything that has."""
        ts: int | None = None
        remotes: dict[str, Delta] = {}
        for port in circuit.remotes:
            change = arrived.get(port)
            if change is not None:
                remotes[port] = change.delta
                ts = oldest(ts, change.ts)
        is_quiet = circuit.depends_on_inputs_only and not remotes
        for scan in circuit.scans:
            if scan in sources.deltas:
                is_quiet = False
                ts = oldest(ts, sources.oldest.get(scan))
        if is_quiet:
            return
        delta = circuit.step(sources.deltas, remotes, now, stopwatch)
        if delta:
            self._dispatch(fragment, delta, ts, arrived)

    @property
    def parts(self) -> tuple[dict[str, Circuit], Inbox, Outbox]:
        """What there is to save and restore: circuits by fragment, and both ends of channels."""
        return (self._circuits, self._inbox, self._outbox)

    def resume(self) -> None:
        """Go on where another life was whose state is in the parts now."""
        for circuit in self._circuits.values():
            circuit.resume()
        self._fresh = False

    def begin_again(self) -> None:
        """Hear everybody again: what senders have sent since the last snapshot is not known."""
        self._inbox.believe_in_all()
        self._hold()

    @property
    def repeated(self) -> frozenset[str]:
        """The destinations to which the last step has sent a snapshot."""
        return self._outbox.repeated

    def take_replays_wanted(self) -> list[str]:
        """Return and forget the peers whose snapshot a recursion needs.

        Their channels count as not synchronised until it arrives, so a lost request is noticed.
        """
        wanted: dict[str, None] = {}
        for recursion in self._recursions.values():
            wanted.update(recursion.replays_wanted)
            recursion.replays_wanted = {}
        for peer in wanted:
            self._inbox.channels[peer].synchronised = False
        return list(wanted)

    def next_wakeup(self) -> int | None:
        """Return when time alone changes something, or None; as of the last step."""
        return self._wakeup

    def flow(self) -> FlowReport:
        """Return the next sequence number of every channel, out and in.

        A channel that waits for a snapshot is left out of `received`. The query is settled when
        no living site is busy and both ends of every channel between living sites agree.
        """
        return FlowReport(
            version=self.bundle.version,
            epoch=self.epoch,
            sent={to: channel.sequence for to, channel in self._outbox.channels.items()},
            received={
                by: channel.expected
                for by, channel in self._inbox.channels.items()
                if channel.synchronised
            },
            busy=self.is_busy,
            recursions=tuple(self._recursion_reports()),
        )

    def _recursion_reports(self) -> Iterator[RecursionReport]:
        for name, circuit in self._circuits.items():
            for number, done in enumerate(circuit.recursion_statistics()):
                peered = self._recursions.get(f"{name}/{number}")
                yield _report(done, 1 if peered is None else peered.lives)

    def statistics(self) -> list[FragmentStatistics]:
        """Return what every operator has done."""
        bundle = self.bundle
        return [
            FragmentStatistics(bundle.query, bundle.version, name, tuple(circuit.statistics()))
            for name, circuit in self._circuits.items()
        ]

    def queue_measures(self) -> list[QueueMeasures]:
        """Return what waits between any two operators here."""
        return list(measures_of_queues(self.bundle.query, self._plan, self._work))

    def next_life(self) -> int:
        """Return how many lives the recursions that have peers have had; 0 without any."""
        return max((recursion.lives for recursion in self._recursions.values()), default=0)

    def last_sequence(self) -> int:
        """Return a sequence number that no outgoing channel has used."""
        return self._outbox.last_sequence()

    def _dispatch(
        self, fragment: Fragment, delta: Delta, ts: int | None, arrived: dict[str, Arrivals]
    ) -> None:
        """Hand a fragment's change to its consumer here and to the channels of the others."""
        if not fragment.consumer:
            self._outbox.collect(RESULT, fragment.id, delta, ts)
            return
        for destination, part in route(delta, fragment.destinations, fragment.partition).items():
            if destination == self._site:
                arrived.setdefault(fragment.id, Arrivals()).add(part, ts)
            else:
                self._outbox.collect(destination, fragment.id, part, ts)


def _fixpoints_at(
    site: str, fragment: Fragment, epoch: int, first_life: int, interrupted: Callable[[], bool]
) -> Callable[[Fixpoint], RecursiveOperator]:
    """Return the factory of the recursions of a fragment at a site."""
    sites = fragment.sites
    options = RecursionOptions(interrupted=interrupted)
    if fragment.homes:
        options = replace(options, owner=HomeOwner(dict(fragment.homes)))

    def make(node: Fixpoint) -> RecursiveOperator:
        if sites == (site,):
            return recursive_operator(node, site=site, sites=sites, epoch=epoch, options=options)

        def begin(life: int) -> RecursiveOperator:
            return recursive_operator(node, site=site, sites=sites, epoch=life, options=options)

        return PeeredFixpoint(begin, site=site, sites=sites, epoch=epoch, first_life=first_life)

    return make


def _longest_idle(bundle: FragmentBundle) -> int | None:
    """Return for how long any site may be idle, in microseconds; None without end."""
    times = [
        node.ttl
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
        if isinstance(node, Scan) and node.part == ScanPart.PROGRESS
    ]
    bounds = [time for time in times if time is not None]
    return max(bounds) if bounds and len(bounds) == len(times) else None


def _report(done: RecursionStatistics, lives: int) -> RecursionReport:
    work = done.work
    return RecursionReport(
        name=done.name,
        description=done.description,
        leaf_rows=done.leaf_rows,
        leaf_changes=done.leaf_changes,
        view_rows=done.view_rows,
        view_changes=done.view_changes,
        settles=work.settles,
        rounds=work.rounds,
        most_rounds=done.most_rounds,
        derivations=work.derivations,
        rederived=work.rederived,
        recomputed=work.recomputed,
        received_rows=work.received_rows,
        sent_rows=work.sent_rows,
        sent_kills=work.sent_kills,
        lives=lives,
    )


def _producers_first(bundle: FragmentBundle, site: str) -> list[Fragment]:
    """Return the fragments of a site, each after those that feed it.

    Raises:
        InternalError: Fragments feed each other in a circle, or read one that does not exist.
    """
    by_id = {fragment.id: fragment for fragment in bundle.fragments}
    done: dict[str, Fragment] = {}
    open_ids: list[str] = []

    def visit(fragment: Fragment) -> None:
        if fragment.id in done:
            return
        if fragment.id in open_ids:
            raise InternalError(f"fragments feed each other: {' -> '.join(open_ids)}")
        open_ids.append(fragment.id)
        for name in _remote_inputs(fragment):
            producer = by_id.get(name)
            if producer is None or producer.consumer != fragment.id:
                raise InternalError(f"fragment {fragment.id} reads {name}, which does not feed it")
            visit(producer)
        open_ids.pop()
        done[fragment.id] = fragment

    for fragment in bundle.fragments:
        visit(fragment)
    return [fragment for fragment in done.values() if site in fragment.sites]


def _remote_inputs(fragment: Fragment) -> list[str]:
    nodes = walk_plan(fragment.plan)
    return list(dict.fromkeys(n.fragment for n in nodes if isinstance(n, RemoteSource)))


class _Links:
    """The channels of one site in a plan.

    Both ends of a channel derive its ports from the same bundle in the same order.

    Attributes:
        incoming: Number of columns by (sending site, port); 0 for a recursion.
        outgoing: Ports by destination.
    """

    def __init__(self, bundle: FragmentBundle, site: str, recursions: Iterable[str]) -> None:
        self.incoming: dict[tuple[str, str], int] = {}
        self.outgoing: dict[str, list[str]] = {}
        self._site = site
        self._recursions = tuple(recursions)
        for fragment in bundle.fragments:
            self._add(fragment)

    def _add(self, fragment: Fragment) -> None:
        destinations = fragment.destinations if fragment.consumer else (RESULT,)
        if not destinations:
            raise InternalError(f"fragment {fragment.id} feeds {fragment.consumer} at no site")
        here = self._site in fragment.sites
        if here:
            self._send(fragment.id, destinations)
        if self._site in destinations:
            self._take(fragment.id, fragment.sites, len(fragment.plan.schema))
        if here:
            for port in self._recursions:
                if port.partition("/")[0] == fragment.id:
                    self._send(port, fragment.sites)
                    self._take(port, fragment.sites, 0)

    def _send(self, port: str, destinations: Iterable[str]) -> None:
        for destination in destinations:
            if destination != self._site:
                self.outgoing.setdefault(destination, []).append(port)

    def _take(self, port: str, senders: Iterable[str], width: int) -> None:
        for sender in senders:
            if sender != self._site:
                self.incoming[(sender, port)] = width
