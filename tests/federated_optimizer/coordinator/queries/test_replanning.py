"""A query finds the gateways that announce themselves while it is planned and stored."""

import asyncio
import contextlib
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.queries.replanning import Replanning
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from gateway.__main__ import serve
from gateway.connectors import registry
from gateway.testing import settings_for
from gateway.testing_connectors import TELLING, TellingConnector
from host.mqtt import Will
from host.mqtt.in_memory import InMemoryClient
from streamsql.errors import UnsupportedError

T = TypeVar("T")

SOURCE = (
    "CREATE SOURCE climate (device TEXT, temp DOUBLE FROM 'T', KEY (device)) "
    "WITH (connector = 'telling', endpoint = 'home', topic = 'air')"
)


class SlowPlanning(OnTheLoop):
    """Plans at once, and hands the plan over when it is told to."""

    def __init__(self) -> None:
        self.is_planned = asyncio.Event()
        self.go_on = asyncio.Event()

    async def run(self, work: Callable[[], T], what: str) -> T:
        """Return what work has found, later if it is a plan."""
        found = work()
        if what == "planning the query":
            self.is_planned.set()
            await self.go_on.wait()
        return found


@pytest.fixture(autouse=True)
def _telling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.BUILT_IN, "telling", TELLING)
    TellingConnector.forget()
    yield
    TellingConnector.forget()


@contextlib.asynccontextmanager
async def gateway(federation: Any) -> AsyncIterator[None]:
    endpoints = {"home": {"connector": "telling"}}
    settings = settings_for(federation.folder, "gw-1", sources=(), endpoints=endpoints)

    def client(will: Will) -> InMemoryClient:
        made: InMemoryClient = federation.broker.client("gw-1", will=will)
        return made

    task = asyncio.create_task(serve(settings, client))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until_others_were_planned(harness: Any, coordinator: Any) -> None:
    """Wait until the gateway is known and the queries that ran were placed for it."""
    await harness.until(lambda: "gw-1" in {s.site for s in coordinator.sites()}, "gw-1 is there")
    await harness.until(lambda: TellingConnector.running, "it serves the source")
    # By then those who run are planned again, ten times over.
    await asyncio.sleep(1)  # time passes: the coordinator plans again after 0.1 s


async def answers(harness: Any, coordinator: Any, starting: "asyncio.Task[Any]") -> None:
    (result,) = await starting
    TellingConnector.running["home"].tell("air", b'{"device": "k1", "T": 21.5}')
    await harness.until_rows(coordinator, result.query.id, [("k1", 21.5)])


def test_a_gateway_announces_itself_while_a_query_is_planned(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        planning = SlowPlanning()
        coordinator = await federation.coordinator(beside=planning)
        await coordinator.execute(SOURCE)
        starting = asyncio.create_task(coordinator.execute("SELECT device, temp FROM climate"))
        await planning.is_planned.wait()
        async with gateway(federation):
            await until_others_were_planned(harness, coordinator)
            planning.go_on.set()
            await answers(harness, coordinator, starting)

    harness.run(scenario)


def test_a_gateway_announces_itself_while_a_query_is_stored(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_storing, go_on = threading.Event(), threading.Event()
    put = CatalogStore.put_runs

    def slow(store: CatalogStore, changes: Any) -> None:
        is_storing.set()
        assert go_on.wait(30)
        put(store, changes)

    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator()
        await coordinator.execute(SOURCE)
        monkeypatch.setattr(CatalogStore, "put_runs", slow)
        starting = asyncio.create_task(coordinator.execute("SELECT device, temp FROM climate"))
        await asyncio.to_thread(is_storing.wait, 30)
        async with gateway(federation):
            await until_others_were_planned(harness, coordinator)
            monkeypatch.setattr(CatalogStore, "put_runs", put)
            go_on.set()
            await answers(harness, coordinator, starting)

    harness.run(scenario)


def test_a_query_whose_plan_there_is_no_more_finds_another_gateway(harness: Any) -> None:
    text = "SELECT status, STRING_AGG(rid, ',') AS rids FROM RoomSensor GROUP BY status"

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        (listed,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {text}")
        last = max(map(int, re.findall(r"^[* ] +(\d+) ", listed.text, re.MULTILINE)))
        query = await harness.start_query(coordinator, f"{text} WITH (plan = {last})")
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("open", "r1")])
        await federation.site("gw-2")
        federation.sites["gw-2"].put("roomsensor", ("r2", "open"))
        await harness.until_rows(coordinator, query, [("open", "r1,r2")])
        (warning,) = [w for w in coordinator.query(query).warnings if "it asks for plan" in w]
        assert f"plan {last}, which there is not with the sites and definitions of now" in warning
        with pytest.raises(UnsupportedError, match=f"there is no plan {last}"):
            await coordinator.execute(f"{text} WITH (plan = {last})")

    harness.run(scenario)


def test_a_node_that_is_widened_while_its_readers_are_planned_is_looked_at_again() -> None:
    resting = {"q1": {"q1", "q2", "q3"}, "q2": {"q2", "q4"}}
    queries: Any = SimpleNamespace(
        widened={"q1": 2, "q2": 2}, runs=SimpleNamespace(resting_on=resting.__getitem__)
    )
    shared: Any = SimpleNamespace(settings=SimpleNamespace(regroup=1.0))
    nothing: Any = None
    replanning = Replanning(shared, nothing, queries, nothing)
    planned: list[list[str]] = []

    async def plan_again(runs: Sequence[str]) -> None:
        planned.append(list(runs))
        if len(planned) == 1:
            queries.widened["q1"] = 3  # by a query that has come meanwhile

    replanning._plan_again = plan_again  # type: ignore[method-assign]
    asyncio.run(replanning.work())
    assert queries.widened == {"q1": 3}
    asyncio.run(replanning.work())
    assert queries.widened == {}
    # A node that reads a widened one is planned again, whether it was widened itself or not.
    assert planned == [["q2", "q3", "q4"], ["q2", "q3"]]


def test_only_what_began_late_is_planned_again_and_not_forgotten_where_that_fails() -> None:
    resting = {"q2": {"q2", "q7"}, "q3": {"q3"}}
    queries: Any = SimpleNamespace(
        widened={},
        late_runs={"q2", "q3", "q6"},
        has_old_plans=False,
        planning_since=None,
        runs=SimpleNamespace(
            resting_on=resting.__getitem__, all=lambda: ("q1", "q2", "q3", "q4", "q7")
        ),
    )
    shared: Any = SimpleNamespace(settings=SimpleNamespace(regroup=0.0), catalog=())
    sites = ["sites"]
    planner: Any = SimpleNamespace(topology=lambda: sites[-1])
    nothing: Any = None
    replanning = Replanning(shared, planner, queries, nothing)
    planned: list[list[str]] = []

    async def plan_again(runs: Sequence[str]) -> None:
        planned.append(list(runs))
        if len(planned) == 2:
            raise UnsupportedError("the catalog cannot be written")

    replanning._plan_again = plan_again  # type: ignore[method-assign]
    replanning.soon()
    asyncio.run(replanning.work())
    assert planned.pop() == ["q1", "q2", "q3", "q4", "q7"], "the sites were never planned for"
    planned.append([])
    queries.late_runs = {"q2", "q3", "q6"}
    replanning.look()
    with pytest.raises(UnsupportedError):
        asyncio.run(replanning.work())
    assert planned.pop() == ["q2", "q3", "q7"], "q6 has ended"
    assert queries.late_runs == {"q2", "q3", "q6"}
    replanning.soon()
    planned += [[], []]
    asyncio.run(replanning.work())
    assert planned.pop() == ["q2", "q3", "q7"]
    assert not queries.late_runs
    # A query may have begun while a gateway was away, and is there again.
    everything = ["q1", "q2", "q3", "q4", "q7"]
    sites.append("a gateway less")
    replanning.look()
    sites.pop()
    planned += [[]]
    asyncio.run(replanning.work())
    assert planned.pop() == everything
    replanning.look()
    assert replanning.due is None
    # If that fails half way all is planned again later, though the sites are noted.
    sites.append("a gateway more")
    replanning.look()
    planned.clear()
    planned.append([])
    with pytest.raises(UnsupportedError):
        asyncio.run(replanning.work())
    replanning.soon()
    planned.append([])
    asyncio.run(replanning.work())
    assert planned.pop() == everything
