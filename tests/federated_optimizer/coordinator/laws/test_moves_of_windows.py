"""A query whose windows hold readings that no site keeps moves when the new ones hold the same.

Each reading is told when it comes, once, and told again when it has left its window, not before.
What a window holds is compared with DuckDB.
"""

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import Any

import duckdb
import pytest

from federated_optimizer.coordinator.adaptation import filled_runs
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact
from streamsql.data.events import SourceEvent
from streamsql.wire.fill_messages import Cut
from tests.federated_optimizer.coordinator.adaptation.test_adaptation import (
    decisions,
    looked_at,
    started,
    tell,
)
from tests.federated_optimizer.coordinator.conftest import SCHEMA, definitions, wall
from tests.federated_optimizer.coordinator.laws.test_windows_that_start_full import Filler
from tests.static_engine.lake.lake_rows import keep, lake_in

SECONDS = 3
WINDOW = SECONDS * 1_000_000
TEXT = (
    f"SELECT t.celsius, r.status FROM Temperature [RANGE {SECONDS} SECONDS] t "
    "JOIN RoomSensor r ON t.rid = r.rid"
)
EVERY = 0.15


@pytest.fixture(autouse=True)
def _clocks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filled_runs, "MARGIN", 300_000)


class Readings:
    """Readings of a room, each with another value, and what a reader was told of them."""

    def __init__(self, federation: Any, coordinator: Any, query: str) -> None:
        self.federation, self.coordinator, self.query = federation, coordinator, query
        self.said: dict[float, int] = {}
        self.came: dict[float, int] = {}
        self.gone: dict[float, int] = {}
        self._numbers = itertools.count(1)
        self._reader = coordinator.subscribe(query)
        self._tasks = [asyncio.create_task(self._hear())]

    def read(self, room: str = "r0") -> float:
        value = float(next(self._numbers))
        self.said[value] = wall()
        self.federation.sites["gw-1"].put("temperature", (room, value))
        return value

    def go_on(self) -> None:
        self._tasks.append(asyncio.create_task(self._read()))

    async def _read(self) -> None:
        while True:
            self.read()
            await asyncio.sleep(EVERY)  # time passes: several readings a second

    async def _hear(self) -> None:
        async for batch in self._reader:
            for change in batch.changes:
                value, _status = change.row
                told = self.came if change.diff > 0 else self.gone
                assert value not in told, f"{value} is told again"
                told[value] = wall()
                early = self.said[value] + WINDOW - wall()
                assert change.diff > 0 or early <= 0, f"{value} left {early} us too early"

    def expected(self) -> list[Any]:
        """What the window holds now, joined with the room's status."""
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE readings (celsius DOUBLE, ts BIGINT)")
            connection.executemany("INSERT INTO readings VALUES (?, ?)", list(self.said.items()))
            text = "SELECT celsius, 's0' FROM readings WHERE ts > ? ORDER BY celsius"
            return connection.execute(text, [wall() - WINDOW]).fetchall()

    async def end(self) -> None:
        for task in self._tasks[1:]:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._reader.close()
        await self._tasks[0]


def measured(coordinator: Any, rooms: tuple[float, float], readings: float) -> None:
    """Put rows and changes a second of rooms, and readings a second."""
    tell(coordinator, {"roomsensor": rooms})
    temperature = Subject(SubjectKind.SOURCE, "temperature", "gw-1")
    now = coordinator._shared.clock()
    fact = exact(temperature, Quantity.INSERTS, readings, now, Origin.COUNTED)
    coordinator._shared.facts.put(fact)


async def begun(harness: Any, federation: Any, text: str = TEXT) -> Any:
    """Start a query that joins at the base: each change of a room meets many readings."""
    coordinator, _ = await started(harness, federation)
    measured(coordinator, (1.0, 5_000.0), 50.0)
    query = await harness.start_query(coordinator, text)
    await harness.until(lambda: coordinator.query(query).settled)
    await looked_at(harness, coordinator, query)
    return coordinator, query


def turn(coordinator: Any) -> None:
    """Make the join at the gateways cheaper."""
    measured(coordinator, (1_000.0, 100.0), 0.01)


def of(coordinator: Any, query: str) -> list[Any]:
    return [d for d in decisions(coordinator) if query in d.queries.split(", ")]


def test_readings_come_and_leave_once_while_the_query_moves(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await begun(harness, federation)
        run = coordinator.query(query).run
        readings = Readings(federation, coordinator, query)
        readings.go_on()
        await harness.until(lambda: len(readings.gone) > 3, "the window is full")
        turn(coordinator)
        await harness.until(lambda: coordinator.query(query).run != run, "it moves")
        moved = wall()
        await harness.until(lambda: wall() > moved + 2 * WINDOW, "it goes on")
        (decision,) = of(coordinator, query)
        assert decision.outcome == "moved"
        assert decision.switch_seconds >= SECONDS
        await harness.until(
            lambda: sorted(coordinator.relation(query)) == readings.expected(), "as DuckDB says"
        )
        await readings.end()
        assert set(readings.came) >= {v for v, ts in readings.said.items() if ts < wall() - WINDOW}
        assert set(readings.gone) >= {
            v for v, ts in readings.said.items() if ts < wall() - 2 * WINDOW
        }

    harness.run(scenario)


def test_equal_rows_are_no_reason_while_the_old_window_holds_more(harness: Any) -> None:
    """Readings of a room that nobody knows yet are in the old window alone, and not in the rows."""

    async def scenario(federation: Any) -> None:
        coordinator, query = await begun(harness, federation)
        run = coordinator.query(query).run
        readings = Readings(federation, coordinator, query)
        turn(coordinator)
        await asyncio.sleep(0.1)  # time passes: the reading comes shortly before the move begins
        while not coordinator._queries.runs.tried():
            value = readings.read("r9")
            await asyncio.sleep(0.01)  # time passes: until the move begins
        (trial,) = coordinator._queries.runs.tried()
        await harness.until(trial.has_inputs, "the new run is there")
        await asyncio.sleep(1.0)  # time passes: both are at rest with the same rows
        assert coordinator.query(query).run == run, "it moves too early"
        federation.sites["gw-1"].put("roomsensor", ("r9", "late"))
        await harness.until(lambda: (value, "late") in coordinator.relation(query), "it is there")
        await harness.until(lambda: coordinator.query(query).run != run, "it moves")
        await readings.end()

    harness.run(scenario)


def test_windows_that_are_too_long_stay_and_say_so(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        text = TEXT.replace(f"{SECONDS} SECONDS", "2 HOURS")
        coordinator, query = await begun(harness, federation, text)
        turn(coordinator)
        await harness.until(lambda: bool(of(coordinator, query)), "it is decided")
        assert of(coordinator, query)[0].detail.startswith("it cannot move: its windows would take")

    harness.run(scenario)


def test_the_lake_fills_the_windows_of_the_new_run(harness: Any, tmp_path: Path) -> None:
    hours = 7 * 24
    lake = lake_in(tmp_path / "lake")
    now, hour = wall(), 3_600_000_000
    past = [SourceEvent(("r0", float(n)), now - n * hour - hour // 2) for n in range(hours + 50)]
    keep(lake, definitions(SCHEMA)["temperature"], past, gateway="gw-1", epoch=0)
    text = TEXT.replace(f"{SECONDS} SECONDS", "7 DAYS")

    def expected(*live: float) -> list[Any]:
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE readings (celsius DOUBLE, ts BIGINT)")
            rows = [(event.row[1], event.ts) for event in past] + [(v, now) for v in live]
            connection.executemany("INSERT INTO readings VALUES (?, ?)", rows)
            text = "SELECT celsius, 's0' FROM readings WHERE ts > ? ORDER BY celsius"
            return connection.execute(text, [now - 7 * 24 * hour]).fetchall()

    async def scenario(federation: Any) -> None:
        coordinator, _ = await started(harness, federation)
        for number in (1, 2):
            federation.sites[f"gw-{number}"].host.fills.cut = lambda _source: Cut(1, 0)
        filler = Filler(federation, lake)
        await filler.start()
        await harness.until(lambda: coordinator._shared.membership.fills_windows)
        measured(coordinator, (1.0, 5_000.0), 0.5)
        query = await harness.start_query(coordinator, text)
        await harness.until_rows(coordinator, query, expected())
        await harness.until(lambda: coordinator.query(query).settled, "settled")
        await looked_at(harness, coordinator, query)
        before = coordinator.query(query)
        measured(coordinator, (1_000.0, 100.0), 0.000_1)
        await harness.until(lambda: coordinator.query(query).run != before.run, "it moves")
        assert coordinator.query(query).changes == before.changes, "readers were told something"
        federation.sites["gw-1"].put("temperature", ("r0", 1_000.5))
        await harness.until_rows(coordinator, query, expected(1_000.5))
        await filler.stop()

    harness.run(scenario)
