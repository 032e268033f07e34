"""Queries that read parts of each other come and go amid data and deaths: rows are DuckDB's.

A query that starts or stops changes nothing that readers of others see, and the last one leaves
nothing behind: no bundle, no node, no row in the catalog.
"""

from typing import Any

import pytest

from tests.federated_optimizer.coordinator.laws.test_shared_runs_against_duckdb import World

ROUNDS, SEEDS = 12, 4
MOST = 9
COLUMNS = ("l.src", "l.dst", "r.status", "l.cost")
CONDITIONS = (
    "r.status = 'open'",
    "'open' = r.status",
    "r.status <> 'open'",
    "l.src > 'r3'",
    "l.src > 'r5' AND r.status = 'open'",
    "NOT (l.src <= 'r3') AND r.rid < 'r8'",
    "(l.src > 'r6' OR r.status = 'shut') AND l.dst >= 'r2'",
)
JOIN = "Link l JOIN RoomSensor r ON l.dst = r.rid"
THREE = f"{JOIN} JOIN SeatSensor s ON s.rid = r.rid"
FIXED = (
    f"SELECT r.status, COUNT(*) AS n, MIN(l.src) AS low FROM {JOIN} GROUP BY r.status",
    f"SELECT r.status, l.dst, COUNT(*) AS n FROM {JOIN} GROUP BY r.status, l.dst",
    f"SELECT DISTINCT r.status FROM {JOIN}",
    f"SELECT s.mid, l.src, r.status FROM {THREE}",
    f"SELECT s.mid, COUNT(*) AS n FROM {THREE} WHERE r.status = 'open' GROUP BY s.mid",
    f"SELECT l.src FROM {JOIN} UNION SELECT s.mid FROM SeatSensor s",
    "SELECT l.src, r.status FROM Link l LEFT JOIN RoomSensor r ON l.dst = r.rid",
    "SELECT a.src, b.dst FROM Link a JOIN Link b ON a.dst = b.src",
    "SELECT a.src FROM Link a JOIN Link b ON a.dst = b.src WHERE b.dst > 'r4'",
)


class Sharing(World):
    """Queries over few joins, with many conditions.

    Attributes:
        most_fed: The most runs that read results at one time.
    """

    def __init__(self, federation: Any, harness: Any, seed: int) -> None:
        super().__init__(federation, harness, seed)
        self.most_fed = 0

    def text(self) -> str:
        if self.chance.random() < 0.4:
            return self.chance.choice(FIXED)
        columns = self.chance.sample(COLUMNS, self.chance.randrange(1, 4))
        conditions = self.chance.sample(CONDITIONS, self.chance.randrange(3))
        where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
        return f"SELECT {', '.join(columns)} FROM {JOIN}{where}"

    async def start(self) -> None:
        if len(self.queries) < MOST:
            text = self.text()
            self.queries[await self.harness.start_query(self.coordinator, text)] = text

    async def kill_coordinator(self) -> None:
        """The coordinator dies between any two things that it does."""
        await self.coordinator._background.stop()
        self.federation.broker.cut("coordinator")
        self.coordinator._shared.presence.taken_over = True
        self.coordinator = await self.federation.coordinator()

    async def round(self, *, quiet: bool) -> None:
        """Let some things happen; quiet, only queries come and go."""
        before = {q: self.coordinator.query(q).changes for q in self.queries}
        come_and_go = (self.start, self.start, self.stop)
        rare = (self.come, self.go, self.restart_coordinator, self.restart_base)
        others = (self.read, self.read, self.read, *rare, self.kill_coordinator)
        for _ in range(self.chance.randrange(1, 5)):
            await self.chance.choice(come_and_go if quiet else (*come_and_go, *others))()
        await self.agrees()
        if quiet:
            now = {q: self.coordinator.query(q).changes for q in before if q in self.queries}
            assert now == {q: before[q] for q in now}, "readers were told of other queries"
        await self.check_network()

    async def check_network(self) -> None:
        """Everything that runs is needed, and what is read is there as it is read."""
        queries = self.coordinator._queries
        bundles = {query.run: query.bundle for query in queries.everything()}
        for bundle in bundles.values():
            for feed in bundle.feeds:
                assert bundles[feed.run].version == feed.version
                assert feed.source in {fragment.id for fragment in bundles[feed.run].own}

        def unread() -> set[str]:
            read = {feed.run for query in queries.everything() for feed in query.bundle.feeds}
            return {node.run for node in queries.nodes.all()} - read

        # The next chores end it: a coordinator that has just begun finds some.
        await self.harness.until(lambda: not unread(), "a node that nobody reads ends")
        fed = [run for run in bundles if queries.runs.reads_results(run)]
        self.most_fed = max(self.most_fed, len(fed))
        engine = self.federation.sites["base"].engine
        await self.harness.until(
            lambda: set(engine.queries) == {query.run for query in queries.everything()},
            "it runs these",
        )


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_shared_computations_show_what_duckdb_computes(harness: Any, seed: int) -> None:
    async def scenario(federation: Any) -> None:
        world = Sharing(federation, harness, seed)
        await world.begin()
        for _ in range(3):
            await world.read()
            await world.start()
        await world.agrees()
        for number in range(ROUNDS):
            await world.round(quiet=number % 3 == 0)
        assert world.most_fed > 0
        for query in sorted(world.queries, key=lambda _query: world.chance.random()):
            await world.coordinator.stop(query)
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        coordinator = world.coordinator
        assert not coordinator._shared.store.nodes()
        assert not coordinator._queries.nodes.all()
        assert not coordinator._queries.runs.all()
        assert len(coordinator._queries.offers.index()) == 0
        await harness.until(lambda: not federation.sites["base"].engine.queries)

    harness.run(scenario)
