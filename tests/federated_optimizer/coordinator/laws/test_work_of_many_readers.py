"""An update of a run, and a quiet moment, cost no look at each of the queries that read it."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from streamsql.errors import FederationError

ROOMS = "SELECT rid, status FROM RoomSensor"
MANY = 40
ANN = Principal("ann", Role.OPERATOR)
UNLIKE = FederationError("its quota is used up", code="quota_exceeded")


class Looks:
    """Counts the queries that lists of them consist of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for owner, name in (
            (Queries, "all"),
            (Queries, "everything"),
            (SharedRuns, "everyone"),
            (SharedRuns, "readers"),
            (SharedRuns, "live"),
        ):
            monkeypatch.setattr(owner, name, self._counting(getattr(owner, name)))

    def _counting(self, listed: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            found = tuple(listed(*arguments))
            self.count += len(found)
            return found

        return counted


def test_updates_and_upkeep_go_through_no_list_of_the_queries(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        coordinator.follow_accounts({}.get)
        queries = [await harness.start_query(coordinator, ROOMS) for _ in range(MANY)]
        await harness.until(lambda: all(coordinator.query(q).settled for q in queries), "settled")
        replanning = coordinator._replanning
        await harness.until(lambda: replanning.due is None, "planned again after the start")
        keep = coordinator._statements.queries.keep
        await keep()
        coordinator._grants.check_running()

        looks = Looks(monkeypatch)
        for number in range(5):
            federation.sites["gw-1"].put("roomsensor", (f"r{number}", "open"))
            await harness.until(
                lambda number=number: len(coordinator.relation(queries[-1])) == number + 1, "shown"
            )
            await coordinator._upkeep.look()
            await keep()
            coordinator._grants.check_running()
            reader = coordinator.on_behalf(ANN)
            assert reader.query(queries[0]).rows == number + 1
            reader.definitions()
            reader.alarms()
            assert reader.query_changes() == coordinator.query_changes()
        assert looks.count == 0

    harness.run(scenario)


def test_the_readers_of_a_run_that_we_have_stopped_are_passed_by(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        registry = coordinator._queries
        queries = [await harness.start_query(coordinator, ROOMS) for _ in range(5)]
        for stopped in queries[:3]:
            registry.fail(registry.find(stopped), UNLIKE)
        runs = registry.runs
        assert runs.leader(queries[0]).id == queries[3]
        assert [query.id for query in runs.live(queries[0])] == queries[3:]
        assert [query.id for query in runs.readers(queries[0])] == queries
        assert all(runs.is_stopped(registry.find(query)) for query in queries[:3])
        assert not any(runs.is_stopped(registry.find(query)) for query in queries[3:])
        for stopped in queries[3:]:
            registry.fail(registry.find(stopped), UNLIKE)
        assert runs.leader(queries[0]) is None

    harness.run(scenario)
