"""A query's fragments at one site: their circuits, and both ends of their channels."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from stream_engine.circuit.circuit import Circuit, FragmentStatistics, names_read, scans_read
from stream_engine.circuit.closing_node import ClosingNode
from stream_engine.circuit.compiler import compile_plan
from stream_engine.circuit.nodes import OperatorNode
from stream_engine.exchange.channel_inbox import Arrivals, Inbox, oldest, split_port
from stream_engine.exchange.channel_outbox import Outbox
from stream_engine.exchange.forgetting import Forgetting
from stream_engine.exchange.open_feeds import OpenFeed, open_feeds
from stream_engine.exchange.peered_fixpoint import PeeredFixpoint
from stream_engine.exchange.plan_links import Links, depth_of, longest_idle, producers_first
from stream_engine.exchange.sender_sync import SenderSync
from stream_engine.exchange.slow_sites import SlowSites
from stream_engine.scheduling.query_work import QueryWork, measures_of_queues
from stream_engine.scheduling.queue_meter import QueueMeasures
from stream_engine.scheduling.site_work import SiteWork, Stopwatch
from stream_engine.scheduling.waiting import may_wait
from stream_engine.site.kept_rows import KeptRows, ReadRows
from stream_engine.site.query_recursions import (
    fixpoints_at,
    recursion_reports,
    take_replays_wanted,
)
from stream_engine.state.source_relation import SourceChanges, TimedDelta
from streamsql.algebra.operators import Scan
from streamsql.data.delta import Delta
from streamsql.wire.bundles.trimmed_bundles import is_trimmed
from streamsql.wire.channel_protocol import Reception
from streamsql.wire.fragments import Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch, FlowReport


class InstalledQuery:
    """The fragments of one bundle that run at one site.

    Args:
        bundle: The whole plan.
        site: This site's id.
        epoch: This site's epoch.
        first: First sequence number of outgoing channels.
        first_life: Incarnations that the recursions have had here, in this version and epoch.
        interrupted: Whether to stop at once; recursions ask in the middle of a change.
        former: It before it was trimmed (`trimmed_query.py`): its channels go on.

    Raises:
        InternalError: The bundle contradicts itself.

    Attributes:
        scans: Every source the fragments here read.
        senders: Remote sites that send to the fragments here.
        feeds: What it reads of other queries here.
        rank: Above those of all queries whose results it reads here.
        forgetting: Discards what the channels need not remember.
        runs_through: Whether no change may be pending between its operators after a step.
    """

    def __init__(  # noqa: PLR0913  (what runs, where, from which numbers on, and until when)
        self,
        bundle: FragmentBundle,
        *,
        site: str,
        epoch: int,
        first: int,
        first_life: int = 0,
        interrupted: Callable[[], bool] = lambda: False,
        former: "InstalledQuery | None" = None,
    ) -> None:
        self.bundle = bundle
        self.epoch = epoch
        self._site = site
        self._first = first
        fragments = producers_first(bundle, site)
        known = {} if former is None else former._circuits  # noqa: SLF001 - its own class
        self._circuits: dict[str, Circuit] = {
            f.id: known[f.id]
            if f.consumer and f.id in known
            else compile_plan(f.plan, fixpoints_at(site, f, epoch, first_life, interrupted))
            for f in fragments
        }
        self._plan = [(fragment, self._circuits[fragment.id]) for fragment in fragments]
        self._timed = [circuit for circuit in self._circuits.values() if circuit.is_timed]
        self._fillable = [circuit for circuit in self._circuits.values() if circuit.reads_logs]
        self._recursions: dict[str, PeeredFixpoint] = {
            f"{fragment.id}/{number}": fixpoint
            for fragment in fragments
            for number, fixpoint in enumerate(self._circuits[fragment.id].fixpoints)
            if isinstance(fixpoint, PeeredFixpoint)
        }
        links = Links(bundle, site, self._recursions)
        streams, read = bundle.streams, names_read(self._circuits.values())
        self._inbox = Inbox(
            bundle.version, links.incoming, streams, trimmed=is_trimmed(bundle), read=read
        )
        self._outbox = Outbox(
            version=bundle.version,
            epoch=epoch,
            first=first,
            ports=links.outgoing,
            recursions=self._recursions,
            streams=streams,
            silent=bundle.silent,
        )
        self.runs_through = not may_wait(bundle, site, self._circuits.values())
        self._work: QueryWork | None = None
        self._fresh = True
        self._starting, self._recursive_news = False, False
        self._note_wakeup()  # windows of a former one go on, though nothing arrives
        self.scans: tuple[Scan, ...] = scans_read(self._circuits.values())
        self.senders: tuple[str, ...] = tuple(self._inbox.channels)
        self.feeds: Sequence[OpenFeed] = open_feeds(bundle, site)
        self.rank = depth_of(bundle) if self.feeds else 0
        nodes = [node for circuit in self._circuits.values() for node in circuit.nodes]
        operators = [node.operator for node in nodes if isinstance(node, OperatorNode)]
        self.forgetting = Forgetting(bundle, operators, self._inbox, self._outbox)
        self._slow = SlowSites(bundle, self._inbox)
        self._kept, self._read = KeptRows(), ReadRows(self._plan)
        holds = [node.closing.hold for node in nodes if isinstance(node, ClosingNode)]
        self._sync = SenderSync(holds, self._inbox, longest_idle(bundle))
        if former is not None:
            self._fresh, self._first, self.rank = former._fresh, former._first, former.rank  # noqa: SLF001 - its own class

    def receive(self, sender: str, batch: DeltaBatch) -> Reception:
        """Ingest a batch; the next step applies it.

        Raises:
            WireError: It does not fit the plan.
        """
        reception = self._inbox.accept(sender, batch)
        port, within = split_port(batch.port)
        if within and reception == Reception.ACCEPTED:
            self._recursions[port].receive(sender, within, batch.annotated, batch.kills)
            self._recursive_news = True
        elif batch.reset and reception == Reception.ACCEPTED:
            self.forgetting.heard(batch.watermark)
        return reception

    def fill(self, source: str, rows: TimedDelta) -> None:
        """Give earlier rows of a log to the windows over it here; see `Circuit.fill`."""
        for circuit in self._circuits.values():
            circuit.fill(source, rows)

    def lose(self, site: str, epoch: int | None) -> None:
        """Retract, in the next step, everything a site has sent."""
        for recursion in self._recursions.values():
            recursion.lose(site, epoch)
        self._recursive_news = bool(self._recursions)
        self._inbox.lose(site, epoch)

    def request_snapshot(self, destination: str) -> bool:
        """Send a channel's contents in the next step; return whether there is such a channel."""
        return self._outbox.request_snapshot(destination)

    def request_all_snapshots(self) -> None:
        """Send the contents of every channel in the next step."""
        for destination in self._outbox.channels:
            self._outbox.request_snapshot(destination)

    def unsynchronised(self) -> list[str]:
        """Return the senders whose channel lacks a snapshot."""
        return [by for by, channel in self._inbox.channels.items() if not channel.synchronised]

    def has_work(self, sources: SourceChanges, now: int) -> bool:
        """Whether a step would do anything."""
        if self.is_busy or any(scan in sources.deltas for scan in self.scans):
            return True
        return self._wakeup is not None and self._wakeup <= now

    @property
    def is_busy(self) -> bool:
        """Whether work is pending for the next step."""
        return not self.is_at_rest or (self._work is not None and self._work.batches > 0)

    @property
    def waits(self) -> bool:
        """Whether what it reads of other queries here is not there, or not final."""
        return any(opened.waits for opened in self.feeds)

    @property
    def is_at_rest(self) -> bool:
        """Whether all input has at least reached the queues between operators."""
        if self._fresh or self._recursive_news or self._sync.ends_now:
            return False
        if any(circuit.is_filled for circuit in self._fillable):
            return False
        return self._inbox.is_empty and self._outbox.is_empty

    def step(
        self, sources: SourceChanges, now: int, stopwatch: Stopwatch | None = None
    ) -> list[tuple[str, DeltaBatch]]:
        """Run every affected fragment once, producers first; return (destination, batch) pairs.

        Raises:
            RecursionLimitError: A recursion grew past its limit.
        """
        if self._fresh or self._sync.is_on:
            sources = self._begin(sources)
        self._recursive_news = False
        arrived = self._inbox.take()
        for fragment, circuit in self._plan:
            self._run(fragment, circuit, sources, arrived, now, stopwatch)
        for port, recursion in self._recursions.items():
            for message in recursion.drain():
                self._outbox.collect_recursive(port, message)
        if self._timed:
            self._note_wakeup()
        self.forgetting.stepped()
        return self._outbox.flush(now)

    def admit(self, sources: SourceChanges, now: int, site_work: SiteWork) -> None:
        """Put all input into the queues between operators, which the site works on.

        For queries that need not run through (`runs_through`). `flush` has to follow.
        """
        self._starting = self._starting or self._fresh
        if self._fresh or self._sync.is_on:
            sources = self._begin(sources)
        self.queues(site_work).admit(
            sources,
            self._inbox.take(),
            now=now,
            batch=site_work.batch,
            stopwatch=site_work.stopwatch if site_work.is_measured else None,
        )
        if self._timed:
            self._note_wakeup()

    def queues(self, site_work: SiteWork) -> QueryWork:
        """Return the queues between the operators, made on the first call."""
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
        """Return (destination, batch) pairs with all output since the last flush.

        A starting query emits nothing until its initial rows are processed: its receivers would
        take a part of the answer for the whole.
        """
        if self._starting:
            if self._work is not None and self._work.batches:
                return []
            self._starting = False
        return self._outbox.flush(now)

    @property
    def waiting(self) -> QueryWork | None:
        """The queues between the operators, if there ever were any."""
        return self._work

    def _begin(self, sources: SourceChanges) -> SourceChanges:
        """Return the changes of the sources, or all their rows in the first step."""
        self._sync.poll()
        if not self._fresh:
            return sources
        self._fresh = False
        return replace(sources, deltas={s: sources.current(s) for s in self.scans})

    def _note_wakeup(self) -> None:
        times = [circuit.next_wakeup() for circuit in self._timed]
        self._wakeup: int | None = min([time for time in times if time is not None], default=None)

    def _run(  # noqa: PLR0913, PLR0917  (what runs, on what, when, and how it is measured)
        self,
        fragment: Fragment,
        circuit: Circuit,
        sources: SourceChanges,
        arrived: dict[str, Arrivals],
        now: int,
        stopwatch: Stopwatch | None,
    ) -> None:
        """Step a fragment, if anything that it depends on has changed."""
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
            stays = self._outbox.dispatch(fragment, delta, ts, here=self._site)
            if stays:
                arrived.setdefault(fragment.id, Arrivals()).add(stays, ts)

    @property
    def inbox(self) -> Inbox:
        """The rows it has received."""
        return self._inbox

    @property
    def outbox(self) -> Outbox:
        """The rows it has sent, and its result."""
        return self._outbox

    @property
    def parts(self) -> tuple[dict[str, Circuit], Inbox, Outbox]:
        """The parts to save and restore: circuits by fragment, and both ends of channels."""
        return (self._circuits, self._inbox, self._outbox)

    def resume(self) -> None:
        """Go on with the state that was restored into the parts."""
        for circuit in self._circuits.values():
            circuit.resume()
        self._fresh = False
        self._note_wakeup()

    def begin_again(self) -> None:
        """Wait for all senders again: what they have sent since the last snapshot is not known."""
        self._inbox.believe_in_all()
        self._sync.begin()

    def check_rounds(self) -> None:
        """Check that no recursion needs more rounds than its query allows.

        For settled answers: some base rows may need more rounds than all of them.

        Raises:
            RecursionRoundsError: One does.
        """
        for circuit in self._circuits.values():
            circuit.check_rounds()

    @property
    def repeated(self) -> frozenset[str]:
        """Destinations to which the last step has sent a snapshot."""
        return self._outbox.repeated

    def take_replays_wanted(self) -> list[str]:
        """Remove and return the peers whose snapshot a recursion needs.

        Their channels count as not synchronised until it arrives, so a lost request is noticed.
        """
        wanted = take_replays_wanted(self._recursions.values())
        for peer in wanted:
            self._inbox.channels[peer].synchronised = False
        return wanted

    def next_wakeup(self) -> int | None:
        """Return when time alone changes something (microseconds), or None; as of the last step."""
        return self._wakeup

    def flow(self, now: int = 0) -> FlowReport:
        """Return the next sequence number of every channel, out and in.

        A channel that lacks a snapshot is left out of `received`. The query is settled when no
        living site is busy and both ends of every channel between living sites agree.
        """
        heard = {by: end for by, end in self._inbox.channels.items() if end.synchronised}
        return FlowReport(
            version=self.bundle.version,
            epoch=self.epoch,
            sent=self._outbox.sequences,
            received={by: end.expected for by, end in heard.items()},
            lives={by: end.epoch for by, end in heard.items() if end.epoch is not None},
            busy=self.is_busy or self.waits,
            recursions=tuple(recursion_reports(self._circuits, self._recursions)),
            slow=self._slow.at(now),
            first=self._first,
            state_rows=self._kept.rows(self._circuits.values(), now),
            filters=self._read.reports(),
        )

    def statistics(self) -> list[FragmentStatistics]:
        """Return the statistics of every operator."""
        bundle = self.bundle
        return [
            FragmentStatistics(bundle.query, bundle.version, name, tuple(circuit.statistics()))
            for name, circuit in self._circuits.items()
        ]

    def queue_measures(self) -> list[QueueMeasures]:
        """Return the measures of the queues here."""
        return list(measures_of_queues(self.bundle.query, self._plan, self._work))

    def next_life(self) -> int:
        """Return how many incarnations the recursions with peers have had; 0 without any."""
        return max((recursion.lives for recursion in self._recursions.values()), default=0)

    def last_sequence(self) -> int:
        """Return a sequence number that no outgoing channel has used."""
        return self._outbox.last_sequence()
