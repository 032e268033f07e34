"""A coordinator with queries that come and go over one network, over the simulator of sites."""

import dataclasses
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import networkx as nx
import pytest

from federated_optimizer.coordinator.adaptation import move_gains, moves
from federated_optimizer.coordinator.adaptation.adaptation import Adaptation
from federated_optimizer.coordinator.adaptation.begun_moves import Move
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.facts.heard_facts import HeardFacts
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.queries.heard_reports import HeardReports
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.recovered_queries import recover_all
from federated_optimizer.coordinator.queries.replanning import Replanning
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import open_shared_parts
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.coordinator.statements.preparation import Preparation
from federated_optimizer.coordinator.statements.query_statements import QueryStatements
from federated_optimizer.sharing.strategy import Materialize
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.wire.fragments import Engine, FragmentBundle
from streamsql.wire.site_messages import Birth
from tests.federated_optimizer.coordinator.simulated_coordinator import TICK, SimulatedCoordinator
from tests.streamsql.from_text import catalog_of, query_of

SOURCES = """
CREATE SOURCE seat (mid TEXT, room TEXT, taken INTEGER, KEY (mid));
CREATE SOURCE room (room TEXT, floor INTEGER, KEY (room));
CREATE SOURCE path (src TEXT, dst TEXT, KEY (src, dst));
"""
TABLES = {
    "seat": "mid TEXT, room TEXT, taken BIGINT",
    "room": "room TEXT, floor BIGINT",
    "path": "src TEXT, dst TEXT",
}
KEYS = {"seat": 1, "room": 1, "path": 2}
CATALOG = catalog_of(SOURCES)
GATEWAYS = ("gw-1", "gw-2")
SITES = (*GATEWAYS, "base")
MOST = 8
REGROUP = 0.02
"""Simulated seconds after which plans are made again."""
ADAPT = 0.6
"""Simulated seconds between two moves of a query."""

JOIN = "FROM seat s JOIN room r ON s.room = r.room"
REACH = (
    "WITH RECURSIVE reach(src, dst) AS (SELECT src, dst FROM path UNION "
    "SELECT reach.src, p.dst FROM reach JOIN path p ON p.src = reach.dst) "
)
TEXTS = (
    f"SELECT s.mid, r.floor {JOIN}",
    f"SELECT s.mid {JOIN} WHERE r.floor > 1",
    f"SELECT s.mid, s.taken {JOIN} WHERE r.floor > 1 AND s.taken = 1",
    f"SELECT r.floor, COUNT(*) AS n {JOIN} GROUP BY r.floor",
    f"SELECT r.floor, s.taken, COUNT(*) AS n, MAX(s.mid) AS last {JOIN} GROUP BY r.floor, s.taken",
    f"SELECT DISTINCT r.floor {JOIN} WHERE s.taken = 1",
    "SELECT s.room, COUNT(*) AS n FROM seat s GROUP BY s.room",
    "SELECT s.room, s.taken, COUNT(*) AS n FROM seat s GROUP BY s.room, s.taken",
    "SELECT s.room, COUNT(*) AS n FROM seat s GROUP BY s.room HAVING COUNT(*) > 1",
    "SELECT s.mid, r.floor FROM seat s LEFT JOIN room r ON s.room = r.room",
    "SELECT s.mid FROM seat s LEFT JOIN room r ON s.room = r.room WHERE r.floor IS NULL",
    "SELECT room FROM seat UNION SELECT room FROM room",
    "SELECT room FROM seat EXCEPT SELECT room FROM room",
    "SELECT a.mid, b.mid AS other FROM seat a JOIN seat b ON a.room = b.room",
    "SELECT a.mid FROM seat a JOIN seat b ON a.room = b.room WHERE b.taken = 1",
)
REACHES = (
    f"{REACH}SELECT src, dst FROM reach",
    f"{REACH}SELECT dst FROM reach WHERE src = 'n1'",
    f"{REACH}SELECT src, COUNT(*) AS n FROM reach GROUP BY src",
)


class SimulatedRegistrations(SimulatedCoordinator):
    """Queries that are planned over what runs, by the coordinator's own statements.

    Attributes:
        texts: Of the queries that run, by id.
        some: Texts of new queries.
        views: What their readers have.
        settled: Queries whose rows were all there when rows or sites changed last: until these
            change again nothing may be told of them, whatever other queries come and go.
        counts: Of what has happened.
    """

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(SITES, seed, patch)
        self._patch = patch
        for name, module in tuple(sys.modules.items()):
            if name.startswith("federated_optimizer.coordinator") and hasattr(
                module, "monotonic_clock"
            ):
                patch.setattr(module, "monotonic_clock", lambda: self.now)
        # Rates are small, so that moves pay late.
        patch.setattr(move_gains, "HORIZON_SECONDS", 10**7)
        patch.setattr(moves, "REST_MICROSECONDS", 50 * TICK)
        patch.setattr(moves, "MOVE_MICROSECONDS", 2_000 * TICK)
        for name in TABLES:
            definition = CATALOG.find(name)
            assert isinstance(definition, SourceDefinition)
            for gateway in GATEWAYS:
                self.declare(gateway, definition.scan())
        self.rows: dict[str, dict[tuple[str, Row], Row]] = {g: {} for g in GATEWAYS}
        self.texts: dict[str, str] = {}
        self.some: tuple[str, ...] = (*TEXTS, *REACHES)
        self.views: dict[str, Counter[Row]] = {}
        self.settled: set[str] = set()
        self.counts: Counter[str] = Counter()

    async def open(self, folder: Path, materialize: Materialize) -> None:
        """Start the coordinator, which takes up what is in its catalog."""
        self.settings = CoordinatorSettings(
            database=f"sqlite:///{folder}/catalog.db",
            bases=("base",),
            materialize=materialize,
            regroup=REGROUP,
            adapt=ADAPT,
        )
        # What it would send `self` sends.
        client: Any = lambda _will: SimpleNamespace(connected=True)  # noqa: E731
        opened = await open_shared_parts(self.settings, client, lambda: self.now, OnTheLoop())
        deployment: Any = self
        self.membership = Membership()
        self.shared = shared = dataclasses.replace(
            opened[0], deployment=deployment, membership=self.membership
        )
        for source in CATALOG.sources:
            shared.catalog.define(source)
        planner = Planner(shared, HeardFacts(shared.facts, shared.catalog), foresee=None)
        self.queries = Queries(shared, planner)
        self.heard = HeardReports(shared, self.queries)
        preparation = Preparation(shared, planner, self.queries.offers)
        self.statements = QueryStatements(shared, self.queries, preparation)
        self.replanning = Replanning(shared, planner, self.queries, self.statements.redeploy)
        self.adaptation = Adaptation(shared, planner, self.queries, lambda: self.now)
        change_over = self.adaptation._moves._change_over

        def counted(move: Move) -> tuple[RunningQuery, ...]:
            moved = change_over(move)
            self.counts["left to a node"] += self.queries.nodes.of(move.run) is not None
            return moved

        self._patch.setattr(self.adaptation._moves, "_change_over", counted)
        recover_all(self.queries, opened[1].queries, opened[1].nodes)
        for site in SITES:
            self._hear(site, online=site in self.sites)
        for gateway in GATEWAYS:
            self._hear_birth(gateway)
        self.replanning.soon()

    def _hear_birth(self, gateway: str) -> None:
        birth = Birth(gateway, self._epochs[gateway], 0, self.now, sources=tuple(TABLES))
        self.membership.hear_birth(birth)

    async def restart_coordinator(self, folder: Path) -> None:
        """The coordinator dies; another one finds its catalog, and what the broker has retained."""
        self.counts["coordinators"] += 1
        self.settled.clear()
        self.shared.store.close()
        await self.open(folder, self.settings.materialize)
        for run, bundle in tuple(self._bundles.items()):
            if not self.queries.runs.readers(run):
                self.withdraw(bundle)
        for query_id in self.texts:
            self._follow(query_id)

    # --- queries ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """A query begins, unless there are many."""
        if len(self.texts) >= MOST:
            return
        text = self._random.choice(self.some)
        statement = query_of(text)
        query = await self.statements.deploy(
            dataclasses.replace(statement, text=text), "", Origin.USER, None
        )
        self.texts[query.id] = text
        self.counts["queries"] += 1
        self.counts["over results"] += self.queries.runs.reads_results(query.run)
        self.counts["equal"] += query.run != query.id
        self._follow(query.id)

    def _follow(self, query_id: str) -> None:
        query = self.queries.known(query_id)
        assert query is not None
        # One that joins a run shows its rows at once.
        self.views[query_id] = Counter(query.result.rows())
        query.result.follow(lambda delta: self._tell(query_id, delta))

    async def stop(self) -> None:
        """A query ends."""
        if self.texts:
            await self._stop(self._random.choice(list(self.texts)))

    async def _stop(self, query_id: str) -> None:
        query = self.queries.known(query_id)
        assert query is not None
        run = query.run
        del self.texts[query_id], self.views[query_id]
        self.settled.discard(query_id)
        await self.statements.stop(query)
        self.counts["kept for readers"] += self.queries.nodes.of(run) is not None

    def _tell(self, query: str, delta: Delta) -> None:
        if query not in self.texts:
            return
        assert query not in self.settled, f"{query} is told {delta} though nothing has changed"
        view = self.views[query]
        for row, weight in delta.items():
            view[row] += weight
            if not view[row]:
                del view[row]

    # --- rows and sites --------------------------------------------------------------------------

    def read(self) -> None:
        """A row comes, in the place of one with its key, or is withdrawn."""
        gateway = self._random.choice(GATEWAYS)
        if gateway not in self.sites:
            return
        self.settled.clear()
        rows, number = self.rows[gateway], int(gateway[-1])
        source = self._random.choice(list(TABLES))
        if rows and self._random.random() < 0.25:
            key = self._random.choice(sorted(rows))
            self.ingest(gateway, key[0], [SourceEvent(rows.pop(key), self.now, delete=True)])
            return
        own = 3 * (number - 1) + self._random.randrange(1, 4)
        row: Row
        match source:
            case "seat":
                room = self._random.choice(("r1", "r2", "r4", None))
                row = (f"m{own}", room, self._random.choice((0, 1, None)))
            case "room":
                row = (f"r{own}", self._random.choice((1, 2, 3)))
            case _:
                row = (f"n{own}", f"n{self._random.randrange(1, 7)}")
        rows[source, row[: KEYS[source]]] = row
        self.ingest(gateway, source, [SourceEvent(row, self.now)])

    def die(self, site: str) -> None:
        """A site dies, and with it its disk."""
        self.settled.clear()
        self.counts["deaths"] += 1
        self.counts["deaths amid orders"] += any(self.orders.values())
        super().die(site)
        if site in GATEWAYS:
            self.rows[site].clear()

    def killed(self, site: str) -> None:
        """A process is killed, and goes on from its disk before anybody holds it for dead."""
        self.settled.clear()
        self.counts["kills"] += 1
        super().killed(site)

    def live(self, site: str) -> None:
        """A dead site is back; what the broker has retained for it arrives in any order."""
        self.settled.clear()
        retained, self._bundles = self._bundles, {}
        super().live(site)
        self._bundles = retained
        bundles = [bundle for bundle in retained.values() if site in bundle.sites]
        self._random.shuffle(bundles)
        for bundle in bundles:
            self.orders[site].append(lambda b=bundle: self._installed(site, b))  # type: ignore[misc]
        if site in GATEWAYS:
            self._hear_birth(site)

    def runs_that_wait(self) -> set[str]:
        # Rows of nodes come late, so that readers are there before what they read.
        return {node.run for node in self.queries.nodes.all()}

    # --- the coordinator -------------------------------------------------------------------------

    async def look(self) -> None:
        """Do the chores that recur."""
        self.queries.statuses.all()
        self.replanning.look()
        await self.replanning.work()
        await self.statements.keep()
        await self.adaptation.look()
        await self.adaptation.work()
        self.counts["widened"] += len(self.queries.widened)

    def is_settled(self) -> bool:
        """Return whether all answers are there, and nothing is to be planned again."""
        if self.replanning.due is not None or self.queries.widened:
            return False
        return all(self._is_settled(query) for query in self.queries.everything())

    def _is_settled(self, query: RunningQuery) -> bool:
        return query.is_settled() or (query.origin == Origin.NODE and query.has_arrived())

    def heard_counts(self) -> None:
        self.adaptation.counts_came()

    # --- what it should be -----------------------------------------------------------------------

    def check(self) -> None:
        """Check that all readers have what DuckDB, and of recursions networkx, say."""
        away = set(SITES) - self.sites.keys()
        with closing(duckdb.connect()) as connection:
            for table, columns in TABLES.items():
                connection.execute(f"CREATE TABLE {table} ({columns})")
            for rows in self.rows.values():
                for (source, _key), row in rows.items():
                    marks = ", ".join("?" for _ in row)
                    connection.execute(f"INSERT INTO {source} VALUES ({marks})", row)
            for query_id, text in self.texts.items():
                query = self.queries.known(query_id)
                assert query is not None
                if away and _meets(query.bundle):
                    continue  # rows that should meet at a gateway that is away are not there
                is_reach = text in REACHES
                found = self.reached(text) if is_reach else connection.execute(text).fetchall()
                expected, shown = Counter(found), Counter(query.result.rows())
                assert shown == expected, (query_id, text)
                assert self.views[query_id] == shown, (query_id, text)
                self.counts["compared"] += 1
        self.settled = set(self.texts)

    def reached(self, text: str) -> list[Row]:
        """Return the rows of a recursive query by networkx."""
        graph: nx.DiGraph[Any] = nx.DiGraph()
        for rows in self.rows.values():
            graph.add_edges_from(
                (row[0], row[1]) for (source, _), row in rows.items() if source == "path"
            )
        closure = nx.transitive_closure(graph, reflexive=False)
        edges = cast("list[tuple[str, str]]", list(closure.edges))
        if "GROUP BY" in text:
            return list(Counter(src for src, _ in edges).items())
        if "WHERE src = 'n1'" in text:
            return [(dst,) for src, dst in edges if src == "n1"]
        return [(src, dst) for src, dst in edges]

    async def end(self) -> None:
        """Let all queries end; nothing may be left."""
        for query_id in list(self.texts):
            await self._stop(query_id)
        await self.rest()
        moved = [decision.outcome for decision in self.shared.decisions.all()]
        self.counts.update(f"decided: {outcome}" for outcome in moved)
        assert not self.queries.runs.all()
        assert not self.queries.everything()
        assert not self.shared.store.nodes()
        assert not any(site.queries for site in self.sites.values())
        self.shared.store.close()


def _meets(bundle: FragmentBundle) -> bool:
    at_gateways = {f.id for f in bundle.fragments if f.engine == Engine.GATEWAY}
    return any(fragment.consumer in at_gateways for fragment in bundle.fragments)
