"""A gateway that is away, a broker that forgets, a coordinator that begins anew, all at once."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from host import heartbeats

TEXT = "SELECT rid, status FROM RoomSensor"


def test_a_query_says_for_which_gateway_it_waits_though_nobody_remembers_that_one(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "TRUST_SECONDS", 1.0)

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        for number in (1, 2):
            federation.sites[f"gw-{number}"].put("roomsensor", (f"r{number}", "free"))
        query = await harness.start_query(coordinator, TEXT)
        await harness.until_rows(coordinator, query, [("r1", "free"), ("r2", "free")])
        await coordinator.close()
        federation.coordinators.remove(coordinator)
        federation.broker.stop(forget=True)
        await federation.sites["gw-2"].stop()
        federation.broker.start()

        again = await federation.coordinator()
        await harness.until_status(again, query, QueryStatus.DEGRADED)
        assert again.query(query).waiting_for == ("gw-2",)
        await harness.until_rows(again, query, [("r1", "free")])
        assert again.query(query).waiting_for == ("gw-2",)
        (site,) = [each for each in again.sites() if each.site == "gw-2"]
        assert not site.online
        assert site.detail == "not heard of since the console was started"

        await federation.site("gw-2", epoch=2)
        federation.sites["gw-2"].put("roomsensor", ("r2", "taken"))
        await harness.until_rows(again, query, [("r1", "free"), ("r2", "taken")])
        await harness.until_status(again, query, QueryStatus.RUNNING)
        assert again.query(query).waiting_for == ()

    harness.run(scenario)
