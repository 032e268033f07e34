"""The console's page /metrics."""

from dataclasses import replace

import httpx
import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Freshness
from host.clocks import wall_clock
from streamsql.wire.site_messages import SiteState
from tests.prometheus_text import ParsedFamily, parse
from tests.ui.conftest import FakeCoordinator

SECOND = 1_000_000


def families(client: httpx.Client) -> dict[str, ParsedFamily]:
    """Return what the console tells Prometheus."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parse(answer.text)


def test_sites_queries_and_definitions_are_counted(
    client: httpx.Client, coordinator: FakeCoordinator
) -> None:
    client.post("/api/statements", json={"text": "SELECT mid FROM SeatSensor", "name": "seats"})
    found = families(client)
    assert found["pando_connected"].values == {(): 1.0}
    assert found["pando_site_up"].values[("site", "gw-1"), ("role", "gateway")] == 1
    assert sum(found["pando_queries"].values.values()) == len(coordinator.queries())
    assert any(dict(labels)["name"] == "seats" for labels in found["pando_query_rows"].values)
    assert sum(found["pando_definitions"].values.values()) == len(coordinator.definitions())


def test_a_site_that_is_away_keeps_its_figures_and_gets_an_age(
    client: httpx.Client, coordinator: FakeCoordinator
) -> None:
    figures = SiteState(online=True, epoch=1, ts=0, counters={"readings": 4711})
    gone = wall_clock() - 90 * SECOND
    coordinator.site_infos = tuple(
        replace(
            info,
            online=False,
            freshness=Freshness.STALE,
            state=SiteState(online=False, epoch=1, ts=0),
            figures=figures,
            figures_since=gone,
        )
        if info.site == "gw-2"
        else info
        for info in coordinator.site_infos
    )
    found = families(client)
    assert found["pando_site_up"].values[("site", "gw-2"), ("role", "gateway")] == 0
    assert found["pando_site_readings_total"].values[(("site", "gw-2"),)] == 4711
    age = found["pando_site_figures_age_seconds"].values[(("site", "gw-2"),)]
    assert age == pytest.approx(90, abs=30)
