"""A source changes while queries read it: a coordinator and a whole gateway, without a restart."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.sites import source_serving
from gateway.__main__ import serve
from gateway.connectors import registry
from gateway.testing import settings_for
from gateway.testing_connectors import TELLING, TellingConnector
from host.mqtt import Message, Will
from host.mqtt.in_memory import InMemoryClient
from streamsql.wire.codec import encode_json


class DeafClient(InMemoryClient):
    """Gets no definitions of sources, as if an older release had refused them."""

    def receive(self, burst: list[Message]) -> None:
        super().receive([m for m in burst if "source" not in m.topic.split("/")])


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
async def gateway(
    federation: Any, name: str = "gw-1", *, kind: type = InMemoryClient, **changes: Any
) -> AsyncIterator[None]:
    """A gateway that has the endpoint home."""
    endpoints = {"home": {"connector": "telling"}}
    settings = settings_for(
        federation.folder, name, **{"sources": (), "endpoints": endpoints, **changes}
    )

    def client(will: Will) -> InMemoryClient:
        made: InMemoryClient = kind(
            federation.broker, name, will=will, clean=True, max_pending=10_000
        )
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
            # What is missing for good is like a gateway that is away: named, and not waited for.
            await harness.until(lambda: coordinator.query(query).settled, "nothing is on its way")
            only_one = text.replace("gw-1, gw-2, gw-3", "gw-1")
            await coordinator.execute(only_one.replace("CREATE", "CREATE OR REPLACE"))
            await harness.until_status(coordinator, query, QueryStatus.RUNNING)

    harness.run(scenario)


def test_an_answer_is_not_settled_while_a_gateway_has_not_reported_the_definition(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator()
        async with gateway(federation, kind=DeafClient):
            await harness.until(lambda: len(coordinator.sites()) > 1, "both sites are there")
            await coordinator.execute(f"CREATE {CLIMATE} {WITH}")
            query = await harness.start_query(coordinator, "SELECT temp FROM climate")
            said = "gw-1 does not serve the present definition of source climate: has not reported"
            late = f"{said} it; it may run an older release"
            await harness.until(lambda: late in coordinator.query(query).warnings, "it is late")
            info = coordinator.query(query)
            assert (info.status, info.settled) == (QueryStatus.DEGRADED, False)
            source = await listed(coordinator)
            assert source["missing"] == "gw-1: has not reported it; it may run an older release"

    monkeypatch.setattr(source_serving, "PATIENCE", 200_000)
    harness.run(scenario)


def test_a_source_that_others_serve_is_not_missing_anywhere(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator()
        elsewhere = {"plant": {"connector": "mqtt", "address": "mqtt://127.0.0.1:1"}}
        async with gateway(federation), gateway(federation, "gw-2", endpoints=elsewhere):
            await coordinator.execute(f"CREATE {CLIMATE} {WITH}")
            query = await harness.start_query(coordinator, "SELECT temp FROM climate")
            await tell(harness, '{"device": "k1", "T": 21.5}', 1)
            await harness.until_rows(coordinator, query, [(21.5,)])
            await harness.until(lambda: coordinator.query(query).settled, "nothing is on its way")
            info = coordinator.query(query)
            assert (info.status, info.warnings) == (QueryStatus.RUNNING, ())

    harness.run(scenario)


def test_a_definition_that_a_gateway_cannot_read_is_named_with_the_reason(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator()
        async with gateway(federation):
            await coordinator.execute(f"CREATE {CLIMATE} {WITH}")
            query = await harness.start_query(coordinator, "SELECT temp FROM climate")
            await tell(harness, '{"device": "k1", "T": 21.5}', 1)
            await harness.until_rows(coordinator, query, [(21.5,)])

            topic = federation.topics.source("climate")
            order = json.loads(federation.broker.retained[topic].payload)
            order["version"] = order["definition"]["version"] = 2
            order["definition"]["mapping"]["format"] = "of_the_next_release"
            client = federation.broker.client("hands")
            await client.connect()
            client.publish(topic, encode_json(order), retain=True)
            reason = "its definition cannot be read here, perhaps by an older release: "
            said = f"rows of source climate from gw-1 are missing: {reason}"
            await harness.until(lambda: said in "".join(coordinator.query(query).warnings), "why")
            source = await listed(coordinator)
            assert source["missing"].startswith(f"gw-1: {reason}")
            assert "of_the_next_release" in source["missing"]
            await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
            assert not TellingConnector.running, "it is served no more"

            client.publish(topic, b"", retain=True)
            await coordinator.execute(f"CREATE OR REPLACE {CLIMATE} {WITH}")
            await tell(harness, '{"device": "k1", "T": 22}', 2)
            await harness.until_rows(coordinator, query, [(22.0,)])
            await client.close()

    harness.run(scenario)
