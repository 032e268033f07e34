"""Streams joined with a large table of a database, in a federation with a real static engine."""

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from host.mqtt import Message
from host.mqtt.in_memory import Faults
from tests.federated_optimizer.coordinator.running_static_engine import begin, static_engine

TABLE = """
CREATE TABLE leases (room TEXT, tenant TEXT)
  WITH (source = 'sql', url = 'sqlite:///leases.db', table = 'leases');
"""
LARGE = 100_000
ROOMS = ["r0", "r1", "r2", "r3", "r4"]

Shown = tuple[str, str, str | None]
Pairs = Iterable[tuple[str, str]]


def inner(rooms: dict[str, str], leases: list[tuple[str, str]]) -> list[Shown]:
    return [(r, s, t) for r, s in rooms.items() for lease, t in leases if lease == r]


def left(rooms: dict[str, str], leases: list[tuple[str, str]]) -> list[Shown]:
    leased = {lease for lease, _ in leases}
    return inner(rooms, leases) + [(r, s, None) for r, s in rooms.items() if r not in leased]


def unleased(rooms: dict[str, str], leases: list[tuple[str, str]]) -> list[Shown]:
    return [row for row in left(rooms, leases) if row[2] is None]


Oracle = Callable[[dict[str, str], list[tuple[str, str]]], list[Shown]]
QUERIES: dict[str, tuple[str, Oracle]] = {
    "inner": (
        "SELECT s.rid, s.status, l.tenant FROM RoomSensor s JOIN leases l ON l.room = s.rid",
        inner,
    ),
    "left": (
        "SELECT s.rid, s.status, l.tenant FROM RoomSensor s LEFT JOIN leases l ON l.room = s.rid",
        left,
    ),
    "anti": (
        "SELECT s.rid, s.status, CAST(NULL AS TEXT) AS tenant FROM RoomSensor s "
        "WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.room = s.rid)",
        unleased,
    ),
    "twice": (
        "SELECT s.rid, s.status, l.tenant FROM RoomSensor s JOIN leases l ON l.room = s.rid "
        "UNION ALL SELECT s.rid, s.status, CAST(NULL AS TEXT) AS tenant FROM RoomSensor s "
        "WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.room = s.rid) "
        "UNION ALL SELECT s.rid, s.status, l.tenant FROM RoomSensor s "
        "JOIN leases l ON l.room = s.rid",
        lambda rooms, leases: left(rooms, leases) + inner(rooms, leases),
    ),
}


def write(folder: Path, leases: list[tuple[str, str]]) -> None:
    with closing(sqlite3.connect(folder / "leases.db")) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS leases (room TEXT, tenant TEXT)")
        database.execute("CREATE INDEX IF NOT EXISTS by_room ON leases (room)")
        if not database.execute("SELECT COUNT(*) FROM leases").fetchone()[0]:
            others = [(f"other {n}", "nobody") for n in range(LARGE)]
            database.executemany("INSERT INTO leases VALUES (?, ?)", others)
        database.execute("DELETE FROM leases WHERE room IN ('r0', 'r1', 'r2', 'r3', 'r4')")
        database.executemany("INSERT INTO leases VALUES (?, ?)", leases)


class Counted:
    """Bytes of what the static engine sends to the base."""

    def __init__(self) -> None:
        self.bytes = 0

    async def watch(self, federation: Any) -> None:
        client = federation.broker.client("observer")
        client.on_messages(self._hear)
        await client.connect()
        await client.subscribe(federation.topics.exchange("+", "base", "static"))

    def _hear(self, burst: list[Message]) -> None:
        self.bytes += sum(len(message.payload) for message in burst)


async def begun(federation: Any, harness: Any) -> Any:
    write(federation.folder, [])
    coordinator = await begin(federation, gateways=2)
    await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 4)
    await coordinator.execute(TABLE)
    return coordinator


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", QUERIES)
def test_answers_follow_changes_of_either_side(harness: Any, kind: str) -> None:
    """Also while messages are lost, and over a restart of the static engine."""

    async def scenario(federation: Any) -> None:
        text, oracle = QUERIES[kind]
        rng = random.Random(kind)
        counted = Counted()
        await counted.watch(federation)
        async with contextlib.AsyncExitStack() as first:
            await first.enter_async_context(static_engine(federation))
            coordinator = await begun(federation, harness)
            query = await harness.start_query(coordinator, text)
            rooms: dict[str, str] = {}
            leases: list[tuple[str, str]] = []
            for step in range(12):
                change_sensors = rng.random() < 0.6
                if change_sensors:
                    room = rng.choice(ROOMS)
                    gateway = federation.sites[f"gw-{1 + ROOMS.index(room) % 2}"]
                    if room in rooms and rng.random() < 0.4:
                        gateway.put("roomsensor", (room, rooms.pop(room)), delete=True)
                    else:
                        rooms[room] = rng.choice(["open", "shut"])
                        gateway.put("roomsensor", (room, rooms[room]))
                else:
                    leases = [(r, f"t{n}") for r in ROOMS for n in range(rng.randrange(3))]
                    write(federation.folder, leases)
                if step % 4 == 3:
                    federation.broker.faults = Faults(lose=0.5)
                    await federation.broker.settle()
                    federation.broker.faults = Faults()
                await harness.until_rows(coordinator, query, oracle(rooms, leases))
            await harness.until(lambda: coordinator.query(query).settled)
        async with static_engine(federation, epoch=2) as second:
            rooms["r0"] = "anew"
            federation.sites["gw-1"].put("roomsensor", ("r0", "anew"))
            await harness.until_rows(coordinator, query, oracle(rooms, leases))
            assert second._store.find("leases") is None
        assert counted.bytes < 20_000  # the table is more than 2,000,000

    harness.run(scenario)


BOTH = frozenset({"room", "tenant"})
"""The columns that SQLite compares as we do."""


def known(coordinator: Any) -> tuple[float | None, frozenset[str]] | None:
    """Facts about the table, as plans are made with them."""
    facts = coordinator._planner.statistics().sources.get("leases")
    return None if facts is None else (facts.rows, facts.compared)


def test_explain_says_what_travels_and_small_tables_travel_whole(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with static_engine(federation):
            coordinator = await begun(federation, harness)
            await harness.until(lambda: known(coordinator) == (LARGE, BOTH))
            (told,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {QUERIES['inner'][0]}")
            assert "looked up by key: about 100,000 rows" in told.text
            groups = "SELECT tenant, COUNT(*) AS n FROM leases WHERE room = 'r1' GROUP BY tenant"
            (told,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {groups}")
            assert "pushed to the database: Aggregate [tenant] COUNT(*)" in told.text
            assert "computed by the static engine" not in told.text
            (federation.folder / "leases.db").unlink()
            with closing(sqlite3.connect(federation.folder / "leases.db")) as database, database:
                database.execute("CREATE TABLE leases (room TEXT, tenant TEXT)")
            await coordinator.execute("DROP TABLE leases")
            await coordinator.execute(TABLE)
            await harness.until(lambda: known(coordinator) == (0, frozenset()))
            (told,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {QUERIES['inner'][0]}")
            assert "looked up by key" not in told.text

    harness.run(scenario)
