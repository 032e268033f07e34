"""Lists of queries: those that are asked for, and what they cost."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Origin, Wanted
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from streamsql.data.schema import Schema

ROOMS = "SELECT rid, status FROM RoomSensor"
SEATS = "SELECT mid, weightLevel FROM SeatSensor"


def ids(infos: Any) -> list[str]:
    return [info.id for info in infos]


def test_a_list_has_the_newest_queries_with_all_words_in_any_case(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        rooms = [await harness.start_query(coordinator, ROOMS) for _ in range(3)]
        seats = [await harness.start_query(coordinator, SEATS) for _ in range(2)]
        (named,) = await coordinator.execute(ROOMS, name="doors")

        def listed(**wanted: Any) -> list[str]:
            return ids(coordinator.queries(Origin.USER, Wanted(**wanted)))

        assert listed() == [*rooms, *seats, named.query.id]
        assert listed(most=2) == [seats[1], named.query.id]
        assert listed(most=9, words="seatsensor MID") == seats
        assert listed(words="doors") == [named.query.id]
        assert listed(words=f"{rooms[1]} status") == [rooms[1]]
        assert listed(words="rid weightLevel") == []
        assert listed(shows=lambda schema: "mid" in schema.names, most=1) == [seats[1]]

    harness.run(scenario)


def test_queries_that_are_not_listed_are_not_described(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[str] = []
    info = RunningQuery.info

    def counted(query: RunningQuery, *standing: Any) -> Any:
        described.append(query.id)
        return info(query, *standing)

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        queries = [await harness.start_query(coordinator, ROOMS) for _ in range(20)]
        asked: list[Schema] = []

        def shows(schema: Schema) -> bool:
            asked.append(schema)
            return False

        monkeypatch.setattr(RunningQuery, "info", counted)
        coordinator.queries(Origin.USER, Wanted(shows=shows))
        assert len(asked) == 1, "equal queries have one schema"
        assert described == []
        coordinator.queries(Origin.USER, Wanted(most=3))
        assert described == queries[-3:]

    harness.run(scenario)


def test_a_list_has_the_queries_that_read_a_relation_also_through_views(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute("CREATE VIEW Doors AS SELECT rid FROM RoomSensor")
        rooms = await harness.start_query(coordinator, ROOMS)
        doors = await harness.start_query(coordinator, "SELECT * FROM Doors")
        seats = await harness.start_query(coordinator, SEATS)

        def reading(name: str) -> list[str]:
            return ids(coordinator.queries(Origin.USER, Wanted(reads=name)))

        assert reading("roomsensor") == [rooms, doors]
        assert reading("Doors") == [doors]
        assert reading("SEATSENSOR") == [seats]
        assert reading("Sensor") == []

    harness.run(scenario)
