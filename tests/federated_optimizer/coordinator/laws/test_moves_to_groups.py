"""Groups that gateways compute in parts for two queries at once: the older one moves onto them."""

from typing import Any

import pytest

from streamsql.data.events import SourceEvent
from streamsql.wire.site_messages import SiteRole
from tests.federated_optimizer.coordinator.adaptation.test_adaptation import tell
from tests.federated_optimizer.coordinator.adaptation.test_over_others import QUICK, feeders
from tests.federated_optimizer.coordinator.conftest import wall
from tests.federated_optimizer.coordinator.laws.test_moves_to_selections import of_node

METERS = (
    "CREATE SOURCE meters (mid TEXT, who TEXT, n INTEGER, m INTEGER, KEY (mid)) "
    "WITH (ttl = '10 minutes');"
)
OLDER = "SELECT who, COUNT(n) AS v FROM meters GROUP BY who"
NEWER = "SELECT who, COUNT(m) AS v FROM meters GROUP BY who"
FACTS = {"meters": (1_000.0, 100.0)}
"""Readings and changes a second: enough that a move pays."""


def read(federation: Any, site: str, mid: str, who: str, *values: int | None) -> None:
    now = wall()
    federation.sites[site].engine.ingest("meters", [SourceEvent((mid, who, *values), now)])
    federation.sites[site].host.wake()


@pytest.mark.parametrize("ends", ["older", "newer"])
def test_gateways_send_one_part_for_both_queries(harness: Any, ends: str) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", SiteRole.BASE)
        for name in ("gw-1", "gw-2"):
            await federation.site(name, sources=("meters",), schema=METERS)
        coordinator = await federation.coordinator(define_schema=True, adapt=QUICK)
        await coordinator.execute(METERS)
        older = await harness.start_query(coordinator, OLDER)
        read(federation, "gw-1", "m1", "a", 1, None)
        read(federation, "gw-2", "m2", "a", 2, 2)
        read(federation, "gw-2", "m3", "b", None, 3)
        await harness.until_rows(coordinator, older, [("a", 2), ("b", 0)])
        tell(coordinator, FACTS)
        newer = await harness.start_query(coordinator, NEWER)
        node = of_node(coordinator)
        assert feeders(coordinator, newer) == {node.run}
        await harness.until_rows(coordinator, newer, [("a", 1), ("b", 1)])
        await harness.until(lambda: feeders(coordinator, older) == {node.run}, "it moves")
        await harness.until(
            lambda: set(federation.sites["gw-1"].engine.queries) == {node.run}, "gateways send once"
        )
        read(federation, "gw-1", "m4", "b", 4, None)
        read(federation, "gw-2", "m2", "b", 2, 2)  # in the place of a reading of the other group
        await harness.until_rows(coordinator, older, [("a", 1), ("b", 2)])
        await harness.until_rows(coordinator, newer, [("a", 0), ("b", 2)])
        first, last = (older, newer) if ends == "older" else (newer, older)
        await coordinator.stop(first)
        read(federation, "gw-1", "m1", "c", 1, None)
        await harness.until_rows(coordinator, last, [("b", 2), ("c", int(last == older))])
        await coordinator.stop(last)
        await harness.until(lambda: not coordinator._queries.nodes.all(), "nobody reads it")
        await harness.until(lambda: not federation.sites["gw-1"].engine.queries)

    harness.run(scenario)
