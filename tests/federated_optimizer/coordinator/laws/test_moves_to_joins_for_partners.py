"""A join that two queries only ask for partners, by other bounds: the older one moves onto it."""

from typing import Any

from tests.federated_optimizer.coordinator.adaptation.test_over_others import begun, feeders

ON = "FROM SeatSensor s JOIN RoomSensor r ON r.rid = s.rid WHERE s.mid > r.status"
SOME = f"SELECT s.mid {ON} EXCEPT SELECT s.mid {ON} AND r.status > 'b'"
MORE = f"SELECT s.mid {ON} EXCEPT SELECT s.mid {ON} AND r.status > 'c'"


def test_the_older_query_moves_onto_the_join_of_a_newer_one(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        one = federation.sites["gw-1"]
        one.put("roomsensor", ("r1", "a"), ("r2", "bb"))
        one.put("seatsensor", ("m", "r1", None), ("n", "r2", None))
        federation.sites["gw-2"].put(
            "seatsensor", ("o", "r1", None), ("p", "r2", None), ("z", "none", None)
        )
        first = await harness.start_query(coordinator, SOME)
        await harness.until_rows(coordinator, first, [("m",), ("o",)])
        second = await harness.start_query(coordinator, MORE)
        (node,) = coordinator._queries.nodes.all()
        assert feeders(coordinator, second) == {node.run}
        await harness.until_rows(coordinator, second, [(m,) for m in "mnop"])
        await harness.until(lambda: feeders(coordinator, first) == {node.run}, "it moves")
        assert len(one.engine.queries) == 1, "gateways send once"
        await harness.until_rows(coordinator, first, [("m",), ("o",)])
        one.put("roomsensor", ("r1", "bz"))
        await harness.until_rows(coordinator, first, [])
        one.put("roomsensor", ("r2", "d"))
        await harness.until_rows(coordinator, second, [("m",), ("o",)])
        await coordinator.stop(second)
        one.put("roomsensor", ("r1", "a"))
        await harness.until_rows(coordinator, first, [("m",), ("o",)])
        await coordinator.stop(first)
        await harness.until(lambda: not coordinator._queries.nodes.all(), "nobody reads it")
        await harness.until(lambda: not one.engine.queries)

    harness.run(scenario)
