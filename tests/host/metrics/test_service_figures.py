"""Figures that every service has."""

import pytest

from host.metrics.service_figures import connection_problem, service_figures
from host.mqtt.in_memory import InMemoryBroker


@pytest.mark.anyio
async def test_a_service_tells_who_it_is_and_how_its_connection_is() -> None:
    broker = InMemoryBroker()
    client = broker.client("gw-1")
    assert connection_problem(client) != ""
    await client.connect()
    found = {s.family.name: s for s in service_figures("demo", "gw-1", "gateway", client, 3)}
    assert dict(found["pando_process_info"].labels) == {
        "federation": "demo",
        "site": "gw-1",
        "role": "gateway",
    }
    assert found["pando_connected"].value == 1
    assert found["pando_bad_payloads_total"].value == 3
    assert connection_problem(client) == ""
    await client.close()
