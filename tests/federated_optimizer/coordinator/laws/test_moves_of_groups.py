"""Groups over a shorter window read the rows of a longer one, by the clocks of the gateways."""

from typing import Any

import pytest

from streamsql.algebra.operators import WindowBounds, Younger
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS
from streamsql.wire.site_messages import SiteRole
from tests.federated_optimizer.coordinator.adaptation.test_over_others import QUICK, feeders
from tests.federated_optimizer.coordinator.conftest import wall
from tests.federated_optimizer.coordinator.laws.test_moves_to_selections import of_node
from tests.federated_optimizer.coordinator.laws.test_shorter_windows import kinds_at

WALKS = "CREATE SOURCE walks (who TEXT, n INTEGER, ts TIMESTAMP) WITH (ttl = '10 minutes');"
LONG = "SELECT who, COUNT(*) AS v FROM walks [RANGE 5 MINUTES] GROUP BY who"
SHORT = "SELECT who, COUNT(n) AS v FROM walks [RANGE 8 SECONDS] GROUP BY who"


def walk(federation: Any, site: str, who: str, n: int | None, seconds_ago: float = 0) -> None:
    ts = wall() - int(seconds_ago * MICROSECONDS)
    federation.sites[site].engine.ingest("walks", [SourceEvent((who, n, ts), ts)])
    federation.sites[site].host.wake()


@pytest.mark.parametrize("ends", ["longer", "shorter"])
def test_both_read_one_node_whichever_ends_first(harness: Any, ends: str) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", SiteRole.BASE)
        for name in ("gw-1", "gw-2"):
            await federation.site(name, sources=("walks",), schema=WALKS)
        coordinator = await federation.coordinator(define_schema=True, adapt=QUICK)
        await coordinator.execute(WALKS)
        long = await harness.start_query(coordinator, LONG)
        short = await harness.start_query(coordinator, SHORT)
        node = of_node(coordinator)
        assert node.run in feeders(coordinator, short)
        assert WindowBounds in kinds_at(coordinator, "gw-1", short)
        assert Younger in kinds_at(coordinator, "base", short)
        walk(federation, "gw-1", "a", 1)
        walk(federation, "gw-2", "a", None)
        walk(federation, "gw-2", "b", 2, seconds_ago=60)
        await harness.until_rows(coordinator, long, [("a", 2), ("b", 1)])
        await harness.until_rows(coordinator, short, [("a", 1)])
        await harness.until(lambda: node.run in feeders(coordinator, long), "it moves")
        await harness.until(lambda: long not in federation.sites["gw-1"].engine.queries, "it ends")
        await harness.until_rows(coordinator, short, [])  # nothing arrives: it is over
        walk(federation, "gw-1", "b", 3)
        await harness.until_rows(coordinator, long, [("a", 2), ("b", 2)])
        await harness.until_rows(coordinator, short, [("b", 1)])
        first, last = (long, short) if ends == "longer" else (short, long)
        await coordinator.stop(first)
        walk(federation, "gw-2", "c", 4)
        if last == long:
            await harness.until_rows(coordinator, long, [("a", 2), ("b", 2), ("c", 1)])
        else:
            await harness.until(lambda: ("c", 1) in coordinator.relation(short))
            await harness.until_rows(coordinator, short, [])
        await coordinator.stop(last)
        await harness.until(lambda: not coordinator._queries.nodes.all(), "nobody reads it")

    harness.run(scenario)
