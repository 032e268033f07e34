"""`sys_queries`: its rows, and that queries over it follow what happens."""

from typing import Any

import pytest

from federated_optimizer.coordinator.system import query_table
from federated_optimizer.coordinator.system.query_table import QueryTable
from streamsql.catalog.system import SYS_QUERIES

ROOMS = "SELECT rid, status FROM RoomSensor"
QUERIES = "SELECT name, rows FROM sys_queries WHERE name <> 'watch'"


def test_only_rows_of_queries_that_stand_otherwise_are_made(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    row = query_table._row

    def counted(query: Any) -> Any:
        made.append(query.id)
        return row(query)

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        first = await harness.start_query(coordinator, ROOMS)
        others = [
            await harness.start_query(coordinator, f"{ROOMS} WHERE rid <> 'x{n}'") for n in range(5)
        ]
        await harness.until(
            lambda: all(coordinator.query(q).settled for q in (first, *others)), "settled"
        )
        await coordinator._upkeep.look()
        table = QueryTable(coordinator._queries.all)
        assert [found[0] for found in table()] == [first, *others]
        assert all(len(found) == len(SYS_QUERIES.schema) for found in table())
        monkeypatch.setattr(query_table, "_row", counted)
        version = table.look()
        assert made == []
        federation.sites["gw-1"].put("roomsensor", ("x3", "open"))
        await harness.until_rows(coordinator, first, [("x3", "open")])
        await harness.until(lambda: coordinator.query(others[2]).rows == 1, "shown by another")
        await coordinator._upkeep.look()
        await coordinator.stop(others[0])
        assert table.look() > version
        changed = table.since(version)
        assert changed is not None
        assert set(made) == {first, *others[1:3], others[4]}
        assert {found[0] for found, weight in changed.items() if weight < 0} == {
            first,
            *others[:3],
            others[4],
        }
        assert set(table()) == set(QueryTable(coordinator._queries.all)())

    harness.run(scenario)


def test_a_query_over_the_queries_follows_them(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        watch = await harness.start_query(coordinator, QUERIES, name="watch")
        rooms = await harness.start_query(coordinator, ROOMS, name="rooms")
        await harness.until_rows(coordinator, watch, [("rooms", 0)])
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"), ("r2", "open"))
        await harness.until_rows(coordinator, watch, [("rooms", 2)])
        await harness.start_query(coordinator, ROOMS, name="again")
        await harness.until_rows(coordinator, watch, [("again", 2), ("rooms", 2)])
        await coordinator.stop(rooms)
        await harness.until_rows(coordinator, watch, [("again", 2)])
        await harness.until(lambda: coordinator.query(watch).settled, "it comes to rest")

    harness.run(scenario)
