"""Reports of sites on a run reach every query that reads it, whatever became of the others."""

from typing import Any

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from streamsql.errors import FederationError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import QueryProblem

ROOMS = "SELECT rid, status FROM RoomSensor"


def test_a_stopped_reader_keeps_no_problem_of_a_later_site_from_the_others(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        queries = coordinator._queries
        one, other, third = [await harness.start_query(coordinator, ROOMS) for _ in range(3)]
        for stopped in (one, third):
            reason = FederationError("its quota is used up", code="quota_exceeded")
            queries.fail(queries.find(stopped), reason)
        await federation.site("gw-2")
        await harness.until(lambda: "gw-2" in queries.find(other).bundle.sites, "it runs there")
        assert "gw-2" not in queries.find(one).bundle.sites, "a stopped query is left as it is"

        topic = federation.topics.error(one, "gw-2")
        said = QueryProblem("source_unreadable", f"query {one} has no memory", "", 1, "gw-2")
        publish = federation.sites["gw-2"].client.publish
        publish(topic, encode_json(said), retain=True)
        await harness.until_status(coordinator, other, QueryStatus.DEGRADED)
        assert f"query {other} has no memory" in coordinator.query(other).error
        for stopped in (one, third):
            assert "no memory" not in coordinator.query(stopped).error
        publish(topic, b"", retain=True)
        await harness.until_status(coordinator, other, QueryStatus.RUNNING)

    harness.run(scenario)
