"""A gateway that defines a source otherwise than the catalog: named, degraded, never settled."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus

ROOM = "CREATE SOURCE RoomSensor (rid TEXT, status TEXT, KEY (rid))"
QUERY = "SELECT rid, status FROM RoomSensor"
DIFFERENT = {
    "reordered": (
        "CREATE SOURCE RoomSensor (status TEXT, rid TEXT, KEY (rid))",
        "the columns are (status, rid), not (rid, status)",
    ),
    "another type": (
        "CREATE SOURCE RoomSensor (rid TEXT, status INTEGER, KEY (rid))",
        "column status is INTEGER, not TEXT",
    ),
    "another key": (
        "CREATE SOURCE RoomSensor (rid TEXT, status TEXT, KEY (rid, status))",
        "the key is (rid, status), not (rid)",
    ),
    "a column more": (
        "CREATE SOURCE RoomSensor (rid TEXT, status TEXT, since TEXT, KEY (rid))",
        "column since is not in the catalog",
    ),
    "a column less": (
        "CREATE SOURCE RoomSensor (rid TEXT, KEY (rid))",
        "column status is missing",
    ),
    "renamed": (
        "CREATE SOURCE RoomSensor (rid TEXT, state TEXT, KEY (rid))",
        "column status is missing; column state is not in the catalog",
    ),
}


def row_of(schema: str) -> tuple[str | int, ...]:
    """Return a row as the gateway has it."""
    columns = schema.partition("(")[2].split(", KEY")[0].split(", ")
    return tuple(7 if "INTEGER" in column else column.split()[0] for column in columns)


@pytest.mark.parametrize(("schema", "difference"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_definition_that_differs_is_named_and_its_rows_are_left_out(
    harness: Any, schema: str, difference: str
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        other = await federation.site("gw-2", sources=("roomsensor",), schema=f"{schema};")
        other.put("roomsensor", row_of(schema))
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        query = await harness.start_query(coordinator, QUERY)
        await harness.until_rows(coordinator, query, [("r1", "open")])
        await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        info = coordinator.query(query)
        assert "gw-2: source roomsensor is defined differently" in info.error
        assert difference in info.error
        assert info.error.count(difference) == 1, "the gateway and the console say it once"
        assert not info.settled
        site = next(s for s in coordinator.sites() if s.site == "gw-2")
        assert difference in site.detail
        assert difference in site.differences[0]
        assert coordinator.relation(query) == (("r1", "open"),)
        other_query = await harness.start_query(coordinator, "SELECT mid FROM SeatSensor")
        await harness.until(lambda: coordinator.query(other_query).settled)

    harness.run(scenario)


def test_a_gateway_that_is_corrected_takes_part_again(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        schema, _difference = DIFFERENT["reordered"]
        await federation.site("gw-2", sources=("roomsensor",), schema=f"{schema};")
        query = await harness.start_query(coordinator, QUERY)
        await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        federation.broker.cut("gw-2")
        await federation.sites["gw-2"].stop()
        again = await federation.site("gw-2", epoch=2, sources=("roomsensor",))
        again.put("roomsensor", ("r2", "shut"))
        await harness.until_rows(coordinator, query, [("r2", "shut")])
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        await harness.until(lambda: coordinator.query(query).settled)
        assert coordinator.query(query).error == ""

    harness.run(scenario)


def test_what_a_base_site_reads_itself_is_compared_too(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        schema = "CREATE SOURCE Temperature (celsius DOUBLE, rid TEXT);"
        await federation.site("gw-2", sources=("temperature",), schema=schema)
        query = await harness.start_query(coordinator, "SELECT celsius FROM Temperature [ROWS 3]")
        await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        assert (
            "the columns are (celsius, rid), not (rid, celsius)" in coordinator.query(query).error
        )
        assert not coordinator.query(query).settled

    harness.run(scenario)


def test_a_source_that_is_defined_anew_is_compared_again(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute("DROP SOURCE RoomSensor")
        await coordinator.execute("CREATE SOURCE RoomSensor (status TEXT, rid TEXT, KEY (rid))")
        query = await harness.start_query(coordinator, QUERY)
        await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        assert "gw-1: source roomsensor is defined differently" in coordinator.query(query).error
        await coordinator.stop(query)
        await coordinator.execute("DROP SOURCE RoomSensor")
        await coordinator.execute(ROOM)
        query = await harness.start_query(coordinator, QUERY)
        await harness.until(lambda: coordinator.query(query).settled)
        assert all(not site.differences for site in coordinator.sites())

    harness.run(scenario)
