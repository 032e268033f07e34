"""A site that can be brought back: it says what happens to it, and gives and takes snapshots."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from stream_engine.scheduling.site_work import Stopwatch
from stream_engine.site.site_engine import SiteEngine
from stream_engine.site.step_budget import Refusal, StepBudget
from stream_engine.site.step_result import Forget, StepResult
from stream_engine.snapshot.column_codec import UnsavableError, pack, unpack
from stream_engine.snapshot.journal import (
    Declared,
    Defined,
    Filled,
    Installed,
    Lost,
    Note,
    Record,
    Removed,
    Restarted,
    Stepped,
    Taken,
    Undeclared,
    Uninstalled,
    encode_record,
    replay,
)
from stream_engine.snapshot.query_state import (
    QueryLayout,
    holds_only_later,
    memory_of,
)
from stream_engine.snapshot.restored import Restored
from stream_engine.snapshot.saved_site import (
    FORMAT,
    SavedQuery,
    SavedSite,
    SnapshotError,
    check_sources,
    decode_site,
    encode_site,
    restore_sources,
    saved_sources,
    scans_of,
)
from stream_engine.state.watermark import HERE
from streamsql.algebra.operators import Scan, Window
from streamsql.data.events import SourceEvent
from streamsql.errors import FederationError, InternalError
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch

RECORD_TIME = 1_000_000
"""Microseconds after which a step is recorded although it changes nothing: at most so much more
than the time the site was away is named as lost."""


def nowhere(_record: bytes) -> None:
    """Keep no journal."""


def unheard(_problem: str) -> None:
    """Tell nobody that the journal misses something."""


class RecordedSite(SiteEngine):
    """An engine site with a journal.

    Attributes:
        record: Called with every input of the site, before its effects can be seen outside. Never
            raises.
        changes: Grows with every input but the passing of time.
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        site: str,
        epoch: int,
        record: Callable[[bytes], None] = nowhere,
        *,
        stopwatch: Stopwatch | None = None,
        budget: StepBudget | None = None,
        refusal: Refusal | None = None,
    ) -> None:
        super().__init__(site, epoch, stopwatch=stopwatch, budget=budget, refusal=refusal)
        self.record = record
        self.unrecorded: Callable[[str], None] = unheard
        self.changes = 0
        self._stepping = False
        self._recorded_at = 0
        self._restarted: int | None = None  # when, if no record says it yet
        self._since: dict[str, int] = {}
        self._undated: set[str] = set()  # installed before the first step
        self._layouts: dict[str, QueryLayout] = {}
        self._unsavable: dict[str, str] = {}

    def install(self, bundle: FragmentBundle) -> None:
        """Run a query; see `SiteEngine.install`."""
        before = self._queries.get(bundle.query)
        self._say_time()
        super().install(bundle)
        query = self._queries.get(bundle.query)
        if query is before:
            return  # a trimmed one is another one, too
        self._forget_layout(bundle.query)
        if query is not None:
            self._begun(bundle.query, self._now)
            if bundle.has_history(self.site):
                try:
                    self._layouts[bundle.query] = QueryLayout(query)
                except UnsavableError as error:
                    self._unsavable[bundle.query] = error.message
        self._say(Installed(bundle))

    def declare(self, scan: Scan) -> list[FragmentBundle]:
        """Keep a source's rows; see `SiteEngine.declare`."""
        self._say_time()
        stopped = super().declare(scan)
        self._forget_layouts(stopped)
        self._say(Declared(scan))
        return stopped

    def define(self, scan: Scan) -> list[FragmentBundle]:
        """Note a definition; see `SiteEngine.define`."""
        stopped = super().define(scan)
        self._forget_layouts(stopped)
        self._say(Defined(scan))
        return stopped

    def undeclare(self, source: str) -> None:
        """Keep a source's rows no more; see `SiteEngine.undeclare`."""
        super().undeclare(source)
        self._say(Undeclared(source))

    def uninstall(self, query: str) -> None:
        """Stop a query; see `SiteEngine.uninstall`."""
        known = query in self._queries
        super().uninstall(query)
        self._forget_layout(query)
        if known:
            self._say(Uninstalled(query))

    def ingest(self, source: str, events: Sequence[SourceEvent], origin: str = HERE) -> None:
        """Ingest events; see `SiteEngine.ingest`."""
        self.take_in({source: events}, origin=origin)

    def take_in(
        self,
        batches: Mapping[str, Sequence[SourceEvent]],
        note: Note | None = None,
        origin: str = HERE,
    ) -> None:
        """Ingest events by source: after a restart all of them are known, or none.

        `restore` returns the note with them: how far a recording was read, say.

        Raises:
            DeploymentError: As `ingest`; the batches before the refused one are ingested.
        """
        self._say_time()
        taken: dict[str, tuple[SourceEvent, ...]] = {}
        try:
            for source, events in batches.items():
                super().ingest(source, events, origin)
                taken[source] = tuple(events)
        finally:
            if taken or note is not None:
                self._say(Taken(taken, note, origin))

    def fill(
        self, query: str, source: str, events: Sequence[SourceEvent], note: Note | None = None
    ) -> bool:
        """Give a query earlier events: after a restart all of them are known, and the note."""
        self._say_time()
        filled = super().fill(query, source, events)
        if filled:
            self._say(Filled(query, source, tuple(events), note))
        return filled

    def forgettable(self) -> list[Forget]:
        """Return what senders need not remember once a snapshot of now is kept."""
        return [told for told in super().forgettable() if told.query in self._layouts]

    def receive(self, query: str, sender: str, batch: DeltaBatch) -> None:
        """Ingest a batch; see `SiteEngine.receive`.

        It is not recorded: the sender is asked for it again, unless a snapshot has its effects.
        """
        super().receive(query, sender, batch)
        self.changes += query in self._layouts

    def site_lost(self, site: str, epoch: int | None = None, query: str = "") -> None:
        """Retract what a site has sent; see `SiteEngine.site_lost`."""
        super().site_lost(site, epoch, query)
        self._say(Lost(site, epoch, query))

    def site_removed(self, site: str) -> None:
        """Discard a site permanently; see `SiteEngine.site_removed`."""
        super().site_removed(site)
        self._say(Removed(site))

    def step(self, now: int) -> StepResult:
        """Apply all pending input; see `SiteEngine.step`."""
        wakeup = self.next_change()
        due = wakeup is not None and wakeup <= now
        begins = bool(self._newcomers)  # its initial rows may be gone by the next step
        if self._sources.has_news or due or begins or now - self._recorded_at >= RECORD_TIME:
            self._recorded_at = now
            self._say(Stepped(now))
        self._stepping = True
        try:
            result = super().step(now)
        finally:
            self._stepping = False
        for query in self._undated:
            self._since[query] = self._now
        if self._now:
            self._undated.clear()
        return result

    def _say_time(self) -> None:
        """Record the time of the last step if it was not recorded: that step had no input."""
        if self._now > self._recorded_at and not self._sources.has_news:
            self._recorded_at = self._now
            self._say(Stepped(self._now))

    def _say(self, record: Record) -> None:
        self.changes += not isinstance(record, Stepped)
        if self._restarted is not None:
            self.record(encode_record(Restarted(self._restarted)))
            self._restarted = None
        try:
            content = encode_record(record)
        except (OverflowError, TypeError, ValueError, RecursionError) as error:
            # It has happened: a restart must not believe that nothing has.
            self.unrecorded(f"a record cannot be written: {error}")
        else:
            self.record(content)

    def _begun(self, query: str, since: int) -> None:
        """Note since when a query runs; one that was there before the first step, since that."""
        self._since[query] = since
        if not since:
            self._undated.add(query)

    def _forget_layouts(self, stopped: Iterable[FragmentBundle]) -> None:
        for bundle in stopped:
            self._forget_layout(bundle.query)

    def _forget_layout(self, query: str) -> None:
        self._since.pop(query, None)
        self._undated.discard(query)
        self._layouts.pop(query, None)
        self._unsavable.pop(query, None)

    @property
    def is_at_rest(self) -> bool:
        """Whether all input was applied, or is pending between operators."""
        busy = self._stepping or self._sources.has_news
        return not busy and all(query.is_at_rest for query in self._queries.values())

    def with_history(self) -> list[str]:
        """Return the queries here whose state cannot be rebuilt from sources."""
        return [name for name in self._queries if name in {*self._layouts, *self._unsavable}]

    def memory_of(
        self, query: str, *, heard: bool = False, newest: int | None = None
    ) -> int | None:
        """Return for how many microseconds a query here remembers an event; None if unbounded.

        Args:
            query: Its id.
            heard: Whether another site has published the event.
            newest: The latest event time that it can have; None: unknown.
        """
        installed = self._queries[query]

        def is_passed(window: Window) -> bool:
            return newest is not None and holds_only_later(installed, window, newest)

        return memory_of(installed.bundle, self.site, heard=heard, is_passed=is_passed)

    def readers(self) -> list[str]:
        """Return the queries that read sources at this site."""
        return [name for name, query in self._queries.items() if query.scans]

    def bundles(self) -> list[FragmentBundle]:
        """Return the plans of the queries that run here."""
        return [query.bundle for query in self._queries.values()]

    def snapshot(self, host: object = None) -> bytes:
        """Return the state of the site between two steps, with the host's plain values.

        Raises:
            InternalError: Input is pending: a part of it would be in, another not.
            UnsavableError: The sources cannot be saved.
        """
        if not self.is_at_rest:
            raise InternalError("a snapshot is taken between two steps, of a site at rest")
        return encode_site(
            SavedSite(
                FORMAT,
                self.site,
                self._now,
                scans_of(self._sources),
                pack(saved_sources(self._sources)),
                tuple(self._saved_query(name) for name in self._queries),
                pack(host),
                tuple(self._sources.declared.values()),
                has_units=True,
            )
        )

    def _saved_query(self, name: str) -> SavedQuery:
        query, layout = self._queries[name], self._layouts.get(name)
        since = self._since.get(name, 0)
        if layout is None:
            return SavedQuery(query.bundle, since, unsaved=self._unsavable.get(name, ""))
        try:
            return SavedQuery(query.bundle, since, pack(layout.save(query, self._work.batch)))
        except UnsavableError as error:
            return SavedQuery(query.bundle, since, unsaved=error.message)

    def restore(self, snapshot: bytes | None, records: Iterable[bytes], now: int) -> Restored:
        """Restore a site that has only declared its sources to the state of a former incarnation.

        Queries go on; their channels send snapshots, and every sender has to be asked for one
        (`unsynchronised`). Nothing is recorded meanwhile.

        Args:
            snapshot: Or None, where the journal goes back to the beginning.
            records: Of the journal since.
            now: The time of the site's clock.

        Raises:
            SnapshotError: The snapshot cannot be used; the site is as it was.
        """
        record, self.record = self.record, nowhere
        try:
            result = Restored()
            if snapshot is not None:
                result = self._restore_snapshot(snapshot, now)
            lived = replay(self, records)
        finally:
            self.record = record
        self.not_before(now)  # the end of the journal may be lost: who knows what others were told
        self._restarted = now
        for query in self._queries.values():
            query.begin_again()
        self.resync_all()
        self._resyncs = dict.fromkeys(sorted(self.senders()))
        return Restored(
            self._now, result.host, lived.notes, result.unsaved, lived.complaints, lived.cut
        )

    def _restore_snapshot(self, content: bytes, now: int) -> Restored:
        saved = decode_site(content, self.site, now)
        try:
            sources, host = unpack(saved.sources), unpack(saved.host)
            check_sources(saved.scans, sources)
        except (LookupError, TypeError, ValueError, InternalError) as error:
            raise SnapshotError(f"it does not fit this version: {error!r:.200}") from error
        self._now = self._sources.now = saved.now
        if not saved.has_units:
            self._sources.take_units_as_declared()
        for scan in saved.declared:
            self.declare(scan)  # the journal is of these; the present definitions follow
        unsaved: dict[str, tuple[int, str]] = {}
        for query in saved.queries:
            try:
                self.install(query.bundle)
            except FederationError as error:
                unsaved[query.bundle.query] = (query.since, error.message)
        restore_sources(self._sources, saved.scans, sources)
        for query in saved.queries:
            name = query.bundle.query
            if name not in self._queries:
                continue
            self._begun(name, query.since)
            problem = self._restore_query(query)
            if problem:
                unsaved[name] = (query.since, problem)
        return Restored(saved.now, host, unsaved=unsaved)

    def _restore_query(self, saved: SavedQuery) -> str:
        """Return why a query restarted without the state of its operators, or ""."""
        name = saved.bundle.query
        layout = self._layouts.get(name)
        if layout is None or not saved.state:
            return saved.unsaved or self._unsavable.get(name, "")
        try:
            layout.restore(self._queries[name], unpack(saved.state), self._work)
        except (FederationError, AttributeError, LookupError, TypeError, ValueError) as error:
            self.uninstall(name)
            self.install(saved.bundle)
            self._begun(name, saved.since)
            return error.message if isinstance(error, FederationError) else f"{error!r:.200}"
        self._pending.stepped(name, self._queries[name])
        return ""
