"""Equal queries, and others with equal fragments, that come and go, show what DuckDB computes."""

import random
from typing import Any

import duckdb
import pytest

from federated_optimizer.network.shareable import fragment_prints
from streamsql.wire.site_messages import SiteRole

TEXTS = (
    "SELECT rid, status FROM RoomSensor",
    "SELECT mid, rid FROM SeatSensor WHERE weightLevel > 5",
    "SELECT s.mid, r.status FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid",
    "SELECT status, COUNT(*) AS n FROM RoomSensor GROUP BY status",
    # Of these the gateways send the same rows.
    "SELECT l.src, r.rid FROM Link l LEFT JOIN RoomSensor r ON l.dst = r.rid",
    "SELECT l.src, r.rid FROM Link l JOIN RoomSensor r ON l.dst = r.rid",
    "SELECT r.rid, l.src FROM RoomSensor r LEFT JOIN Link l ON l.dst = r.rid",
)
MOST = 5
ROUNDS = 14
TABLES = {
    "roomsensor": "rid TEXT, status TEXT",
    "seatsensor": "mid TEXT, rid TEXT, weightLevel DOUBLE",
    "link": "src TEXT, dst TEXT, cost DOUBLE",
}
KEYS = {"roomsensor": 1, "seatsensor": 1, "link": 2}


class World:
    """What the gateways have, as plain rows, and the queries that run."""

    def __init__(self, federation: Any, harness: Any, seed: int) -> None:
        self.federation, self.harness = federation, harness
        self.chance = random.Random(seed)
        self.rows: dict[str, dict[str, dict[Any, Any]]] = {}
        self.queries: dict[str, str] = {}
        self.epochs = {"base": 1}

    async def begin(self) -> None:
        self.coordinator = await self.federation.standard(gateways=0)
        await self.come()

    async def come(self) -> None:
        """A gateway comes, perhaps one that was there before: it has nothing then."""
        gateway = f"gw-{self.chance.randrange(3)}"
        if gateway in self.rows:
            return
        self.epochs[gateway] = self.epochs.get(gateway, 0) + 1
        await self.federation.site(gateway, epoch=self.epochs[gateway])
        self.rows[gateway] = {table: {} for table in TABLES}

    async def go(self) -> None:
        """A gateway goes without a word."""
        if len(self.rows) > 1:
            gateway = self.chance.choice(list(self.rows))
            del self.rows[gateway]
            self.federation.broker.cut(gateway)
            await self.federation.sites[gateway].stop()

    async def start(self) -> None:
        if len(self.queries) < MOST:
            text = self.chance.choice(TEXTS)
            self.queries[await self.harness.start_query(self.coordinator, text)] = text

    async def stop(self) -> None:
        if len(self.queries) > 1:
            query = self.chance.choice(list(self.queries))
            del self.queries[query]
            await self.coordinator.stop(query)

    async def read(self) -> None:
        """Readings come, and rows are withdrawn."""
        for _ in range(4):
            gateway = self.chance.choice(list(self.rows))
            table = self.chance.choice(list(TABLES))
            # Rows of a key come from one gateway, and so do those of a room (colocate = 'rid').
            number, other = [3 * self.chance.randrange(3) + int(gateway[-1]) for _ in range(2)]
            anywhere = f"r{self.chance.randrange(9)}"
            row: tuple[Any, ...] = {
                "roomsensor": (f"r{number}", self.chance.choice(("open", "shut"))),
                "seatsensor": (f"m{number}", f"r{other}", float(self.chance.randrange(10))),
                "link": (f"r{number}", anywhere, 1.0),
            }[table]
            known, key = self.rows[gateway][table], row[: KEYS[table]]
            delete = key in known and self.chance.random() < 0.3
            if delete:
                row = known.pop(key)
            else:
                known[key] = row
            self.federation.sites[gateway].put(table, row, delete=delete)

    async def restart_coordinator(self) -> None:
        await self.coordinator.close()
        self.coordinator = await self.federation.coordinator()

    async def restart_base(self) -> None:
        self.epochs["base"] += 1
        self.federation.broker.cut("base")
        await self.federation.sites["base"].stop()
        await self.federation.site("base", SiteRole.BASE, epoch=self.epochs["base"])

    async def restart_broker(self) -> None:
        # A broker that forgets a gateway which is gone leaves nobody who knows that it is.
        may_forget = self.epochs.keys() - {"base"} == self.rows.keys()
        self.federation.broker.stop(forget=may_forget and self.chance.random() < 0.5)
        self.federation.broker.start()

    def expected(self) -> dict[str, list[Any]]:
        """Return what DuckDB computes, by query."""
        with duckdb.connect() as connection:
            for table, columns in TABLES.items():
                connection.execute(f"CREATE TABLE {table} ({columns})")
                rows = [row for by in self.rows.values() for row in by[table].values()]
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            return {
                query: sorted(connection.execute(text).fetchall(), key=repr)
                for query, text in self.queries.items()
            }

    def shown(self) -> dict[str, list[Any]]:
        return {q: sorted(self.coordinator.relation(q), key=repr) for q in self.queries}

    async def agrees(self) -> None:
        expected = self.expected()
        said = f"{self.queries} over {self.rows}"
        await self.harness.until(lambda: self.shown() == expected, said)
        settled = lambda: all(self.coordinator.query(q).settled for q in self.queries)  # noqa: E731
        await self.harness.until(settled, f"settled: {said}")
        assert self.shown() == expected

    def check_runs(self) -> None:
        """Equal queries have one run, which every site that runs anything knows."""
        runs = {query.id: query.run for query in self.coordinator._queries.all()}
        by_text = {text: {runs[q] for q, t in self.queries.items() if t == text} for text in TEXTS}
        assert all(len(found) <= 1 for found in by_text.values()), by_text
        known = {query.run for query in self.coordinator._queries.everything()}
        assert set(self.federation.sites["base"].engine.queries) == known
        printed = [
            name
            for run in known
            for bundle in [self.coordinator._queries.runs.live(run)[0].bundle]
            for fragment, name in fragment_prints(bundle).items()
            if fragment in {own.id for own in bundle.own}
        ]
        assert len(set(printed)) == len(printed), "no fragment is run twice"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("seed", range(2))
def test_shared_runs_show_what_duckdb_computes(harness: Any, seed: int) -> None:
    async def scenario(federation: Any) -> None:
        world = World(federation, harness, seed)
        await world.begin()
        often = (world.start, world.read, world.read, world.stop, world.start)
        rare = (world.come, world.go, world.restart_coordinator, world.restart_base)
        actions = (*often, *often, *rare, world.restart_broker)
        await world.start()
        for _ in range(ROUNDS):
            for _ in range(world.chance.randrange(1, 4)):
                await world.chance.choice(actions)()
            await world.agrees()
        await harness.until(lambda: world.coordinator._replanning.due is None)
        await world.agrees()
        world.check_runs()
        for query in list(world.queries):
            await world.coordinator.stop(query)
        await harness.until(lambda: not federation.fragments(), "nothing is left")

    harness.run(scenario)
