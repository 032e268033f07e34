"""A query over a shorter window reads the rows of a longer one, by the clocks of the gateways."""

from typing import Any

import pytest

from streamsql.algebra.operators import Window, WindowBounds, Younger, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS
from streamsql.wire.bundles.trimmed_bundles import is_trimmed
from streamsql.wire.site_messages import SiteRole
from tests.federated_optimizer.coordinator.conftest import wall

STEPS = "CREATE SOURCE steps (who TEXT, ts TIMESTAMP) WITH (ttl = '10 minutes');"
LONG = "SELECT who, ts FROM steps [RANGE 5 MINUTES]"
SHORT = "SELECT who FROM steps [RANGE 2 SECONDS]"
COUNT = "SELECT COUNT(*) AS n FROM steps [RANGE 2 SECONDS]"


async def begun(federation: Any) -> Any:
    """Return the coordinator of a base site and two gateways with steps."""
    await federation.site("base", SiteRole.BASE)
    for name in ("gw-1", "gw-2"):
        await federation.site(name, sources=("steps",), schema=STEPS)
    coordinator = await federation.coordinator(define_schema=True)
    await coordinator.execute(STEPS)
    return coordinator


def step(federation: Any, site: str, who: str, seconds_ago: float = 0) -> None:
    ts = wall() - int(seconds_ago * MICROSECONDS)
    federation.sites[site].engine.ingest("steps", [SourceEvent((who, ts), ts)])
    federation.sites[site].host.wake()


def kinds_at(coordinator: Any, site: str, query: str) -> set[type]:
    """Return the kinds of operators that a site runs of a query."""
    bundle = coordinator._queries.known(query).bundle
    fragments = [fragment for fragment in bundle.own if site in fragment.sites]
    return {type(node) for fragment in fragments for node in walk_plan(fragment.plan)}


def test_gateways_send_bounds_in_place_of_rows(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        long = await harness.start_query(coordinator, LONG)
        short = await harness.start_query(coordinator, SHORT)
        count = await harness.start_query(coordinator, COUNT)
        step(federation, "gw-1", "a")
        step(federation, "gw-2", "b")
        step(federation, "gw-2", "late", 30)
        await harness.until_rows(coordinator, short, [("a",), ("b",)])
        await harness.until_rows(coordinator, count, [(2,)])
        assert WindowBounds in kinds_at(coordinator, "gw-1", short)
        assert Window not in kinds_at(coordinator, "gw-1", short)
        assert Younger in kinds_at(coordinator, "base", short)
        await harness.until_rows(coordinator, short, [])
        await harness.until_rows(coordinator, count, [(0,)])
        assert sorted(who for who, _ts in coordinator.relation(long)) == ["a", "b", "late"]
        await harness.until(
            lambda: all(coordinator.query(q).settled for q in (long, short, count)), "settled"
        )
        await coordinator.stop(long)
        step(federation, "gw-1", "c")
        await harness.until_rows(coordinator, short, [("c",)])
        await coordinator.stop(short)  # its bounds are those of the other one, too
        step(federation, "gw-2", "d")
        await harness.until(lambda: coordinator.relation(count) != [(0,)], "counted")
        await harness.until_rows(coordinator, count, [(0,)])
        await coordinator.stop(count)
        await harness.until(lambda: not federation.fragments(), "nothing is left")

    harness.run(scenario)


def test_rows_of_a_gateway_go_and_come_with_it(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        text = SHORT.replace("2 SECONDS", "1 MINUTE")
        await harness.start_query(coordinator, LONG)
        short = await harness.start_query(coordinator, text)
        step(federation, "gw-1", "a")
        step(federation, "gw-2", "b")
        await harness.until_rows(coordinator, short, [("a",), ("b",)])
        federation.broker.cut("gw-2")
        await federation.sites["gw-2"].stop()
        await harness.until_rows(coordinator, short, [("a",)])
        await federation.site("gw-2", sources=("steps",), schema=STEPS, epoch=2)
        step(federation, "gw-2", "c")
        step(federation, "gw-2", "late", 90)
        await harness.until_rows(coordinator, short, [("a",), ("c",)])
        await harness.until(lambda: coordinator.query(short).settled, "settled")

    harness.run(scenario)


def test_explain_names_the_node_and_what_is_added(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        await harness.start_query(coordinator, LONG)
        (found,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {SHORT}")
        assert "Rows younger than 2 s by ts" in found.text
        assert "Bounds of [RANGE 2 s]" in found.text
        assert "adds 1 window" in found.text

    harness.run(scenario)


def test_a_gateway_that_comes_sends_rows_and_bounds(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        long = await harness.start_query(coordinator, LONG)
        short = await harness.start_query(coordinator, SHORT.replace("2 SECONDS", "1 MINUTE"))
        step(federation, "gw-1", "a")
        await harness.until_rows(coordinator, short, [("a",)])
        await federation.site("gw-3", sources=("steps",), schema=STEPS)
        step(federation, "gw-3", "b")
        step(federation, "gw-3", "late", 90)
        await harness.until_rows(coordinator, short, [("a",), ("b",)])
        bundle = coordinator._queries.known(short).bundle
        assert {feed.run for feed in bundle.feeds} == {long}
        assert WindowBounds in kinds_at(coordinator, "gw-3", short)

    harness.run(scenario)


def test_queries_go_on_when_the_coordinator_restarts(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        await harness.start_query(coordinator, LONG)
        short = await harness.start_query(coordinator, SHORT.replace("2 SECONDS", "1 MINUTE"))
        step(federation, "gw-1", "a")
        await harness.until_rows(coordinator, short, [("a",)])
        await coordinator.close()
        again = await federation.coordinator()
        step(federation, "gw-2", "b")
        await harness.until_rows(again, short, [("a",), ("b",)])
        assert WindowBounds in kinds_at(again, "gw-1", short)

    harness.run(scenario)


def test_the_network_lists_bounds_as_a_window(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        await harness.start_query(coordinator, LONG)
        await harness.start_query(coordinator, SHORT)
        (found,) = await coordinator.execute("SHOW NETWORK")
        told = {row[0]: row[1:3] for row in found.rows}
        assert told["2"] == ("window", "SELECT who FROM node 1/f1 [RANGE 2 s]")
        assert told["2/f1"] == ("window", "Bounds of [RANGE 2 s] OF steps")

    harness.run(scenario)


def test_readers_of_bounds_go_on_by_themselves_when_a_gateway_comes(
    harness: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        await harness.start_query(coordinator, LONG)
        minute = "steps [RANGE 1 MINUTE]"
        short = await harness.start_query(coordinator, f"SELECT who FROM {minute}")
        pairs = f"{minute} a LEFT JOIN {minute} b ON a.who = b.who AND a.ts < b.ts"
        reader = await harness.start_query(coordinator, f"SELECT a.who, a.ts FROM {pairs}")
        step(federation, "gw-1", "a")
        await harness.until(lambda: len(coordinator.relation(reader)) == 1, "the first row")
        await coordinator.stop(short)
        assert any(is_trimmed(node.bundle) for node in coordinator._queries.nodes.all())
        await federation.site("gw-3", sources=("steps",), schema=STEPS)
        step(federation, "gw-3", "b")
        await harness.until(
            lambda: {row[0] for row in coordinator.relation(reader)} == {"a", "b"}, "both rows"
        )
        assert "InternalError" not in caplog.text
        assert "outside its recursion" not in caplog.text

    harness.run(scenario)


def test_rows_go_when_the_query_has_ended_whose_bounds_are_read(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        await harness.start_query(coordinator, LONG)
        short = await harness.start_query(coordinator, SHORT)
        times = await harness.start_query(coordinator, "SELECT ts FROM steps [RANGE 2 SECONDS]")
        step(federation, "gw-1", "a")
        await harness.until(lambda: len(coordinator.relation(times)) == 1, "it is in")
        await coordinator.stop(short)
        step(federation, "gw-2", "b")
        await harness.until(lambda: len(coordinator.relation(times)) == 2, "both are in")
        await harness.until_rows(coordinator, times, [])

    harness.run(scenario)
