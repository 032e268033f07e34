"""Statuses: many runs are refreshed in parts, and what nothing happens to is left alone."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.queries import status_refresh
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from streamsql.wire.codec import encode_json
from streamsql.wire.site_messages import SiteState

ROOMS = "SELECT rid, status FROM RoomSensor WHERE status = 'open' AND rid <> 'r{}'"
MANY = 7


def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the runs that are looked at from now on, in order."""
    seen: list[str] = []
    status = RunningQuery.current_status

    def noted(query: RunningQuery) -> QueryStatus:
        seen.append(query.run)
        return status(query)

    monkeypatch.setattr(RunningQuery, "current_status", noted)
    return seen


async def started(harness: Any, coordinator: Any) -> list[str]:
    queries = [await harness.start_query(coordinator, ROOMS.format(n)) for n in range(MANY)]
    await harness.until(lambda: all(coordinator.query(q).settled for q in queries), "settled")
    statuses = coordinator._queries.statuses
    await harness.until(lambda: not list(statuses.restless()), "at rest")
    return queries


def test_all_runs_are_refreshed_in_parts(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        queries = await started(harness, coordinator)
        statuses = coordinator._queries.statuses
        monkeypatch.setattr(status_refresh, "AT_ONCE", 3)
        seen = looked_at(monkeypatch)
        statuses.all_due()
        statuses.begin_look()
        assert seen == []
        parts = []
        while statuses.go_on():
            parts.append(len(seen))
        assert parts == [3, 6]
        assert set(seen) == set(queries)

    harness.run(scenario)


def test_those_that_wait_for_time_take_turns(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await started(harness, coordinator)
        statuses = coordinator._queries.statuses
        monkeypatch.setattr(status_refresh, "MOST_WAITING", 2)
        monkeypatch.setattr(status_refresh, "MOST_SWEPT", 0)
        monkeypatch.setattr(statuses, "_is_at_rest", lambda _run: False)
        for run in coordinator._queries.runs.all():
            statuses.of_run(run)
        seen = looked_at(monkeypatch)
        for _ in range(MANY):
            statuses.begin_look()
            while statuses.go_on():
                pass
        runs = coordinator._queries.runs.all()
        counts = [seen.count(run) for run in runs]
        assert sum(counts) == 2 * MANY
        assert max(counts) - min(counts) <= 1

    harness.run(scenario)


def test_figures_of_a_site_are_no_reason_to_look_at_queries_and_its_end_is(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        queries = await started(harness, coordinator)
        monkeypatch.setattr(status_refresh, "MOST_SWEPT", 0)
        seen = looked_at(monkeypatch)
        site, received = federation.sites["gw-1"], coordinator._receiver.messages
        now = SiteState(online=True, epoch=site.epoch, ts=site.epoch, role=site.role)
        site.client.publish(site._state_topic, encode_json(now), retain=True)
        await harness.until(lambda: coordinator._receiver.messages > received, "heard")
        await coordinator._upkeep.look()
        assert seen == []
        federation.broker.cut("gw-1")
        await site.stop()
        for query in queries:
            await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        statuses = coordinator._queries.statuses
        await harness.until(lambda: not list(statuses.restless()), "at rest while it is away")

    harness.run(scenario)
