"""Queries on a running federation: real engine sites, real messages, an in-memory broker."""

import asyncio
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus

EXAMPLE_14 = """
SELECT m.mid, sr.rid FROM Machines m, MachineSoftware ms, SeatSensor ss, RoomSensor sr
WHERE ms.software = 'Word' AND ms.mid = m.mid AND ss.mid = m.mid AND ss.weightLevel < 5.0
  AND sr.rid = ss.rid AND sr.status = 'open'
"""


def test_example_14_runs_and_follows_every_change(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        gw_1, gw_2 = federation.sites["gw-1"], federation.sites["gw-2"]
        query = await harness.start_query(coordinator, EXAMPLE_14)
        gw_1.put("seatsensor", ("m1", "r1", 0.0), ("m3", "r1", 0.0))
        gw_1.put("roomsensor", ("r1", "open"))
        gw_2.put("seatsensor", ("m2", "r2", 0.0))
        gw_2.put("roomsensor", ("r2", "closed"))
        await harness.until_rows(coordinator, query, [("m1", "r1")])
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        gw_2.put("roomsensor", ("r2", "open"))
        await harness.until_rows(coordinator, query, [("m1", "r1"), ("m2", "r2")])
        gw_1.put("seatsensor", ("m1", "r1", 70.0))
        await harness.until_rows(coordinator, query, [("m2", "r2")])
        await harness.until(lambda: coordinator.query(query).settled, "settled")
        info = coordinator.query(query)
        assert (info.rows, info.name, info.origin, info.error) == (1, "q1", "user", "")
        assert info.waiting_for == ()

    harness.run(scenario)


def test_a_gateway_that_dies_takes_its_rows_along_and_brings_them_back(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, "SELECT rid, status FROM RoomSensor")
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        federation.sites["gw-2"].put("roomsensor", ("r2", "open"))
        both = [("r1", "open"), ("r2", "open")]
        await harness.until_rows(coordinator, query, both)
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        version = coordinator.query(query).version
        federation.broker.cut("gw-2")
        await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        assert coordinator.query(query).waiting_for == ("gw-2",)
        states = {site.site: site.freshness for site in coordinator.sites()}
        assert states == {"base": "live", "gw-1": "live", "gw-2": "stale", "static": "live"}
        await harness.until_rows(coordinator, query, both[:1])
        federation.broker.restore("gw-2")
        await harness.until_rows(coordinator, query, both)
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        # It only went away and came back: nothing was placed anew.
        assert coordinator.query(query).version == version

    harness.run(scenario)


def test_a_gateway_that_is_new_joins_running_queries(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("r1",)])
        reader = coordinator.subscribe(query).__aiter__()
        assert [c.row for c in (await harness.next_batch(reader)).changes] == [("r1",)]
        version = coordinator.query(query).version
        second = await federation.site("gw-2")
        await harness.until(lambda: coordinator.query(query).version == version + 1)
        second.put("roomsensor", ("r2", "open"))
        await harness.until_rows(coordinator, query, [("r1",), ("r2",)])
        seen = []
        while ("r2",) not in seen:
            seen += [change.row for change in (await harness.next_batch(reader)).changes]
        # The redeployment itself is invisible: nothing vanishes and comes back.
        assert seen == [("r2",)]

    harness.run(scenario)


def test_a_source_nobody_offers_is_said_and_waited_for(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator()
        results = await coordinator.execute(harness.schema)
        assert "no connector feeds this source" in results[0].warnings[0]
        query = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
        assert "no gateway offers source roomsensor yet" in coordinator.query(query).warnings
        gateway = await federation.site("gw-1")
        await harness.until(lambda: coordinator.query(query).version == 2)
        gateway.put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("r1",)])
        assert coordinator.query(query).warnings == ()

    harness.run(scenario)


def test_recursion_over_links_of_two_gateways(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(
            coordinator,
            "WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM Link UNION "
            "SELECT l.src, r.dst FROM Link l JOIN r ON l.dst = r.src) SELECT * FROM r",
        )
        federation.sites["gw-1"].put("link", ("a", "b", 1.0))
        federation.sites["gw-2"].put("link", ("b", "c", 1.0))
        await harness.until_rows(coordinator, query, [("a", "b"), ("a", "c"), ("b", "c")])
        federation.broker.cut("gw-2")
        await harness.until_rows(coordinator, query, [("a", "b")])

    harness.run(scenario)


def test_a_recursion_over_its_limit_fails_with_the_reason(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(
            coordinator,
            "WITH RECURSIVE (LIMIT 3) r(src, dst) AS (SELECT src, dst FROM Link UNION "
            "SELECT l.src, r.dst FROM Link l JOIN r ON l.dst = r.src) SELECT * FROM r",
        )
        links = [(f"n{i}", f"n{i + 1}", 1.0) for i in range(5)]
        federation.sites["gw-1"].put("link", *links)
        await harness.until_status(coordinator, query, QueryStatus.FAILED)
        assert "more than 3 rows" in coordinator.query(query).error
        await coordinator.stop(query)
        await harness.until(
            lambda: not any("/error/" in topic for topic in federation.broker.retained)
        )

    harness.run(scenario)


def test_rows_windows_over_one_gateway_and_aggregates_at_the_gateways(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(
            coordinator, "SELECT rid, AVG(celsius) AS c FROM Temperature [ROWS 2] GROUP BY rid"
        )
        # Nobody keeps the readings of a stream without ttl for a query that comes later.
        await harness.until(lambda: coordinator.query(query).settled)
        gateway = federation.sites["gw-1"]
        for celsius in (10.0, 20.0, 30.0):
            gateway.put("temperature", ("r1", celsius))
        await harness.until_rows(coordinator, query, [("r1", 25.0)])

    harness.run(scenario)


def test_batches_of_a_query_are_its_own(harness: Any) -> None:
    """Channels go on with the numbers that earlier queries have used at their sites."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        text = "SELECT s.mid, m.rid FROM SeatSensor s JOIN Machines m ON m.mid = s.mid"
        first = await harness.start_query(coordinator, text)
        gateway = federation.sites["gw-1"]
        for number in range(20):
            gateway.put("seatsensor", ("m1", "r1", float(number)))
            gateway.put("seatsensor", (f"m{number % 2 + 1}", "r2", 1.0), delete=number % 3 == 0)
            await federation.broker.settle()
            await asyncio.sleep(0.01)  # time passes: each change is a batch of its own
        await harness.until(lambda: coordinator.query(first).settled)
        counted = coordinator.explain(first).data["batches"]
        assert counted["gw-1"]["sent"] > 10
        await coordinator.stop(first)
        second = await harness.start_query(coordinator, text)
        await harness.until(lambda: coordinator.query(second).settled)
        counted = coordinator.explain(second).data["batches"]
        sent = {site: counts["sent"] for site, counts in counted.items()}
        assert sent.keys() == {"gw-1", "static", "base"}
        assert all(0 < count <= 4 for count in sent.values()), "snapshots of one port, asked for"
        assert counted["base"]["received"] == sent["gw-1"] + sent["static"]

    harness.run(scenario)
