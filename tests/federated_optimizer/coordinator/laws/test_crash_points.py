"""A coordinator dies at each write of its catalog and at each order to a site, one after the other.

Then another one starts over the same catalog, broker and sites. At rest the computation index says
what runs, whatever was acknowledged has the rows of DuckDB, and nothing is left of the rest.
"""

from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.queries import background_work
from federated_optimizer.coordinator.sites.flows import sites_of
from federated_optimizer.coordinator.store.grant_store import stored_rights
from federated_optimizer.coordinator.store.stored_computations import stored_computations
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact
from tests.federated_optimizer.coordinator.dying_coordinator import DyingCoordinator, Step

OPEN = "FROM Link l JOIN RoomSensor r ON l.dst = r.rid WHERE r.status = 'open'"
COUNTS = (
    "SELECT p.status, COUNT(*) AS n FROM (SELECT l.src, l.dst, r.status FROM Link l "
    "JOIN RoomSensor r ON l.dst = r.rid) p GROUP BY p.status"
)
NAMES = f"SELECT l.src {OPEN}"
WIDER = f"SELECT l.src, l.cost {OPEN}"
OTHERS = f"SELECT l.src, l.cost * 2 AS c {OPEN}"
SEATS = "SELECT s.mid, r.status FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid"
TAKEN = f"{SEATS} WHERE r.status = 'open'"
TABLES = {
    "link": "src TEXT, dst TEXT, cost DOUBLE",
    "roomsensor": "rid TEXT, status TEXT",
    "seatsensor": "mid TEXT, rid TEXT, weightlevel DOUBLE",
}
Rows = dict[tuple[str, str], list[tuple[Any, ...]]]
ROWS: Rows = {
    ("gw-1", "roomsensor"): [("r1", "open"), ("r2", "shut")],
    ("gw-1", "seatsensor"): [("m1", "r1", 1.0), ("m2", "r2", 1.0)],
    ("gw-2", "link"): [("a", "r1", 1.0), ("b", "r1", 2.0), ("c", "r2", 3.0)],
    ("gw-2", "roomsensor"): [("r3", "open")],
}
LATER: Rows = {
    ("gw-1", "roomsensor"): [("r4", "open")],
    ("gw-1", "seatsensor"): [("m3", "r4", 1.0)],
    ("gw-2", "link"): [("d", "r4", 4.0), ("e", "r3", 5.0)],
}
AT_BASE = {"roomsensor": (10.0, 10.0), "seatsensor": (1_000.0, 100.0)}
AT_GATEWAYS = {"roomsensor": (1_000.0, 100.0), "seatsensor": (10.0, 0.01)}
OLGA = Principal("olga", Role.OPERATOR)
REGROUP = 0.01
ADAPT = 0.05


class World:
    """A federation, what of its queries is acknowledged, and the rows of its gateways.

    Attributes:
        running: Texts of the queries that have to run, by id.
        perhaps: Texts of queries whose begin nobody has acknowledged.
        ending: Queries that may run or not: nobody has acknowledged their end.
        steps: What the coordinator did before it died.
    """

    def __init__(self, federation: Any, harness: Any, *, is_moving: bool) -> None:
        self._federation, self._harness = federation, harness
        self._options = {"regroup": REGROUP, "adapt": ADAPT if is_moving else 0.0}
        self.running: dict[str, str] = {}
        self.perhaps: list[str] = []
        self.ending: set[str] = set()
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}

    async def begin(self, step: Step, at: int) -> None:
        await self._federation.site("base", "base")
        for gateway in ("gw-1", "gw-2"):
            await self._federation.site(gateway)
        self.put(ROWS)
        self.coordinator = await self._federation.coordinator(define_schema=True, **self._options)
        await self._sites(3)
        self.turn(AT_BASE)
        await self.rest()
        self.dying = DyingCoordinator(self.coordinator, step, at)

    async def _sites(self, count: int) -> None:
        await self._harness.until(
            lambda: sum(site.online for site in self.coordinator.sites()) == count, "online"
        )

    def put(self, rows: Rows) -> None:
        for (site, source), those in rows.items():
            self._federation.sites[site].put(source, *those)
            self._rows[source] += those

    def turn(self, facts: dict[str, tuple[float, float]]) -> None:
        shared = self.coordinator._shared
        for source, told in facts.items():
            subject = Subject(SubjectKind.SOURCE, source, "gw-1")
            for quantity, value in zip((Quantity.SENSORS, Quantity.CHANGES), told, strict=True):
                shared.facts.put(exact(subject, quantity, value, shared.clock(), Origin.COUNTED))

    # --- what happens ----------------------------------------------------------------------------

    async def start(self, text: str) -> None:
        starting = self._harness.start_query(self.coordinator, text, principal=OLGA)
        query = await self.dying.while_it_lives(starting)
        if query is None:
            self.perhaps.append(text)
        else:
            self.running[query] = text
            await self.dying.while_it_lives(self.rest())

    async def begin_other(self) -> None:
        """The next coordinator starts a query that would widen a node otherwise."""
        query = await self._harness.start_query(self.coordinator, OTHERS, principal=OLGA)
        self.running[query] = OTHERS

    async def stop(self, text: str) -> None:
        query = next(query for query, started in self.running.items() if started == text)
        if await self.dying.while_it_lives(self.coordinator.stop(query)) is None:
            self.ending.add(query)
        else:
            del self.running[query]
            await self.dying.while_it_lives(self.rest())

    async def gateway(self) -> None:
        await self._federation.site("gw-3")
        await self.dying.while_it_lives(self.replanned())

    async def replanned(self) -> None:
        await self._sites(4)
        await self.rest()

    async def moved(self) -> None:
        self.turn(AT_GATEWAYS)
        decisions = self.coordinator._shared.decisions
        await self.dying.while_it_lives(
            self._harness.until(
                lambda: any(each.outcome == "moved" for each in decisions.all()), "moved"
            )
        )
        await self.dying.while_it_lives(self.rest())

    async def another(self) -> None:
        """The coordinator is dead; another one starts."""
        self._federation.broker.cut(self.coordinator._shared.settings.host)
        self._federation.coordinators.remove(self.coordinator)
        await self.dying.bury()
        sites = len(self._federation.sites)
        self.coordinator = await self._federation.coordinator(**self._options)
        await self._sites(sites)
        await self.rest()

    # --- what it should be -----------------------------------------------------------------------

    async def rest(self) -> None:
        """Wait until nothing is left to be done."""
        try:
            await self._harness.until(self._rests, "rest")
        except AssertionError:
            raise AssertionError(
                [q.info() for q in self.coordinator._queries.everything()]
            ) from None

    def _rests(self) -> bool:
        queries, nodes = self.coordinator._queries, self.coordinator._queries.nodes
        return (
            self.coordinator._replanning.due is None
            and not (queries.widened or queries.late_runs or queries.has_old_plans)
            and not (queries.runs.tried() or nodes.stale or nodes.unneeded() or nodes.trimmable())
            and all(query.settled for query in self.coordinator.queries())
            and self._at_sites() == self._wanted()
            and self._federation.fragments() == self._wanted()
        )

    def _at_sites(self) -> set[tuple[str, str]]:
        return {
            (run, name)
            for name, site in self._federation.sites.items()
            for run in site.engine.queries
        }

    def _wanted(self) -> set[tuple[str, str]]:
        runs = self.coordinator._queries.runs
        return {(run, site) for run in runs.all() for site in sites_of(runs.readers(run)[0].bundle)}

    async def check(self) -> None:
        while (report := await self.coordinator.check_network()).moving:
            await self.rest()  # a query has begun to move since
        assert report.differences == ()
        found = {query.id: query.text for query in self.coordinator.queries()}
        assert self.running.keys() - self.ending <= found.keys()
        makers = stored_rights(self.coordinator._shared.store).makers
        assert {query for _, query in makers} == found.keys()
        for query, text in found.items():
            if query not in self.running:
                self.perhaps.remove(text)
                self.running[query] = text
            await self._harness.until_rows(self.coordinator, query, self._expected(text))

    def _expected(self, text: str) -> list[Any]:
        with closing(duckdb.connect()) as connection:
            for table, columns in TABLES.items():
                connection.execute(f"CREATE TABLE {table} ({columns})")
                for row in self._rows[table]:
                    marks = ", ".join("?" for _ in row)
                    connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
            return connection.execute(text).fetchall()

    async def end(self) -> None:
        """Nothing is left when all queries have ended."""
        for query in self.coordinator.queries():
            await self.coordinator.stop(query.id)
        await self.rest()
        with self.coordinator._shared.store.writing() as connection:
            assert not stored_computations(connection)
        assert not self.coordinator._shared.store.nodes()
        assert not self._at_sites()
        assert not self._federation.fragments()


Act = Callable[[], Awaitable[None]]
Story = Callable[[World], tuple[Act, ...]]


def registrations(world: World) -> tuple[Act, ...]:
    """A query, an equal one, one that makes a node, one that widens it, ends, a gateway."""
    return (
        *(partial(world.start, text) for text in (COUNTS, COUNTS, NAMES, WIDER)),
        *(partial(world.stop, text) for text in (NAMES, COUNTS)),
        world.gateway,
        partial(world.stop, COUNTS),
    )


def move(world: World) -> tuple[Act, ...]:
    """A query, one that reads it, and another plan that is cheaper."""
    return partial(world.start, SEATS), partial(world.start, TAKEN), world.moved


STORIES: dict[Story, bool] = {registrations: False, move: True}
"""Stories, and whether queries move for other facts."""
FEWEST = {Step.COMMIT: (14, 5), Step.MESSAGE: (25, 10)}
"""Crash points that the stories have at least."""


async def live(world: World, story: Story, step: Step, at: int) -> bool:
    """Let a coordinator die in a story, and another one go on; return whether it has died."""
    await world.begin(step, at)
    for act in story(world):
        if not world.dying.is_dead:
            await act()
    has_died = world.dying.is_dead
    await world.another()
    await world.check()
    # What the dead one has told sites under some number and version is not what comes now.
    await world.begin_other()
    world.put(LATER)
    await world.rest()
    await world.check()
    await world.end()
    return has_died


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("step", list(Step))
@pytest.mark.parametrize("story", list(STORIES))
def test_every_crash_point(
    harness: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    story: Story,
    step: Step,
) -> None:
    monkeypatch.setattr(background_work, "HOUSEKEEPING_SECONDS", 0.01)
    lives: list[list[str]] = []
    deaths: list[bool] = []

    async def scenario(federation: Any) -> None:
        world = World(federation, harness, is_moving=STORIES[story])
        deaths.append(await live(world, story, step, len(deaths) + 1))
        lives.append(world.dying.steps)

    while all(deaths):
        harness.folder = tmp_path / str(len(deaths))
        harness.folder.mkdir()
        harness.run(scenario)
    count, whole = sum(deaths), lives[-1]
    print(f"{story.__name__}: dies at {count} of {len(whole)} {step}s")  # noqa: T201
    assert count == len(whole) >= FEWEST[step][STORIES[story]]
    if not STORIES[story]:  # so that each was met in one of the lives
        assert all(steps == whole[: len(steps)] for steps in lives)
