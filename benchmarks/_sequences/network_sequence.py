"""One random sequence: queries come and go, rows come, go and expire, sites die and come back.

At every settled moment each query's rows are compared with the reference evaluator's, with those of
the same query in a run of its own at the same sites, and from time to time with DuckDB's.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks._sequences.overlapping_queries import COLUMNS, SOURCES, TEMPLATES, Template
from benchmarks._sequences.rows_of_sites import PlainTables, SiteRows, new_row
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import plan
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_network import Network
from stream_engine.simulation.network import Faults
from stream_engine.simulation.network import Network as Sites
from streamsql.algebra.operators import RemoteSource, Scan, Window, walk_plan
from streamsql.binder import BoundQuery, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.syntax import parse_script, parse_statement
from streamsql.syntax.statements import CreateSource, Query
from streamsql.wire.fragments import Engine, FragmentBundle

GATEWAYS = ("gw-1", "gw-2")
BASE = "base"
MOST = 10
STEP = 1_700_003
"""Microseconds that pass at once; no multiple of it is the length of a window."""


@dataclass(slots=True)
class Counts:
    """Of sequences: events, comparisons, and how much was shared."""

    actions: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    with_duckdb: int = 0
    queries: int = 0
    equal: int = 0
    over_others: int = 0
    nodes: int = 0
    widened: int = 0

    def add(self, other: "Counts") -> None:
        """Add those of another sequence."""
        self.actions += other.actions
        for name in ("compared", "with_duckdb", "queries", "equal", "over_others", "nodes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.widened += other.widened

    def figures(self) -> dict[str, int]:
        """Return all counts, by words."""
        done = {f"actions: {kind}": count for kind, count in sorted(self.actions.items())}
        return done | {
            "queries": self.queries,
            "queries equal to one that runs": self.equal,
            "queries over rows of others": self.over_others,
            "nodes made": self.nodes,
            "nodes widened": self.widened,
            "comparisons from scratch and alone": self.compared,
            "comparisons with DuckDB": self.with_duckdb,
        }


@dataclass(frozen=True, slots=True)
class _Live:
    template: Template
    bound: BoundQuery
    alone: str
    whole: int
    meets: bool


class WrongRowsError(AssertionError):
    """A query has other rows than an oracle."""


def bound_templates() -> tuple[tuple[Template, BoundQuery], ...]:
    """Return the templates with their bound queries."""
    catalog = Catalog(())
    for statement in parse_script(SOURCES):
        assert isinstance(statement, CreateSource)  # noqa: S101  (our own text)
        catalog.define(define(statement, catalog))
    found = []
    for template in TEMPLATES:
        statement = parse_statement(template.text)
        assert isinstance(statement, Query)  # noqa: S101  (our own text)
        found.append((template, bind_query(statement, catalog)))
    return tuple(found)


class Sequence:
    """A network of queries over two gateways and a base site, and its oracles.

    Args:
        seed: All that is random comes from it.
        templates: Of queries.
        tables: DuckDB.
        strategy: By which the queries share.
        materialize: When parts become nodes.
    """

    def __init__(
        self,
        seed: int,
        templates: tuple[tuple[Template, BoundQuery], ...],
        tables: PlainTables,
        strategy: Strategy,
        materialize: Materialize,
    ) -> None:
        self._chance = random.Random(seed)
        self._templates, self._tables = templates, tables
        self.topology = Topology(dict.fromkeys(GATEWAYS, frozenset(COLUMNS)))
        sharing = Sharing(ComputationIndex(), strategy=strategy, materialize=materialize)
        self.network = Network(Planning(self.topology), sharing)
        faults = Faults(loss=0.02, repetition=0.02)
        self.sites = Sites((*GATEWAYS, BASE), seed=seed, faults=faults)
        for scan in _scans(templates):
            for gateway in GATEWAYS:
                self.sites.declare(gateway, scan)
        self._rows = {gateway: SiteRows() for gateway in GATEWAYS}
        self._events: dict[str, list[tuple[str, SourceEvent]]] = {g: [] for g in GATEWAYS}
        self._live: dict[str, _Live] = {}
        self._down: set[str] = set()
        self._begun = 0
        self.counts = Counts()
        self.told: list[str] = []

    def run(self, actions: int) -> Counts:
        """Do random things, and compare after each.

        Raises:
            WrongRowsError: A query has other rows than an oracle says.
        """
        for _ in range(actions):
            self._act()
            self.sites.settle()
            if self.sites.failures:
                raise WrongRowsError(f"a site failed: {self.sites.failures[0]}\n{self._story()}")
            if BASE not in self._down:
                self._compare()
        for query in list(self._live):
            self._deregister(query)
        if self.network.runs:
            raise WrongRowsError(f"left over: {sorted(self.network.runs)}\n{self._story()}")
        return self.counts

    # --- what happens ------------------------------------------------------------------------

    def _act(self) -> None:
        kinds = {"register": 30, "deregister": 14, "insert": 26, "delete": 10, "time": 10}
        kinds |= {"death": 4, "return": 6}
        (kind,) = self._chance.choices(list(kinds), list(kinds.values()))
        self.counts.actions[kind] += 1
        match kind:
            case "register" if len(self._live) < MOST:
                self._register()
            case "deregister" if self._live:
                self._deregister(self._chance.choice(list(self._live)))
            case "insert":
                for _ in range(self._chance.choice((1, 1, 3, 8))):
                    self._insert()
            case "delete":
                self._delete()
            case "time":
                self.sites.advance(self.sites.now + STEP * self._chance.choice((1, 2, 5, 12)))
                self.told.append(f"time is {self.sites.now}")
            case "death" if not self._down:
                self._kill(self._chance.choice((*GATEWAYS, BASE)))
            case "return" if self._down:
                site = self._down.pop()
                self.sites.restart(site)
                self.told.append(f"{site} is back")
            case _:
                self._insert()

    def _register(self) -> None:
        template, bound = self._chance.choice(self._templates)
        change = self.network.register(bound, template.text)
        for bundle in change.deploy:
            self.sites.install(bundle)
        self._begun += 1
        alone = plan(bound, self.topology, query=f"alone{self._begun}", text=template.text)
        self.sites.install(alone)
        # A window that begins late has rows of its whole length only after that.
        whole = self.sites.now + window_of(bound)
        self._live[change.query] = _Live(
            template, bound, alone.query, whole, meets_at_gateways(alone)
        )
        self.told.append(f"{change.query} begins: {template.text}")
        found = change.registration
        assert found is not None  # noqa: S101  (a registration has one)
        self.counts.queries += 1
        self.counts.equal += bool(found.equal)
        self.counts.over_others += bool(found.used and not found.equal)
        self.counts.nodes += sum(not node.widens for node in found.nodes)
        self.counts.widened += sum(bool(node.widens) for node in found.nodes)

    def _deregister(self, query: str) -> None:
        change = self.network.deregister(query)
        for run in change.withdraw:
            self.sites.uninstall(run)
        for bundle in change.deploy:
            self.sites.install(bundle)
        self.sites.uninstall(self._live.pop(query).alone)
        self.told.append(f"{query} ends")

    def _insert(self) -> None:
        gateway = self._up()
        if gateway is None:
            return
        source = self._chance.choice(list(COLUMNS))
        row = new_row(source, gateway, self._chance)
        self._happen(gateway, source, SourceEvent(row, self.sites.now))
        self._rows[gateway].put(source, row, self.sites.now)

    def _delete(self) -> None:
        gateway = self._up()
        if gateway is None:
            return
        source = self._chance.choice(list(COLUMNS))
        found = self._rows[gateway].any_of(source, self.sites.now, self._chance)
        if found is not None:
            row, ts = found
            self._happen(gateway, source, SourceEvent(row, ts, delete=True))
            self._rows[gateway].withdraw(source, row, ts)

    def _happen(self, gateway: str, source: str, event: SourceEvent) -> None:
        self.sites.ingest(gateway, source, [event])
        self._events[gateway].append((source, event))
        self.told.append(f"{gateway} {source} {event}")

    def _up(self) -> str | None:
        up = [gateway for gateway in GATEWAYS if gateway not in self._down]
        return self._chance.choice(up) if up else None

    def _kill(self, site: str) -> None:
        self.sites.kill(site, in_flight_survives=self._chance.random() < 0.5)
        self._down.add(site)
        if site in self._rows:
            self._rows[site] = SiteRows()
            self._events[site] = []
        self.told.append(f"{site} dies")

    # --- oracles -----------------------------------------------------------------------------

    def _compare(self) -> None:
        database = Database()
        for events in self._events.values():
            for source, event in events:
                database.append(source, [event])
        with_duckdb = self._chance.random() < 0.15
        if with_duckdb:
            self._tables.fill(self._rows, self.sites.now)
        for query, live in self._live.items():
            if self.sites.now < live.whole:
                continue
            found = self.sites.result(self.network.reads[query])
            alone = self.sites.result(live.alone)
            if self._down and (self._meets(query) or live.meets):
                continue  # rows that should meet at a gateway that is away are not there
            expected = evaluate(live.bound.plan, database, self.sites.now)
            self._check(query, "from scratch", found, expected)
            self._check(query, "alone", found, alone)
            self.counts.compared += 1
            if with_duckdb:
                self._check(query, "DuckDB", found, self._tables.rows(live.template.plain))
                self.counts.with_duckdb += 1

    def _meets(self, query: str) -> bool:
        return meets_at_gateways(self.network.result(query))

    def _check(
        self,
        query: str,
        oracle: str,
        found: Delta,
        expected: Mapping[tuple[object, ...], int],
    ) -> None:
        if dict(found) != dict(expected):
            text = self._live[query].template.text
            raise WrongRowsError(
                f"{query} {text}\nhas {dict(found)}\n{oracle}: {dict(expected)}\n{self._story()}"
            )

    def _story(self) -> str:
        return "\n".join(self.told)


def _scans(templates: tuple[tuple[Template, BoundQuery], ...]) -> dict[Scan, None]:
    """Return the sources as sites declare them."""
    found: dict[str, Scan] = {}
    for _template, bound in templates:
        for node in walk_plan(bound.plan):
            if isinstance(node, Scan):
                found.setdefault(node.source, node)
    return dict.fromkeys(found.values())


def window_of(bound: BoundQuery) -> int:
    """Return the microseconds after which the windows of a query hold what is in them."""
    return max((w.size for w in walk_plan(bound.plan) if isinstance(w, Window)), default=0)


def meets_at_gateways(bundle: FragmentBundle) -> bool:
    """Return whether rows of some gateways travel to others, and meet rows there."""
    return any(
        isinstance(node, RemoteSource)
        for fragment in bundle.fragments
        if fragment.engine == Engine.GATEWAY
        for node in walk_plan(fragment.plan)
    )
