"""All sites of a federation in one process, for a query on the past."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from deploy.history.happenings import Presence, Readings
from federated_optimizer import direct_scans
from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import Scan, ScanPart, walk_plan, walk_relation
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import InternalError
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, FragmentBundle

_MAX_ROUNDS = 100_000
_MAX_PENDING = 20_000
"""Earlier events that wait for a step."""


class ReplayedFederation:
    """The engines of a query's sites, with channels that deliver at once and in order.

    Each gateway's readings go to its own engine, or where base sites read a source themselves to
    those, so that every fragment sees what it saw live. While a gateway is away its engine goes on
    and its channels are cut: receivers retract its rows, and its snapshot brings them back.

    Args:
        bundle: The query's fragments.
        static: The site of the stored tables.
        tables: Their rows, by source.

    Raises:
        FederationError: The query cannot run.
    """

    def __init__(
        self, bundle: FragmentBundle, *, static: str, tables: Mapping[str, Iterable[Row]]
    ) -> None:
        self._bundle = bundle
        sites = {site for fragment in bundle.fragments for site in fragment.sites}
        self._bases = {
            site
            for fragment in bundle.fragments
            if fragment.engine == Engine.BASE
            for site in fragment.sites
        }
        self._engines = {site: SiteEngine(site, 1) for site in sorted(sites)}
        self._results = {
            site: ReceivingChannel(version=bundle.version) for site in bundle.result_sites
        }
        self._direct = direct_scans(bundle)
        self._scans = _scans_of(bundle)
        self._away: set[str] = set()
        self._touched: dict[str, None] = dict.fromkeys(self._engines)
        self._wakeups: dict[str, int] = {}
        self._filled = 0
        for engine in self._engines.values():
            engine.install(bundle)
        for source, rows in tables.items():
            self._engines[static].ingest(source, [SourceEvent(row, 0) for row in rows])

    @property
    def away(self) -> frozenset[str]:
        """The gateways of the query that are away."""
        return frozenset(self._away)

    @property
    def read_directly(self) -> frozenset[str]:
        """The sources that base sites read themselves."""
        return frozenset(self._direct)

    @property
    def read_at_gateways(self) -> frozenset[str]:
        """The sources that gateways read for the query."""
        fragments = [f for f in self._bundle.fragments if f.engine == Engine.GATEWAY]
        nodes = (node for fragment in fragments for node in _nodes(fragment.plan))
        return frozenset(node.source for node in nodes if isinstance(node, Scan))

    def take(self, readings: Readings, *, before: bool = False) -> None:
        """Ingest readings; the next step applies them.

        Args:
            readings: Of one source.
            before: They are from before the trial: of a source whose rows no site keeps only
                windows see them, as in a query whose windows start full.
        """
        targets = self._direct.get(readings.source, ()) if readings.direct else (readings.gateway,)
        scans = self._scans.get(readings.source, ())
        as_fill = before and all(scan.is_log and scan.lateness is None for scan in scans)
        for site in targets:
            engine = self._engines.get(site)
            if engine is None or not engine.readers_of(readings.source):
                continue
            if as_fill:
                engine.fill(self._bundle.query, readings.source, readings.events)
                self._filled += len(readings.events)
            elif readings.direct:
                engine.ingest(readings.source, readings.events, readings.gateway)
            else:
                engine.ingest(readings.source, readings.events)
            self._touched[site] = None

    @property
    def is_full(self) -> bool:
        """Whether so many events wait that a step should come before more of them."""
        waiting = sum(engine.pending_events for engine in self._engines.values())
        return self._filled + waiting >= _MAX_PENDING

    def present(self, presence: Presence) -> Delta:
        """Let a gateway's rows go, or come back with the next step; return what goes at once."""
        site = presence.gateway
        if site not in self._engines or site in self._bases:
            return {}
        if presence.online:
            self._bring_back(site)
            return {}
        self._away.add(site)
        for name, engine in self._engines.items():
            if name != site:
                engine.site_lost(site, 1)
                self._touched[name] = None
        gone: Delta = {}
        channel = self._results.get(site)
        if channel is not None:
            for rows in channel.lose_sender().values():
                accumulate(gone, rows)
        return gone

    def _bring_back(self, site: str) -> None:
        if site not in self._away:
            return
        self._away.discard(site)
        self._engines[site].resync_all()
        for name, engine in self._engines.items():
            if name != site:
                engine.resync(self._bundle.query, site)
            self._touched[name] = None

    def next_wakeup(self) -> int | None:
        """Return when time alone changes something, or None."""
        return min(self._wakeups.values(), default=None)

    def step(self, now: int) -> Delta:
        """Step and deliver until nothing moves; return how the result has changed."""
        self._filled = 0
        due = [site for site, at in self._wakeups.items() if at <= now]
        self._touched.update(dict.fromkeys(due))
        if self._follows_clocks:
            self._touched.update(dict.fromkeys(self._engines))
            for engine in self._engines.values():
                engine.tell_time()
        changed: Delta = {}
        for _ in range(_MAX_ROUNDS):
            if not self._touched:
                return changed
            touched, self._touched = self._touched, {}
            for site in touched:
                self._step(site, now, changed)
        raise InternalError("a trial on history does not settle")

    def _step(self, site: str, now: int, changed: Delta) -> None:
        engine, query = self._engines[site], self._bundle.query
        result = engine.step(now)
        for _query, failure in result.failures:
            raise failure
        for sent in result.outgoing:
            if site in self._away or sent.destination in self._away:
                continue
            if sent.destination:
                self._engines[sent.destination].receive(query, site, sent.batch)
                self._touched[sent.destination] = None
            else:
                accumulate(changed, self._results[site].accept(sent.batch)[1])
        for _query, sender in result.resyncs:
            if site not in self._away and sender not in self._away:
                self._engines[sender].resync(query, site)
                self._touched[sender] = None
        wakeup = engine.next_wakeup()
        if wakeup is None:
            self._wakeups.pop(site, None)
        else:
            self._wakeups[site] = wakeup

    @property
    def _follows_clocks(self) -> bool:
        return any(
            scan.part == ScanPart.PROGRESS and scan.lateness is None
            for scans in self._scans.values()
            for scan in scans
        )

    def check_rounds(self) -> None:
        """Check that recursions need no more rounds than the query allows.

        Raises:
            RecursionRoundsError: One does.
        """
        for engine in self._engines.values():
            engine.check_rounds(self._bundle.query)


def _scans_of(bundle: FragmentBundle) -> dict[str, list[Scan]]:
    found: defaultdict[str, list[Scan]] = defaultdict(list)
    for fragment in bundle.fragments:
        for node in _nodes(fragment.plan):
            if isinstance(node, Scan):
                found[node.source].append(node)
    return dict(found)


def _nodes(plan: object) -> Iterator[object]:
    yield from walk_plan(plan)  # type: ignore[arg-type]
    yield from walk_relation(plan)  # type: ignore[arg-type]
