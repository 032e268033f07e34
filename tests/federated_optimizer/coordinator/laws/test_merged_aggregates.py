"""Aggregates of users MERGED BY a function: parts of gateways, groups of groups, a restart."""

from collections.abc import Iterator
from typing import Any

import pytest

from streamsql.catalog.functions import FunctionDefinition
from streamsql.errors import BindingError
from tests import user_aggregates

PEAK = (
    "CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE MERGED BY MAX "
    f"AS '{user_aggregates.SAMPLE}:Peak'"
)
BY_ROOM = "SELECT rid, peak(weightLevel) AS p FROM SeatSensor GROUP BY rid"
OF_ALL = "SELECT peak(weightLevel) AS p FROM SeatSensor"


@pytest.fixture(autouse=True)
def _aggregates() -> Iterator[None]:
    with user_aggregates.installed():
        yield


def test_results_of_gateways_are_merged_while_rows_come_and_go(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        await first.execute(PEAK)
        one, two = federation.sites["gw-1"], federation.sites["gw-2"]
        parts = await harness.start_query(first, OF_ALL, name="parts")
        words = first.explain(parts).text
        assert "Peak(weightlevel) AS part1" in words
        assert "MAX(part1)" in words
        await harness.until_rows(first, parts, [(None,)])
        query = await harness.start_query(first, BY_ROOM, name="rooms")
        one.put("seatsensor", ("m1", "r1", -3.0), ("m2", "r2", 1.0))
        two.put("seatsensor", ("m3", "r3", 2.0), ("m4", "r3", 2.5))
        await harness.until_rows(first, query, [("r1", 3.0), ("r2", 1.0), ("r3", 2.5)])
        await harness.until_rows(first, parts, [(3.0,)])
        one.put("seatsensor", ("m1", "r1", -3.0), ("m2", "r2", 1.0), delete=True)
        await harness.until_rows(first, query, [("r3", 2.5)])
        await harness.until_rows(first, parts, [(2.5,)])
        await first.close()

        second = await federation.coordinator()
        (peak,) = [d for d in second.definitions() if isinstance(d, FunctionDefinition)]
        assert peak.merge_name == "MAX"
        await second.execute("DROP QUERY parts")
        two.put("seatsensor", ("m4", "r3", 2.5), delete=True)
        await harness.until_rows(second, "rooms", [("r3", 2.0)])
        whole = await harness.start_query(second, OF_ALL, name="whole")
        assert "1 other query: rooms" in second.explain(whole).text
        await harness.until_rows(second, whole, [(2.0,)])
        two.put("seatsensor", ("m3", "r3", 2.0), delete=True)
        await harness.until_rows(second, whole, [(None,)])
        await harness.until_rows(second, "rooms", [])

    harness.run(scenario)


def test_a_definition_of_another_class_is_another_function(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await coordinator.execute(PEAK)
        one, two = federation.sites["gw-1"], federation.sites["gw-2"]
        one.put("seatsensor", ("m1", "r1", -3.0))
        two.put("seatsensor", ("m2", "r2", 2.0))
        greatest = await harness.start_query(coordinator, OF_ALL, name="greatest")
        await harness.until_rows(coordinator, greatest, [(3.0,)])
        least = PEAK.replace("MAX", "MIN").replace(
            f"{user_aggregates.SAMPLE}:Peak", f"{user_aggregates.MODULE}:Distances"
        )
        with pytest.raises(BindingError, match="is used by query greatest"):
            await coordinator.execute("DROP AGGREGATE peak")
        await coordinator.execute(least.replace("peak", "low"))
        low = OF_ALL.replace("peak", "low")
        query = await harness.start_query(coordinator, low, name="least")
        await harness.until_rows(coordinator, query, [(2.0,)])
        await coordinator.execute(f"DROP QUERY greatest; DROP AGGREGATE peak; {least}")
        again = await harness.start_query(coordinator, OF_ALL, name="again")
        await harness.until_rows(coordinator, again, [(2.0,)])

    harness.run(scenario)
