"""What the map finds of positions among definitions and queries."""

import asyncio
from dataclasses import replace
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryStatus
from streamsql.algebra.streams import Emit
from streamsql.errors import FederationError
from ui.map.placed_sources import PlacedSources, ReadablePlaces
from ui.map.session_queries import SessionQueries

HEARD = "CREATE SOURCE heard (badge TEXT, receiver TEXT, rssi DOUBLE, ts TIMESTAMP)"
RECEIVER = """CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE)
  WITH (source = 'csv', path = 'receiver.csv')"""
RADIO_MAP = """
CREATE TABLE radio_map (point TEXT, receiver TEXT, rssi DOUBLE)
  WITH (source = 'csv', path = 'r.csv');
CREATE TABLE calibration_point (point TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE)
  WITH (source = 'csv', path = 'c.csv')"""
OWN = "CREATE VIEW own AS SELECT badge, receiver AS room, 0.5 AS confidence FROM heard"
QUERY = "SELECT badge, receiver AS room, 0.1 AS confidence FROM heard"


def offered(coordinator: Any, *scripts: str) -> list[list[str]]:
    """Keys of the sources of badges and devices after each script."""

    async def run() -> list[list[str]]:
        sources = PlacedSources(coordinator, SessionQueries())
        found = []
        for script in scripts:
            await coordinator.execute(script)
            await sources.look()
            found.append([s.key for s in (*sources.badges, *sources.devices)])
        return found

    return asyncio.run(run())


def test_library_views_are_offered_once_they_bind_the_most_accurate_one_first(
    coordinator: Any,
) -> None:
    first, second, third = offered(coordinator, HEARD, RECEIVER, RADIO_MAP)
    assert first == []
    rooms = ["relation:weighted_centroid", "relation:strongest_room"]
    assert second == [*rooms, "relation:receiver"]
    assert third == ["relation:radio_map_position", *rooms, "relation:receiver"]


def test_running_queries_come_before_own_views_before_the_library(coordinator: Any) -> None:
    *_, last = offered(coordinator, HEARD, RECEIVER, OWN, QUERY, QUERY)
    assert last[:4] == ["query:q2", "query:q1", "relation:own", "relation:weighted_centroid"]
    coordinator.set_status("q2", QueryStatus.FAILED, "too much work")
    assert offered(coordinator, "SHOW SOURCES")[0][0] == "query:q1"


def test_queries_of_others_and_without_confidence_are_not_offered(coordinator: Any) -> None:
    async def run() -> None:
        await coordinator.execute(HEARD)
        await coordinator.execute(QUERY, origin=Origin.SESSION)
        await coordinator.execute("SELECT badge, receiver AS room FROM heard")
        await coordinator.execute(QUERY)
        running = coordinator.running["q3"]
        running.info = replace(running.info, emit=Emit.STREAM)

    asyncio.run(run())
    assert offered(coordinator, "SHOW SOURCES") == [[]]


def test_views_are_bound_again_only_after_definitions_have_changed(coordinator: Any) -> None:
    asked: list[Any] = []
    shapes = coordinator.shapes

    async def counted(names: Any) -> Any:
        asked.append(names)
        return await shapes(names)

    coordinator.shapes = counted
    offered(coordinator, HEARD, "SHOW SOURCES", "SHOW SOURCES", RECEIVER)
    assert len(asked) == 2


def test_queries_are_gone_through_only_after_one_has_begun_ended_or_failed(
    coordinator: Any,
) -> None:
    placed = PlacedSources(coordinator, SessionQueries())

    async def run() -> None:
        for script in (HEARD, QUERY, QUERY):
            await coordinator.execute(script)
        await placed.look()
        listed = coordinator.listed
        for _ in range(10):
            await placed.look()
        assert coordinator.listed == listed
        coordinator.set_status("q2", QueryStatus.FAILED, "too much work")
        await placed.look()
        assert [source.key for source in placed.badges] == ["query:q1"]
        await coordinator.stop("q1")
        await placed.look()
        assert placed.badges == ()

    asyncio.run(run())


def test_a_device_column_places_links_before_a_receiver_column(coordinator: Any) -> None:
    places = """CREATE TABLE standing (device TEXT, room TEXT)
      WITH (source = 'csv', path = 'standing.csv')"""
    *_, last = offered(coordinator, RECEIVER, places)
    assert last == ["relation:standing", "relation:receiver"]


def test_a_reader_is_offered_what_they_may_read(coordinator: Any) -> None:
    class Reader:
        def definitions(self) -> Any:
            return tuple(d for d in coordinator.definitions() if d.name != "own")

        def query(self, query_id: str) -> Any:
            if query_id == "q2":
                raise FederationError("it may not be read", code="not_allowed")
            return coordinator.query(query_id)

    async def run() -> None:
        placed = PlacedSources(coordinator, SessionQueries())
        for script in (HEARD, RECEIVER, OWN, QUERY, QUERY):
            await coordinator.execute(script)
        await placed.look()
        mine = ReadablePlaces(placed, Reader())  # type: ignore[arg-type]
        keys = [source.key for source in mine.badges]
        assert keys[0] == "query:q1"
        assert not {"query:q2", "relation:own"} & set(keys)
        for wanted in ("query:q2", "relation:own"):
            chosen = mine.chosen(wanted)
            assert chosen is not None
            assert chosen.key == "query:q1"
        device = mine.device_places()
        assert device is not None
        assert device.key == "relation:receiver"

    asyncio.run(run())
