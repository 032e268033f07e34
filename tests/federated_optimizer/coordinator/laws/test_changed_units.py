"""A source changes its unit while gateways learn it at different times: no answer mixes units."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from gateway.__main__ import serve
from gateway.connectors import registry
from gateway.testing import settings_for
from gateway.testing_connectors import TELLING, TellingConnector
from host.mqtt import Message, Will
from host.mqtt.in_memory import InMemoryClient

CELSIUS = "SOURCE climate (device TEXT, temp DOUBLE FROM 'T' UNIT 'Cel', KEY (device))"
KELVIN = "SOURCE climate (device TEXT, temp DOUBLE FROM 'T' UNIT 'K' IN 'Cel', KEY (device))"
WITH = "WITH (connector = 'telling', topic = 'air')"
ENDPOINTS = {"gw-1": "one", "gw-2": "two"}
QUERIES = ("SELECT device, temp FROM climate", "SELECT 'mean', AVG(temp) FROM climate")
DIFFERS = (
    "source climate is defined differently from the catalog: column temp has the unit Cel, not the "
    "unit K"
)


@pytest.fixture(autouse=True)
def _telling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.BUILT_IN, "telling", TELLING)
    TellingConnector.forget()
    yield
    TellingConnector.forget()


class HoldingClient(InMemoryClient):
    """Holds back what comes on topics with a part of some name, until it is let through."""

    def __init__(self, broker: Any, name: str, will: Will) -> None:
        super().__init__(broker, name, will=will, clean=True, max_pending=10_000)
        self.part = ""
        self.held: list[Message] = []

    def receive(self, burst: list[Message]) -> None:
        held = [m for m in burst if self.part and self.part in m.topic.split("/")]
        self.held += held
        super().receive([message for message in burst if message not in held])

    def let_through(self) -> None:
        """Hand on what was held back, in its order."""
        self.part, held = "", self.held
        self.held = []
        super().receive(held)


@contextlib.asynccontextmanager
async def gateway(federation: Any, name: str) -> AsyncIterator[HoldingClient]:
    """A gateway with an endpoint of its own."""
    endpoints = {ENDPOINTS[name]: {"connector": "telling"}}
    settings = settings_for(federation.folder, name, sources=(), endpoints=endpoints)
    made: asyncio.Future[HoldingClient] = asyncio.get_running_loop().create_future()

    def client(will: Will) -> InMemoryClient:
        held = HoldingClient(federation.broker, name, will)
        made.set_result(held)
        return held

    task = asyncio.create_task(serve(settings, client))
    try:
        yield await made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def watched(coordinator: Any, query: str) -> AsyncIterator[None]:
    """Check after each change of an answer that it has values of one unit only."""

    async def watch() -> None:
        rows: Counter[tuple[str, float]] = Counter()
        async for batch in coordinator.subscribe(query):
            rows = Counter() if batch.snapshot else rows
            for change in batch.changes:
                rows[change.row] += change.diff
            values = [row[-1] for row, n in rows.items() if n and row[-1] is not None]
            units = {"K" if v > 200 else "mixed" if v > 50 else "Cel" for v in values}
            assert units in (set(), {"K"}, {"Cel"}), rows

    task = asyncio.create_task(watch())
    try:
        yield
        assert not task.done() or task.exception() is None, task.exception()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def tell(harness: Any, name: str, device: str, celsius: float, life: int) -> None:
    """Let a device of a gateway report, once its connector has started the so-manieth time."""
    endpoint = ENDPOINTS[name]
    await harness.until(
        lambda: (
            TellingConnector.started.count(endpoint) >= life
            and endpoint in TellingConnector.running
        ),
        f"the connector of {name} runs with definition {life}",
    )
    payload = f'{{"device": "{device}", "T": {celsius}}}'
    TellingConnector.running[endpoint].tell("air", payload.encode())


@contextlib.asynccontextmanager
async def asked(
    harness: Any, federation: Any, text: str
) -> AsyncIterator[tuple[Any, str, HoldingClient]]:
    """A query in degrees Celsius over two gateways, watched; the second one's client."""
    await federation.site("base", "base")
    coordinator = await federation.coordinator()
    async with gateway(federation, "gw-1"), gateway(federation, "gw-2") as late:
        await coordinator.execute(f"CREATE {CELSIUS} {WITH}")
        query = await harness.start_query(coordinator, text)
        async with watched(coordinator, query):
            await tell(harness, "gw-1", "k1", 20, 1)
            await tell(harness, "gw-2", "k2", 22, 1)
            both = [("mean", 21.0)] if "mean" in text else [("k1", 20.0), ("k2", 22.0)]
            await harness.until_rows(coordinator, query, both)
            yield coordinator, query, late


@pytest.mark.parametrize("text", QUERIES)
def test_a_gateway_that_has_not_got_the_new_unit_is_left_out_until_it_has(
    harness: Any, text: str
) -> None:
    mean = "mean" in text

    async def scenario(federation: Any) -> None:
        async with asked(harness, federation, text) as (coordinator, query, late):
            late.part = "source"
            await coordinator.execute(f"CREATE OR REPLACE {KELVIN} {WITH}")
            await tell(harness, "gw-1", "k1", 20, 2)
            one = [("mean", 293.15)] if mean else [("k1", 293.15)]
            await harness.until_rows(coordinator, query, one)
            await tell(harness, "gw-2", "k2", 23, 1)
            await tell(harness, "gw-1", "k1", 21, 2)
            one = [("mean", 294.15)] if mean else [("k1", 294.15)]
            await harness.until_rows(coordinator, query, one)
            info = coordinator.query(query)
            assert (info.status, info.settled) == (QueryStatus.DEGRADED, False)
            assert f"gw-2: {DIFFERS}" in info.error

            late.let_through()
            await tell(harness, "gw-2", "k2", 23, 2)
            both = [("mean", 295.15)] if mean else [("k1", 294.15), ("k2", 296.15)]
            await harness.until_rows(coordinator, query, both)
            await harness.until(lambda: coordinator.query(query).settled, "all arrived")
            assert coordinator.query(query).status == QueryStatus.RUNNING

    harness.run(scenario)


@pytest.mark.parametrize("text", QUERIES)
def test_a_gateway_whose_plan_is_late_sends_nothing_by_the_old_one(harness: Any, text: str) -> None:
    mean = "mean" in text

    async def scenario(federation: Any) -> None:
        async with asked(harness, federation, text) as (coordinator, query, late):
            late.part = "frag"
            await coordinator.execute(f"CREATE OR REPLACE {KELVIN} {WITH}")
            await tell(harness, "gw-2", "k2", 22, 2)
            await harness.until(lambda: bool(late.held), "a new plan is made")
            await tell(harness, "gw-1", "k1", 20, 2)
            one = [("mean", 293.15)] if mean else [("k1", 293.15)]
            await harness.until_rows(coordinator, query, one)

            late.let_through()
            both = [("mean", 294.15)] if mean else [("k1", 293.15), ("k2", 295.15)]
            await harness.until_rows(coordinator, query, both)
            await harness.until(lambda: coordinator.query(query).settled, "all arrived")

    harness.run(scenario)
