"""Joins of rows of different gateways, run by hosts of sites over a broker under a coordinator."""

import json
from typing import Any

import pytest

JOIN = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"
WORDS = (
    "link sent to all gateways of roomsensor",
    "roomsensor sent to all gateways of link",
    "both sides sent to 2 gateways by hash",
    "rows about a device of roomsensor joined at the gateway of its hash",
    "keys of link sent to all gateways of roomsensor",
    "keys of roomsensor sent to all gateways of link",
)


async def plan_of(coordinator: Any, words: str) -> int:
    """Return the number of the first plan that is listed in these words."""
    (shown,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES (FORMAT JSON) {JOIN}")
    plans = json.loads(shown.text)["plans"] if not shown.data else shown.data["plans"]
    return int(next(each["plan"] for each in plans if words in each["method"]))


@pytest.mark.parametrize("words", WORDS)
def test_rows_meet_that_come_from_different_gateways(harness: Any, words: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        rooms, links = federation.sites["gw-1"], federation.sites["gw-2"]
        rooms.put("roomsensor", ("r1", "open"), ("r2", "shut"))
        links.put("link", ("a", "r1", 1.0), ("b", "r3", 1.0))
        number = await plan_of(coordinator, words)
        query = await harness.start_query(coordinator, f"{JOIN} WITH (plan = {number})")
        await harness.until_rows(coordinator, query, [("a", "r1", "open")])
        links.put("link", ("c", "r2", 1.0))
        rooms.put("roomsensor", ("r1", "shut"))
        now = [("a", "r1", "shut"), ("c", "r2", "shut")]
        await harness.until_rows(coordinator, query, now)
        await harness.until(lambda: coordinator.query(query).settled, "settled")
        federation.broker.cut("gw-1")
        await rooms.stop()
        await harness.until_rows(coordinator, query, [])
        again = await federation.site("gw-1", epoch=2)
        again.put("roomsensor", ("r1", "shut"), ("r2", "shut"))
        await harness.until_rows(coordinator, query, now)
        await harness.until(lambda: coordinator.query(query).settled, "settled again")

    harness.run(scenario)
