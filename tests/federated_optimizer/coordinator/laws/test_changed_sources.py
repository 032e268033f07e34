"""A source changes while queries read it: a coordinator and a whole gateway, without a restart."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from gateway.__main__ import serve
from gateway.connectors import registry
from gateway.testing import settings_for
from gateway.testing_connectors import TELLING, TellingConnector
from host.mqtt import Will
from host.mqtt.in_memory import InMemoryClient

CLIMATE = "SOURCE climate (device TEXT, temp DOUBLE FROM 'T' UNIT 'Cel', KEY (device))"
REORDERED = "SOURCE climate (n INTEGER, temp DOUBLE FROM 'T' UNIT 'Cel', device TEXT, KEY (device))"
WITH = "WITH (connector = 'telling', endpoint = 'home', topic = 'air')"


@pytest.fixture(autouse=True)
def _telling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.BUILT_IN, "telling", TELLING)
    TellingConnector.forget()
    yield
    TellingConnector.forget()


@contextlib.asynccontextmanager
async def gateway(federation: Any, name: str = "gw-1", **changes: Any) -> AsyncIterator[None]:
    """A gateway that has the endpoint home."""
    endpoints = {"home": {"connector": "telling"}}
    settings = settings_for(
        federation.folder, name, **{"sources": (), "endpoints": endpoints, **changes}
    )

    def client(will: Will) -> InMemoryClient:
        made: InMemoryClient = federation.broker.client(name, will=will)
        return made

    task = asyncio.create_task(serve(settings, client))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def tell(harness: Any, payload: str, life: int) -> None:
    """Tell the connector of the endpoint, as it was started for the so-manieth time."""
    await harness.until(
        lambda: TellingConnector.started.count("home") >= life and TellingConnector.running,
        f"the connector runs with definition {life}",
    )
    TellingConnector.running["home"].tell("air", payload.encode())


async def listed(coordinator: Any) -> dict[str, Any]:
    (result,) = await coordinator.execute("SHOW SOURCES")
    rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
    return next(row for row in rows if row["source"] == "climate")


def test_a_column_more_and_another_order_reach_running_and_new_queries(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator()
        async with gateway(federation):
            await coordinator.execute(f"CREATE {CLIMATE} {WITH}")
            query = await harness.start_query(coordinator, "SELECT * FROM climate")
            await tell(harness, '{"device": "k1", "T": 21.5, "H": 40}', 1)
            await harness.until_rows(coordinator, query, [("k1", 21.5)])

            await coordinator.execute("ALTER SOURCE climate ADD COLUMN hum DOUBLE FROM 'H'")
            await tell(harness, '{"device": "k2", "T": 20, "H": 50}', 2)
            await harness.until_rows(coordinator, query, [("k1", 21.5), ("k2", 20.0)])
            wider = await harness.start_query(coordinator, "SELECT * FROM climate WHERE hum > 1")
            await harness.until_rows(coordinator, wider, [("k2", 20.0, 50.0)])
            await coordinator.execute(f"DROP QUERY {wider}")

            await coordinator.execute(f"CREATE OR REPLACE {REORDERED} {WITH}")
            await tell(harness, '{"device": "k1", "T": 22, "n": 7}', 3)
            await harness.until_rows(coordinator, query, [("k1", 22.0), ("k2", 20.0)])
            await harness.until(lambda: coordinator.query(query).settled, "nothing is on its way")
            source = await listed(coordinator)
            assert (source["version"], source["gateways"], source["missing"]) == (3, "gw-1", "")

    harness.run(scenario)


def test_rows_of_a_gateway_that_cannot_serve_a_source_are_said_to_be_missing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator()
        endpoints = {"home": {"connector": "mqtt", "address": "mqtt://127.0.0.1:1"}}
        async with gateway(federation), gateway(federation, "gw-2", endpoints=endpoints):
            text = f"CREATE {CLIMATE} {WITH[:-1]}, gateways = 'gw-1, gw-2, gw-3')"
            await coordinator.execute(text)

            query = await harness.start_query(coordinator, "SELECT temp FROM climate")
            reason = "endpoint home is of connector mqtt here, not telling"
            missing = f"rows of source climate from gw-2 are missing: {reason}"
            await harness.until(lambda: missing in coordinator.query(query).warnings, "gw-2 says")
            await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
            await tell(harness, '{"device": "k1", "T": 21.5}', 1)
            await harness.until_rows(coordinator, query, [(21.5,)])
            source = await listed(coordinator)
            assert source["gateways"] == "gw-1"
            assert source["missing"] == f"gw-2: {reason}; gw-3: has never reported"
            assert coordinator.query(query).warnings[:2] == (
                missing,
                "rows of source climate from gw-3 are missing: has never reported",
            )
            only_one = text.replace("gw-1, gw-2, gw-3", "gw-1")
            await coordinator.execute(only_one.replace("CREATE", "CREATE OR REPLACE"))
            await harness.until_status(coordinator, query, QueryStatus.RUNNING)

    harness.run(scenario)
