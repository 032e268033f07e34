"""One sequence: queries come and go, rows come, go and expire, sites die and come back.

At every settled moment each query's rows are compared with the reference evaluator's, with those of
the same query in a run of its own at the same sites, and from time to time with DuckDB's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks._sequences.actions import (
    Action,
    Crash,
    Delete,
    Deliver,
    Deregister,
    Insert,
    Kill,
    Register,
    Restart,
    Settle,
    Wait,
)
from benchmarks._sequences.bound_templates import (
    BoundTemplate,
    bound_templates,
    meets_at_gateways,
    remembered_search,
    scans,
)
from benchmarks._sequences.diversity import COMPARED, WITH_DUCKDB, note_registration
from benchmarks._sequences.expected_rows import ExpectedRows
from benchmarks._sequences.overlapping_queries import COLUMNS, ROOMED
from benchmarks._sequences.rows_of_sites import PlainTables, happened
from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_network import Network
from stream_engine.simulation.network import Faults
from stream_engine.simulation.recorded_network import Disk, RecordedNetwork
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.wire.fragments import FragmentBundle

GATEWAYS = ("gw-1", "gw-2")
DUCKDB_EVERY = 7
"""Of so many settled moments DuckDB is asked at one."""


@dataclass(frozen=True, slots=True)
class Setting:
    """All that a sequence has besides its actions.

    Attributes:
        seed: Of the order in which messages arrive.
        strategy: By which the queries share.
        materialize: When parts become nodes.
        bases: The base sites.
        colocated: Whether all rows of a room are at one gateway, so that gateways may join them.
    """

    seed: int
    strategy: Strategy = Strategy.ALL
    materialize: Materialize = Materialize.WANTED_TWICE
    bases: tuple[str, ...] = ("base",)
    colocated: bool = False


@dataclass(frozen=True, slots=True)
class _Live:
    query: str
    template: BoundTemplate
    alone: str
    meets: bool


class WrongRowsError(AssertionError):
    """A query has other rows than an oracle, a site failed, or something is left over."""


class Sequence:
    """A network of queries over two gateways and base sites, and its oracles.

    Args:
        setting: How queries share, and where.
        tables: DuckDB.

    Attributes:
        now: Microseconds.
        live: The queries that run, by number.
        down: Sites that are dead.
        expected: The rows there are, and those of queries.
        counts: Of what has happened.
    """

    def __init__(self, setting: Setting, tables: PlainTables) -> None:
        together = {(source, "room"): "room" for source in ROOMED if setting.colocated}
        owners = dict.fromkeys(GATEWAYS, frozenset(COLUMNS))
        topology = Topology(owners, setting.bases, colocation=together)
        sharing = Sharing(
            ComputationIndex(), strategy=setting.strategy, materialize=setting.materialize
        )
        self.setting, self._topology = setting, topology
        self.network = Network(Planning(topology, search=remembered_search), sharing)
        faults = Faults(loss=0.02, repetition=0.02)
        self.sites = RecordedNetwork((*GATEWAYS, *setting.bases), seed=setting.seed, faults=faults)
        for scan in scans():
            for gateway in GATEWAYS:
                self.sites.declare(gateway, scan)
        self.expected = ExpectedRows(GATEWAYS, tables)
        self.live: dict[int, _Live] = {}
        self.down: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._settled = 0
        self._filled: set[str] = set()
        self._reading: set[str] = set()
        self._meeting: dict[tuple[str, int], bool] = {}

    @property
    def now(self) -> int:
        """The time, in microseconds."""
        return self.sites.now

    @property
    def up(self) -> list[str]:
        """The gateways that live."""
        return [gateway for gateway in GATEWAYS if gateway not in self.down]

    def play(self, actions: Iterable[Action]) -> None:
        """Do all actions, then let all queries end.

        Raises:
            WrongRowsError: A query has other rows than an oracle says.
        """
        for action in actions:
            self.do(action)
        self.end()

    def do(self, action: Action) -> None:
        """Do one thing; what cannot be done, as in a shortened story, is left out.

        Raises:
            WrongRowsError: A query has other rows than an oracle says.
        """
        self.counts[f"actions: {type(action).__name__.lower()}"] += 1
        match action:
            case Register(number, text):
                self._register(number, bound_templates()[text])
            case Deregister(number) if number in self.live:
                self._deregister(number)
            case Insert(gateway, source, row) if gateway not in self.down:
                when = happened(source, row, self.now)
                self._happen(gateway, source, SourceEvent(row, when))
            case Delete(gateway, source, row, which) if gateway not in self.down:
                ts = self.expected.rows[gateway].time_of(source, row, which, self.now)
                if ts is not None:
                    self._happen(gateway, source, SourceEvent(row, ts, delete=True))
            case Wait(microseconds):
                self.sites.advance(self.now + microseconds)
            case Kill(site, survives) if site not in self.down:
                self._kill(site, in_flight_survives=survives)
            case Restart(site) if site in self.down:
                self.down.remove(site)
                self.sites.restart(site)
                self.counts["sites that are back while a node is filled"] += bool(self._filled)
            case Crash(site, is_saved, survives) if site not in self.down:
                if is_saved:
                    self.sites.save(site)
                self.sites.crash(site, in_flight_survives=survives)
                self.counts["sites that crash while a reader is filled"] += bool(self._reading)
            case Deliver(events):
                moved = [self.sites.act() for _ in range(events)]
                self.counts["deliveries after which messages are under way"] += all(moved)
            case Settle():
                self._settle()
            case _:
                pass

    def end(self) -> None:
        """Let all queries end.

        Raises:
            WrongRowsError: A run is left over.
        """
        self._settle()
        for number in list(self.live):
            self._deregister(number)
        if self.network.runs:
            raise WrongRowsError(f"left over: {sorted(self.network.runs)}")
        self.sites.settle()

    # --- what happens ------------------------------------------------------------------------

    def _register(self, number: int, template: BoundTemplate) -> None:
        text = template.template.text
        change = self.network.register(template.bound, text)
        for bundle in change.deploy:
            self.sites.install(bundle)
        alone = template.alone(self._topology, f"alone{number}")
        self.sites.install(alone)
        meets = meets_at_gateways(alone)
        self.live[number] = _Live(change.query, template, alone.query, meets)
        found = change.registration
        assert found is not None  # noqa: S101  (a registration has one)
        note_registration(self.counts, found, text)
        if found.nodes:
            self._filled.update(bundle.query for bundle in change.deploy)
        if found.used:
            self._reading.add(change.query)

    def _deregister(self, number: int) -> None:
        live = self.live.pop(number)
        run = self.network.reads[live.query]
        change = self.network.deregister(live.query)
        for gone in change.withdraw:
            self.sites.uninstall(gone)
        for bundle in change.deploy:
            self.sites.install(bundle)
        self.sites.uninstall(live.alone)
        left = self.network.runs.get(run)
        self.counts["queries that end while others read them"] += bool(left and not left.queries)
        self.counts["readers planned again after an end"] += len(change.deploy)
        self._filled -= set(change.withdraw)
        self._reading.discard(live.query)

    def _happen(self, gateway: str, source: str, event: SourceEvent) -> None:
        self.sites.ingest(gateway, source, [event])
        self.expected.happen(gateway, source, event)

    def _kill(self, site: str, *, in_flight_survives: bool) -> None:
        self.sites.kill(site, in_flight_survives=in_flight_survives)
        self.sites.disks[site] = Disk()
        self.down.add(site)
        if site in GATEWAYS:
            self.expected.lose(site)
        self.counts["sites that die while a node is filled"] += bool(self._filled)
        self.counts["sites that die while a reader is filled"] += bool(self._reading)

    # --- oracles -----------------------------------------------------------------------------

    def _settle(self) -> None:
        self.sites.settle()
        self._filled.clear()
        self._reading.clear()
        if self.sites.failures:
            raise WrongRowsError(f"a site failed: {self.sites.failures[0]}")
        if not self.down & set(self.setting.bases):
            self._compare()

    def _compare(self) -> None:
        self._settled += 1
        with_duckdb = (self._settled + self.setting.seed) % DUCKDB_EVERY == 0
        if with_duckdb:
            self.expected.fill_tables(self.now)
        for live in self.live.values():
            if self.down and (live.meets or self._meets(self.network.result(live.query))):
                continue  # rows that should meet at a gateway that is away are not there
            found = self.sites.result(self.network.reads[live.query])
            template = live.template
            _check(live, "from scratch", found, self.expected.from_scratch(template, self.now))
            _check(live, "alone", found, self.sites.result(live.alone))
            self.counts[COMPARED] += 1
            if with_duckdb:
                _check(live, "DuckDB", found, self.expected.by_duckdb(template))
                self.counts[WITH_DUCKDB] += 1

    def _meets(self, bundle: FragmentBundle) -> bool:
        which = bundle.query, bundle.version
        if which not in self._meeting:
            self._meeting[which] = meets_at_gateways(bundle)
        return self._meeting[which]


def _check(live: _Live, oracle: str, found: Delta, expected: Mapping[Row, int] | Delta) -> None:
    if dict(found) != dict(expected):
        text = live.template.template.text
        raise WrongRowsError(f"{live.query} {text}\nhas {dict(found)}\n{oracle}: {dict(expected)}")
