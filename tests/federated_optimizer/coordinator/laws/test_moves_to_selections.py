"""A selection that two queries want, with the columns of both: the older one moves onto it."""

from typing import Any

from streamsql.wire.site_messages import SiteRole
from tests.federated_optimizer.coordinator.adaptation.test_over_others import (
    QUICK,
    begun,
    feeders,
)
from tests.federated_optimizer.coordinator.laws.test_shorter_windows import STEPS, step

MANY = "SELECT rid FROM RoomSensor WHERE status <> 'shut'"
STATED = "SELECT rid, status FROM RoomSensor WHERE status <> 'shut'"


def of_node(coordinator: Any) -> Any:
    (node,) = coordinator._queries.nodes.all()
    return node


def test_the_older_query_moves_onto_the_node_and_gateways_send_once(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        first = await harness.start_query(coordinator, MANY)
        rows = ["gw-1-a", "gw-2-a"]
        await harness.until_rows(coordinator, first, [(r,) for r in rows])
        second = await harness.start_query(coordinator, STATED)
        node = of_node(coordinator)
        assert feeders(coordinator, second) == {node.run}
        await harness.until_rows(coordinator, second, [(r, "open") for r in rows])
        # The second query is all of the node: its result is as good.
        nodes = {node.run, second}
        await harness.until(lambda: bool(feeders(coordinator, first) & nodes), "it moves")
        await harness.until(
            lambda: set(federation.sites["gw-1"].engine.queries) == {node.run}, "gateways send once"
        )
        federation.sites["gw-1"].put("roomsensor", ("gw-1-b", "wide"), ("gw-1-a", "shut"))
        await harness.until_rows(coordinator, first, [("gw-1-b",), ("gw-2-a",)])
        await harness.until_rows(coordinator, second, [("gw-1-b", "wide"), ("gw-2-a", "open")])
        await coordinator.stop(second)
        federation.sites["gw-1"].put("roomsensor", ("gw-1-b", "shut"))
        await harness.until_rows(coordinator, first, [("gw-2-a",)])
        assert set(federation.sites["gw-1"].engine.queries) == {node.run}
        await coordinator.stop(first)
        await harness.until(lambda: not coordinator._queries.nodes.all(), "nobody reads it")
        await harness.until(lambda: not federation.sites["gw-1"].engine.queries)

    harness.run(scenario)


def test_a_window_that_shows_no_time_moves_onto_the_node_of_a_shorter_one(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", SiteRole.BASE)
        for name in ("gw-1", "gw-2"):
            await federation.site(name, sources=("steps",), schema=STEPS)
        coordinator = await federation.coordinator(define_schema=True, adapt=QUICK)
        await coordinator.execute(STEPS)
        long = await harness.start_query(coordinator, "SELECT who FROM steps [RANGE 5 MINUTES]")
        for site, who, seconds_ago in (("gw-1", "a", 0), ("gw-2", "b", 0), ("gw-2", "late", 200)):
            step(federation, site, who, seconds_ago)
        await harness.until_rows(coordinator, long, [("a",), ("b",), ("late",)])
        short = await harness.start_query(coordinator, "SELECT who FROM steps [RANGE 2 MINUTES]")
        node = of_node(coordinator)
        assert feeders(coordinator, short) == {node.run}
        await harness.until_rows(coordinator, short, [("a",), ("b",)])
        await harness.until(lambda: feeders(coordinator, long) == {node.run}, "it moves")
        await harness.until(lambda: long not in federation.sites["gw-1"].engine.queries, "it ends")
        step(federation, "gw-1", "c")
        await harness.until_rows(coordinator, long, [("a",), ("b",), ("c",), ("late",)])
        await harness.until_rows(coordinator, short, [("a",), ("b",), ("c",)])
        await coordinator.stop(long)
        step(federation, "gw-2", "d")
        await harness.until_rows(coordinator, short, [("a",), ("b",), ("c",), ("d",)])
        await coordinator.stop(short)
        await harness.until(lambda: not coordinator._queries.nodes.all(), "nobody reads it")

    harness.run(scenario)


def test_groups_move_onto_rows_that_come_for_a_newer_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        groups = await harness.start_query(
            coordinator, "SELECT status, COUNT(*) AS n FROM RoomSensor GROUP BY status"
        )
        await harness.until_rows(coordinator, groups, [("open", 2), ("shut", 2)])
        rows = await harness.start_query(coordinator, "SELECT rid, status FROM RoomSensor")
        await harness.until(lambda: bool(feeders(coordinator, groups)), "it moves")
        await harness.until(lambda: len(federation.sites["gw-1"].engine.queries) == 1)
        assert groups not in federation.sites["gw-1"].engine.queries
        assert coordinator.query(rows).run not in feeders(coordinator, rows)
        federation.sites["gw-1"].put("roomsensor", ("gw-1-b", "open"))
        await harness.until_rows(coordinator, groups, [("open", 3), ("shut", 1)])

    harness.run(scenario)
