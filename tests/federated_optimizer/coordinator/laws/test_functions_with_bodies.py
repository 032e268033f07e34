"""Functions and aggregates with a body in a federation: parts, shared groups, DROP, a restart."""

from typing import Any

import pytest

from streamsql.errors import BindingError
from tests.federated_optimizer.coordinator.laws.test_shared_computations import feeders

DEFINITIONS = """
CREATE FUNCTION halved(v DOUBLE) RETURNS DOUBLE AS (v / 2);
CREATE AGGREGATE spread(v DOUBLE) RETURNS DOUBLE AS (MAX(v) - MIN(v));
CREATE AGGREGATE half_spread(v DOUBLE) RETURNS DOUBLE AS (halved(spread(v)))
"""
BY_ROOM = "SELECT rid, spread(weightLevel) AS s FROM SeatSensor GROUP BY rid"
OF_ALL = "SELECT spread(weightLevel) AS s FROM SeatSensor"
GREATEST = "SELECT rid, MAX(weightLevel) AS m FROM SeatSensor GROUP BY rid"
ROOMS = [("r1", 3.0), ("r2", 0.0)]


def put(federation: Any) -> None:
    federation.sites["gw-1"].put("seatsensor", ("m1", "r1", 1.0), ("m2", "r1", 4.0))
    federation.sites["gw-2"].put("seatsensor", ("m3", "r2", 2.0))


def test_gateways_compute_parts_while_rows_come_and_go(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await coordinator.execute(DEFINITIONS)
        query = await harness.start_query(coordinator, OF_ALL)
        words = coordinator.explain(query).text
        assert "MAX(weightlevel) AS part1" in words
        assert "MIN(weightlevel) AS part2" in words
        await harness.until_rows(coordinator, query, [(None,)])
        put(federation)
        await harness.until_rows(coordinator, query, [(3.0,)])
        federation.sites["gw-2"].put("seatsensor", ("m4", "r2", -6.0), ("m5", "r2", None))
        await harness.until_rows(coordinator, query, [(10.0,)])
        federation.sites["gw-2"].put("seatsensor", ("m4", "r2", -6.0), delete=True)
        await harness.until_rows(coordinator, query, [(3.0,)])

    harness.run(scenario)


def test_plain_aggregates_of_the_same_groups_share_them(harness: Any) -> None:
    """A query of MAX reads the groups of `spread`, and coarser groups come from them."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await coordinator.execute(DEFINITIONS)
        put(federation)
        rooms = await harness.start_query(coordinator, BY_ROOM)
        await harness.until_rows(coordinator, rooms, ROOMS)
        greatest = await harness.start_query(coordinator, GREATEST)
        await harness.until_rows(coordinator, greatest, [("r1", 4.0), ("r2", 2.0)])
        (node,) = coordinator._queries.nodes.all()
        assert feeders(coordinator, greatest) == {node.run}
        whole = await harness.start_query(coordinator, OF_ALL)
        await harness.until_rows(coordinator, whole, [(3.0,)])
        assert feeders(coordinator, whole) == {node.run}
        federation.sites["gw-2"].put("seatsensor", ("m4", "r2", 7.0))
        await harness.until_rows(coordinator, rooms, [("r1", 3.0), ("r2", 5.0)])
        await harness.until_rows(coordinator, whole, [(6.0,)])
        await harness.until_rows(coordinator, greatest, [("r1", 4.0), ("r2", 7.0)])

    harness.run(scenario)


def test_they_are_listed_described_and_dropped_last(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(DEFINITIONS)
        (shown,) = await coordinator.execute("SHOW FUNCTIONS")
        assert shown.rows == (
            ("halved(v DOUBLE) RETURNS DOUBLE", "function", "(v / 2)", "skipped"),
            ("spread(v DOUBLE) RETURNS DOUBLE", "aggregate", "(MAX(v) - MIN(v))", "skipped"),
            ("half_spread(v DOUBLE) RETURNS DOUBLE", "aggregate", "(halved(spread(v)))", "skipped"),
        )
        (described,) = await coordinator.execute("DESCRIBE spread")
        assert described.rows == (
            ("v", "DOUBLE", "parameter"),
            ("", "DOUBLE", "result of (MAX(v) - MIN(v))"),
        )
        await coordinator.execute(
            "CREATE VIEW rooms AS SELECT rid, half_spread(weightLevel) AS s FROM SeatSensor "
            "GROUP BY rid; CREATE ALARM wide AS SELECT rid FROM SeatSensor GROUP BY rid "
            "HAVING spread(weightLevel) > 100 SEVERITY 'warning'"
        )
        users = "aggregate 'spread' is used by alarm wide, view rooms, aggregate half_spread"
        with pytest.raises(BindingError, match=users):
            await coordinator.execute("DROP AGGREGATE spread")
        with pytest.raises(BindingError, match="'halved' is used by view rooms, aggregate half_s"):
            await coordinator.execute("DROP FUNCTION halved")
        await coordinator.execute("DROP VIEW rooms; DROP ALARM wide")
        with pytest.raises(BindingError, match="is used by aggregate half_spread") as caught:
            await coordinator.execute("DROP AGGREGATE spread")
        assert caught.value.hint == 'DROP AGGREGATE "half_spread" first'
        await coordinator.execute("DROP AGGREGATE half_spread; DROP AGGREGATE spread")
        await coordinator.execute("DROP FUNCTION halved")
        (shown,) = await coordinator.execute("SHOW FUNCTIONS")
        assert shown.rows == ()

    harness.run(scenario)


def test_views_alarms_and_queries_go_on_after_a_restart(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        await first.execute(DEFINITIONS)
        await first.execute(
            "CREATE VIEW rooms AS SELECT rid, half_spread(weightLevel) AS s FROM SeatSensor "
            "GROUP BY rid; CREATE ALARM wide AS SELECT rid FROM SeatSensor GROUP BY rid "
            "HAVING spread(weightLevel) > 5 SEVERITY 'warning'"
        )
        query = await harness.start_query(first, "SELECT rid, s FROM rooms", name="halves")
        put(federation)
        await harness.until_rows(first, query, [("r1", 1.5), ("r2", 0.0)])
        await first.close()

        second = await federation.coordinator()
        federation.sites["gw-2"].put("seatsensor", ("m4", "r2", 8.0))
        await harness.until_rows(second, "halves", [("r1", 1.5), ("r2", 3.0)])
        await harness.until(lambda: [a.raised for a in second.alarms()] == [1], "the alarm")
        after = await harness.start_query(second, BY_ROOM)
        await harness.until_rows(second, after, [("r1", 3.0), ("r2", 6.0)])
        with pytest.raises(BindingError, match="is used by"):
            await second.execute("DROP AGGREGATE spread")

    harness.run(scenario)


def test_a_catalog_that_lost_a_function_starts(harness: Any) -> None:
    """Changed by hand, for DROP refuses it: what calls the function says so, the rest runs."""

    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        await first.execute(DEFINITIONS)
        await first.execute("CREATE VIEW wide AS SELECT half_spread(weightLevel) s FROM SeatSensor")
        plain = await harness.start_query(first, GREATEST, name="plain")
        await harness.start_query(first, "SELECT s FROM wide", name="broken")
        first._shared.store.drop_definition("spread")
        await first.close()

        second = await federation.coordinator()
        put(federation)
        await harness.until_rows(second, plain, [("r1", 4.0), ("r2", 2.0)])
        with pytest.raises(BindingError, match="half_spread can no longer be called: there is no"):
            await second.execute("DESCRIBE wide")
        await second.execute("DROP QUERY broken; DROP VIEW wide; DROP AGGREGATE half_spread")

    harness.run(scenario)
