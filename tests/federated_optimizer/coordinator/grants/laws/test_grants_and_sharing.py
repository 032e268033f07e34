"""People of different grants ask overlapping queries while grants are given and revoked.

Answers are DuckDB's. Who may read what is asked of a model: a set of grants. Each query has a
constant that no other one has, so whatever is told to somebody tells of which queries it tells.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.contract.network_dot import network_dot
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.explaining.seen_texts import NOT_SHOWN
from federated_optimizer.sharing.strategy import Materialize
from streamsql.algebra.operators import Plan, Scan, walk_plan
from streamsql.errors import FederationError
from tests.federated_optimizer.coordinator.conftest import Harness
from tests.federated_optimizer.coordinator.laws.test_shared_runs_against_duckdb import World

ROUNDS, SEEDS, MOST = 10, 8, 12
PEOPLE = tuple(Principal(name, Role.ANALYST) for name in ("ann", "ben", "eva"))
OLA, ADA = Principal("ola", Role.OPERATOR), Principal("ada", Role.ADMINISTRATOR)
ACCOUNTS = {each.name: Account(each.name, each.role) for each in (*PEOPLE, OLA, ADA)}
RELATIONS = {
    "RoomSensor": "SOURCE",
    "SeatSensor": "SOURCE",
    "Link": "SOURCE",
    "OpenRooms": "VIEW",
}
BELOW = {"OpenRooms": "RoomSensor"}
VIEW = "SELECT rid FROM RoomSensor WHERE status = 'open'"
JOIN = "Link l JOIN RoomSensor r ON l.dst = r.rid"
THREE = f"{JOIN} JOIN SeatSensor s ON s.rid = r.rid"
SEATS = "SeatSensor s JOIN RoomSensor r ON s.rid = r.rid"
# All rooms are above each bound, and a later one is the stronger one.
FORMS = (
    "SELECT r.rid, r.status FROM RoomSensor r WHERE r.rid > '{c}'",
    "SELECT r.rid FROM RoomSensor r WHERE r.status = 'open' AND r.rid > '{c}'",
    "SELECT r.rid FROM OpenRooms r WHERE r.rid > '{c}'",
    "SELECT l.src, r.rid FROM Link l JOIN OpenRooms r ON l.dst = r.rid WHERE r.rid > '{c}'",
    f"SELECT l.src, r.status FROM {JOIN} WHERE r.rid > '{{c}}'",
    f"SELECT l.src FROM {JOIN} WHERE r.status = 'open' AND r.rid > '{{c}}'",
    f"SELECT r.status, COUNT(*) AS n FROM {JOIN} WHERE r.rid > '{{c}}' GROUP BY r.status",
    f"SELECT s.mid, l.src FROM {THREE} WHERE r.rid > '{{c}}'",
    f"SELECT s.mid, l.src FROM {THREE} WHERE r.status = 'open' AND r.rid > '{{c}}'",
    f"SELECT s.mid, r.status FROM {SEATS} WHERE s.weightLevel > 4 AND r.rid > '{{c}}'",
    "SELECT s.mid, r.rid FROM SeatSensor s JOIN OpenRooms r ON s.rid = r.rid WHERE r.rid > '{c}'",
    "SELECT s.mid, l.dst FROM SeatSensor s LEFT JOIN Link l ON l.src = s.rid WHERE s.rid > '{c}'",
)


class Granted(World):
    """Queries of people.

    Attributes:
        grants: Pairs of a name and a relation.
        asked: By constant, the relations that a query names; of those that have ended, too.
        owners: By query, who asks and the constant.
        makers: By the run of a node, the relations that the queries name that it was made for.
        taken: Constants of queries that were stopped because a grant was revoked.
        counts: What has happened.
    """

    def __init__(self, federation: Any, harness: Any, seed: int) -> None:
        super().__init__(federation, harness, seed)
        self.grants: set[tuple[str, str]] = set()
        self.asked: dict[str, frozenset[str]] = {}
        self.owners: dict[str, tuple[Principal, str]] = {}
        self.makers: dict[str, frozenset[str]] = {}
        self.taken: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.materialize = self.chance.choice(list(Materialize))

    async def begin(self) -> None:
        settings = {"gateways": 0, "materialize": self.materialize}
        self.coordinator = await self.federation.standard(**settings)
        self.coordinator.follow_accounts(ACCOUNTS.get)
        await self.coordinator.execute(f"CREATE VIEW OpenRooms AS {VIEW}", principal=OLA)
        await self.come()
        for who in PEOPLE:
            for relation in RELATIONS:
                if self.chance.random() < 0.8:
                    await self.change(who, relation)

    async def restart_coordinator(self) -> None:
        await self.coordinator.close()
        self.coordinator = await self.federation.coordinator(materialize=self.materialize)
        self.coordinator.follow_accounts(ACCOUNTS.get)
        self.counts["restarts"] += 1

    # --- what people do --------------------------------------------------------------------------

    def may(self, who: Principal, constant: str) -> bool:
        return all((who.name, relation) in self.grants for relation in self.asked[constant])

    async def start(self) -> None:
        if len(self.queries) >= MOST:
            return
        who, constant = self.chance.choice(PEOPLE), f"c{len(self.asked):03}"
        text = self.chance.choice(FORMS).replace("{c}", constant)
        self.asked[constant] = frozenset(name for name in RELATIONS if name in text)
        if not self.may(who, constant):
            with pytest.raises(FederationError) as found:
                await self.harness.start_query(self.coordinator, text, principal=who)
            assert found.value.code == "not_allowed", found.value
            self.counts["refused"] += 1
            return
        before = self.nodes()
        query = await self.harness.start_query(self.coordinator, text, principal=who)
        for run, columns in self.nodes().items():
            if len(columns) > len(before.get(run, ())):  # made for it, or given columns
                self.makers[run] = self.makers.get(run, frozenset()) | self.asked[constant]
        self.queries[query] = text.replace("OpenRooms", f"({VIEW})")
        self.owners[query] = who, constant
        self.check_feeds(query)

    def nodes(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of the nodes, by run."""
        nodes = self.coordinator._queries.nodes.all()
        return {node.run: node.bundle.schema.names for node in nodes}

    async def change_some(self) -> None:
        """Revoke seldom: of ten pairs eight are granted at most times."""
        who, relation = self.chance.choice(PEOPLE), self.chance.choice(list(RELATIONS))
        if (who.name, relation) not in self.grants or self.chance.random() < 0.25:
            await self.change(who, relation)

    async def change(self, who: Principal, relation: str) -> None:
        """Give or revoke a grant; what rested on it is stopped, and nothing else."""
        pair = (who.name, relation)
        said, to = ("REVOKE", "FROM") if pair in self.grants else ("GRANT", "TO")
        statement = f"{said} SELECT ON {RELATIONS[relation]} {relation} {to} USER {who.name}"
        await self.coordinator.execute(statement, principal=ADA)
        self.grants ^= {pair}
        for query in [*self.queries]:
            is_failed = self.coordinator.query(query).status == QueryStatus.FAILED
            assert is_failed is not self.may(*self.owners[query]), (statement, query)
            if is_failed:
                self.counts["stopped"] += 1
                # Who received its rows goes on with a copy of that computation.
                self.taken.add(self.owners[query][1])
                del self.queries[query]
                await self.coordinator.stop(query)

    # --- what holds ------------------------------------------------------------------------------

    def check_feeds(self, query: str) -> None:
        """A query reads alone what its owner may read: runs of queries, and nodes made of some."""
        registry, (who, _) = self.coordinator._queries, self.owners[query]
        for feed in registry.find(query).bundle.feeds:
            self.counts["fed"] += 1
            if feed.run in self.makers:  # what its maker named that leads to its rows
                self.counts["fed by a node"] += 1
                logical = registry.runs.leader(feed.run).logical
                sources = {scan.source.lower() for scan in scans(logical)}
                made_of = self.makers[feed.run]
                named = frozenset(r for r in made_of if BELOW.get(r, r).lower() in sources)
            else:
                named = self.asked[self.owners[feed.run][1]]
            assert {(who.name, r) for r in named} <= self.grants, (query, feed, named)

    def check_sources(self, query: str) -> None:
        """All that a query rests on is what its owner may read, or below a view that they may."""
        who, constant = self.owners[query]
        # A bundle says all that its rows are computed from, also by runs of others.
        fragments = self.coordinator._queries.find(query).bundle.fragments
        for source in {node.source for f in fragments for node in scans(f.plan)}:
            if not any(n == who.name and r.lower() == source for n, r in self.grants):
                # The view is computed with the rights of its maker.
                assert source == "roomsensor", (query, source)
                assert {(who.name, "OpenRooms")} <= self.grants, query
                assert "OpenRooms" in self.asked[constant], query
                self.counts["by the view alone"] += 1

    async def check_told(self, who: Principal) -> None:
        """Nobody is told of a query, there or ended, whose relations they may not read."""
        api = self.coordinator.on_behalf(who)
        network = api.network()
        told = [repr(network), network_dot(network)]
        for query, (_, constant) in self.owners.items():
            if query not in self.queries:
                continue
            if self.may(who, constant):
                told.append(repr(api.explain(query)))
                assert sorted(api.relation(query), key=repr) == self.shown()[query]
            else:
                for asked in (api.explain, api.relation, api.query):
                    with pytest.raises(FederationError) as found:
                        asked(query)
                    assert found.value.code == "not_allowed"
        self.counts["not shown"] += any(NOT_SHOWN in text for text in told)
        for constant in self.asked.keys() - self.taken:
            if not self.may(who, constant):
                assert not any(constant in text for text in told), (who, constant)

    async def round(self) -> None:
        often = (*[self.start] * 5, self.stop, self.read, *[self.change_some] * 2)
        rare = (self.come, self.go, self.restart_coordinator)
        for _ in range(self.chance.randrange(2, 7)):
            await self.chance.choice(often if self.chance.random() < 0.9 else rare)()
        await self.agrees()
        for query in self.queries:
            self.check_sources(query)
        for who in PEOPLE:
            await self.check_told(who)
        if self.queries:
            told = repr(self.coordinator.on_behalf(OLA).network())
            assert NOT_SHOWN not in told


def scans(plan: Plan) -> Iterator[Scan]:
    return (node for node in walk_plan(plan) if isinstance(node, Scan))


WANTED = (
    "refused",
    "stopped",
    "fed",
    "fed by a node",
    "by the view alone",
    "not shown",
    "restarts",
)


@pytest.mark.usefixtures("impatient")
def test_sharing_gives_nobody_what_is_not_granted(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        counts += live_through(Harness(folder), seed)
    for happened in WANTED:
        assert counts[happened] > 0, counts


def live_through(harness: Harness, seed: int) -> Counter[str]:
    """Return what has happened."""
    counts: Counter[str] = Counter()

    async def scenario(federation: Any) -> None:
        world = Granted(federation, harness, seed)
        await world.begin()
        for _ in range(ROUNDS):
            await world.round()
        counts.update(world.counts)

    harness.run(scenario)
    return counts
