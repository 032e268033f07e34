"""Queries that move between plans while readings, gateways and coordinators come and go.

Every status is told once only, so a row that a reader is given twice was a gap or a duplicate. At
rest the answer is what DuckDB computes.
"""

import asyncio
import random
from collections import Counter
from typing import Any

import duckdb
import pytest

from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact
from gateway.site.host import SiteHost
from host.mqtt import Message

TEXT = "SELECT s.mid, r.status FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid"
ADAPT = 0.2
LATE = 0.4
ACTIONS = 4
GATEWAYS = ("gw-1", "gw-2")
# Rows and changes a second of rooms and seats: where the join costs least is a matter of both.
AT_BASE = {"roomsensor": (10.0, 10.0), "seatsensor": (1_000.0, 100.0)}
AT_GATEWAYS = {"roomsensor": (1_000.0, 100.0), "seatsensor": (10.0, 0.01)}


class Readers:
    """Everything that one reader was told since the last snapshot."""

    def __init__(self, coordinator: Any, query: str) -> None:
        self.shown: Counter[Any] = Counter()
        self.came: Counter[Any] = Counter()
        self._reader = coordinator.subscribe(query)
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for batch in self._reader:
            if batch.snapshot:
                self.shown.clear()
            for change in batch.changes:
                self.shown[change.row] += change.diff
                self.came[change.row] += max(change.diff, 0)
            assert all(0 <= n <= 1 for n in self.shown.values()), self.shown
            again = {row: n for row, n in self.came.items() if n > 1}
            assert not again, f"told again: {again}"

    async def end(self) -> None:
        await self._reader.close()
        await self._task


class World:
    """Rows of the gateways, as plain values."""

    def __init__(self, federation: Any, harness: Any, seed: int) -> None:
        self.federation, self.harness = federation, harness
        self.chance = random.Random(seed)
        self.rooms: dict[str, dict[str, str]] = {}
        self.seats: dict[str, dict[str, str]] = {}
        self.epochs = dict.fromkeys((*GATEWAYS, "base"), 0)
        self.said = 0
        self.at_base = True

    async def begin(self) -> None:
        await self.federation.site("base", "base")
        self.coordinator = await self.federation.coordinator(define_schema=True, adapt=ADAPT)
        for gateway in GATEWAYS:
            await self.come(gateway)
        await self.harness.until(
            lambda: sum(site.online for site in self.coordinator.sites()) == len(GATEWAYS) + 1
        )
        self.turn()
        self.query = await self.harness.start_query(self.coordinator, TEXT)
        self.reader = Readers(self.coordinator, self.query)

    async def come(self, gateway: str) -> None:
        self.epochs[gateway] += 1
        self.rooms[gateway], self.seats[gateway] = {}, {}
        await self.federation.site(gateway, epoch=self.epochs[gateway])
        for _ in range(3):
            self.read(gateway)

    def read(self, gateway: str = "") -> None:
        """A room has a status that none had before, or a seat moves to a room of its gateway."""
        gateway = gateway or self.chance.choice(GATEWAYS)
        site, room = self.federation.sites[gateway], f"{gateway}-r{self.chance.randrange(3)}"
        self.said += 1
        status = f"s{self.said}"
        seat = f"{gateway}-m{self.said}"
        if self.chance.random() < 0.5:
            site.put("seatsensor", (seat, room, 1.0))
            self.seats[gateway][seat] = room
        site.put("roomsensor", (room, status))
        self.rooms[gateway][room] = status

    def turn(self, *, at_base: bool | None = None) -> None:
        """The facts are others, so that another plan is much cheaper."""
        self.at_base = not self.at_base if at_base is None else at_base
        facts, clock = self.coordinator._shared.facts, self.coordinator._shared.clock
        for source, told in (AT_BASE if self.at_base else AT_GATEWAYS).items():
            subject = Subject(SubjectKind.SOURCE, source, "gw-1")
            for quantity, value in zip((Quantity.SENSORS, Quantity.CHANGES), told, strict=True):
                facts.put(exact(subject, quantity, value, clock(), Origin.COUNTED))

    async def leave(self) -> None:
        """A gateway goes without a word, and comes back with nothing."""
        gateway = self.chance.choice(GATEWAYS)
        self.federation.broker.cut(gateway)
        await self.federation.sites[gateway].stop()
        await self.pause()
        await self.come(gateway)

    async def restart_coordinator(self) -> None:
        """Another coordinator takes over, perhaps amid a move; readers begin anew."""
        await self.reader.end()
        await self.coordinator.close()
        self.coordinator = await self.federation.coordinator(adapt=ADAPT)
        await self.harness.until(lambda: self.coordinator.query(self.query).settled, "settled")
        self.reader = Readers(self.coordinator, self.query)

    async def pause(self) -> None:
        await asyncio.sleep(self.chance.random() * 0.3)  # time passes: when things happen

    async def agrees(self) -> None:
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE roomsensor (rid TEXT, status TEXT)")
            connection.execute("CREATE TABLE seatsensor (mid TEXT, rid TEXT)")
            for table, known in (("roomsensor", self.rooms), ("seatsensor", self.seats)):
                rows = [pair for by in known.values() for pair in by.items()]
                if rows:
                    connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
            expected = sorted(connection.execute(TEXT).fetchall())
        await self.harness.until_rows(self.coordinator, self.query, expected)
        await self.harness.until(lambda: self.coordinator.query(self.query).settled, "settled")
        assert sorted(self.coordinator.relation(self.query)) == expected

    def moved(self) -> int:
        return sum(d.outcome == "moved" for d in self.coordinator._shared.decisions.all())

    async def moves(self) -> None:
        """Turn the facts, and wait until the query has moved; readings go on meanwhile."""
        before = self.moved()
        running = self.coordinator._queries.find(self.query).bundle.alternative
        self.turn(at_base=running == 1)
        for _ in range(200):
            if self.moved() > before:
                return
            if self.chance.random() < 0.2:
                self.read()
            await self.pause()
        raise AssertionError(f"it does not move: {self.coordinator._shared.decisions.all()}")


@pytest.fixture
def _late(monkeypatch: pytest.MonkeyPatch) -> None:
    """One gateway hears late of what it is to run, so that new runs are filled one by one."""
    heard = SiteHost._on_messages

    def late(self: SiteHost, burst: list[Message]) -> None:
        ours = [message for message in burst if message.topic.endswith("/frag/gw-2")]
        heard(self, [message for message in burst if message not in ours])
        if ours:
            asyncio.get_running_loop().call_later(LATE, heard, self, ours)

    monkeypatch.setattr(SiteHost, "_on_messages", late)


@pytest.mark.usefixtures("_late")
@pytest.mark.parametrize("seed", range(1))
def test_no_reader_notices_that_a_query_moves(harness: Any, seed: int) -> None:
    async def scenario(federation: Any) -> None:
        world = World(federation, harness, seed)
        await world.begin()
        await world.agrees()
        actions = [world.leave, world.restart_coordinator]
        actions += [world.moves, world.pause] * 2
        for number in range(ACTIONS):
            world.read()
            # Facts turn before: what happens then, happens amid a move.
            if world.chance.random() < 0.6:
                world.turn()
                await world.pause()
            await world.chance.choice(actions)()
            world.read()
            if number % 2:
                await world.agrees()
        await world.moves()
        await world.agrees()
        assert world.moved() >= 2
        runs = world.coordinator._queries.runs
        await harness.until(lambda: not runs.tried(), "nothing is on trial")
        report = await world.coordinator.check_network()
        assert report.moving or not report.differences
        await world.reader.end()

    harness.run(scenario)
