"""A query that is never at rest moves, too, and tells no change twice.

The room goes through the same few statuses again and again. So a run that is behind holds, at
times, the same rows as one that is not: a reader that followed it would be told of a round that it
knows. What readers are told is compared with the list of readings, and the rows at rest with
DuckDB.
"""

import asyncio
import itertools
from typing import Any

import duckdb
import pytest

from federated_optimizer.coordinator.adaptation import moves
from federated_optimizer.coordinator.queries.heard_reports import HeardReports
from tests.federated_optimizer.coordinator.adaptation.test_adaptation import (
    AT_BASE,
    TEXT,
    decisions,
    looked_at,
    started,
    tell,
)

STATUSES = ("free", "taken", "closed")
EVERY = 0.1
BEHIND = 6
"""Changes by which the new run is late: some rounds."""


class Readings:
    """A room that changes several times a second, and a reader of it."""

    def __init__(self, site: Any, coordinator: Any, query: str) -> None:
        self.said: list[str] = []
        self.told = 0
        self._site = site
        self._reader = coordinator.subscribe(query)
        self._tasks = [asyncio.create_task(self._say()), asyncio.create_task(self._hear())]

    async def _say(self) -> None:
        for status in itertools.cycle(STATUSES):
            self.said.append(status)
            self._site.put("roomsensor", ("r0", status))
            await asyncio.sleep(EVERY)  # time passes: several changes a second

    async def _hear(self) -> None:
        place = 0
        async for batch in self._reader:
            came = [c.row for c in batch.changes if c.diff > 0 and not batch.snapshot]
            for seat, status in came:
                assert seat == "m0", "nothing else changes"
                assert status in self.said[place:], f"{status} is told again"
                place = self.said.index(status, place) + 1
                self.told += 1

    async def quiet(self) -> None:
        self._tasks[0].cancel()
        await asyncio.wait(self._tasks[:1])

    def check(self) -> None:
        if self._tasks[1].done():
            self._tasks[1].result()

    async def end(self) -> None:
        await self._reader.close()
        await self._tasks[1]


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Results of the run that is filled come late, as long as `by` says so."""
    lag = {"by": EVERY * BEHIND}
    heard = HeardReports.output

    def output(self: HeardReports, run: str, site: str, batch: Any) -> None:
        tried = {trial.run for trial in self._queries.runs.tried()}
        if run in tried and lag["by"]:
            asyncio.get_running_loop().call_later(lag["by"], heard, self, run, site, batch)
        else:
            heard(self, run, site, batch)

    monkeypatch.setattr(HeardReports, "output", output)
    monkeypatch.setattr(moves, "REST_MICROSECONDS", 500_000)
    return lag


def test_a_busy_query_moves_when_the_new_run_is_not_behind(
    harness: Any, late: dict[str, float]
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        run = coordinator.query(query).run
        await looked_at(harness, coordinator, query)
        readings = Readings(federation.sites["gw-1"], coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: bool(decisions(coordinator)), "a move begins")
        await asyncio.sleep(2.5)  # time passes: rows are equal at times, and the new run is late
        assert coordinator.query(query).run == run, "it follows a run that is behind"
        late["by"] = 0.0
        await harness.until(lambda: coordinator.query(query).run != run, "it moves amid changes")
        told = readings.told
        await harness.until(lambda: readings.told > told + 2 * len(STATUSES), "it goes on")
        readings.check()
        assert any(d.outcome == "moved" for d in decisions(coordinator))
        await readings.quiet()
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE roomsensor (rid TEXT, status TEXT)")
            connection.execute("CREATE TABLE seatsensor (mid TEXT, rid TEXT)")
            rooms = [(f"r{n}", f"s{n % 3}") for n in range(1, 6)]
            rooms.append(("r0", readings.said[-1]))
            seats = [(f"m{n}", f"r{n}") for n in range(6)]
            for table, rows in (("roomsensor", rooms), ("seatsensor", seats)):
                connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
            expected = sorted(connection.execute(TEXT).fetchall())
        await harness.until_rows(coordinator, query, expected)
        await readings.end()

    harness.run(scenario)
