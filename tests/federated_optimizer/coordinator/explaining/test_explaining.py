"""EXPLAIN ALTERNATIVES in a federation, and each plan of it while it runs."""

from typing import Any

import pytest
from msgspec.structs import replace

from streamsql.errors import QuerySyntaxError, UnsupportedError

STATES = "SELECT status, COUNT(*) AS n FROM RoomSensor GROUP BY status"
ROOMS = "SELECT rid, COUNT(*) AS n FROM RoomSensor GROUP BY rid"


def test_every_plan_that_is_listed_runs_and_gives_the_same_rows(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        (text,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {STATES}")
        assert "push everything" in text.text
        assert "Chosen: plan" in text.text
        (found,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES (FORMAT JSON) {STATES}")
        numbers = [each["plan"] for each in found.data["plans"]]
        assert sorted(numbers) == [1, 2, 3, 4]
        chosen = await harness.start_query(coordinator, STATES)
        forced = [
            await harness.start_query(coordinator, f"{STATES} WITH (plan = {number})")
            for number in numbers
        ]
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"), ("r2", "closed"))
        federation.sites["gw-2"].put("roomsensor", ("r3", "open"))
        for query in (chosen, *forced):
            await harness.until_rows(coordinator, query, [("open", 2), ("closed", 1)])
        federation.sites["gw-2"].put("roomsensor", ("r3", "closed"))
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"), delete=True)
        for query in (chosen, *forced):
            await harness.until_rows(coordinator, query, [("closed", 2)])

    harness.run(scenario)


def test_the_plan_that_runs_is_the_one_chosen(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, ROOMS)
        (found,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES (FORMAT JSON) {ROOMS}")
        first, second, *_ = (each["plan"] for each in found.data["plans"])
        assert found.data["chosen"] == first
        forced = await harness.start_query(coordinator, f"{ROOMS} WITH (plan = {second})")
        running, other = map(coordinator._queries.find, (query, forced))
        # As if facts had been others when it started.
        running.bundle = replace(running.bundle, alternative=second, choices=other.bundle.choices)
        (shown,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES\n  {ROOMS}")
        told = f"Chosen: plan {second}, because it runs, and plan {first}, the cheapest, sends"
        assert told in shown.text
        (again,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {ROOMS} WITH (plan = {first})")
        assert f"Chosen: plan {first}, because the query asks for it" in again.text

    harness.run(scenario)


def test_what_there_is_not_is_refused(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        with pytest.raises(UnsupportedError, match="there is no plan 99"):
            await coordinator.execute(f"{STATES} WITH (plan = 99)")
        with pytest.raises(UnsupportedError, match="TYPE ALTERNATIVES has no graph"):
            await coordinator.execute(f"EXPLAIN ALTERNATIVES (FORMAT DOT) {STATES}")
        with pytest.raises(QuerySyntaxError):
            await coordinator.execute("EXPLAIN ANALYZE ALTERNATIVES SELECT 1")

    harness.run(scenario)
