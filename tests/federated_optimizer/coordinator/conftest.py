"""A small federation in one event loop: coordinators and engine sites on an in-memory broker."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import (
    ChangeBatch,
    QueryStatus,
    ResultKind,
)
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.coordinator_service import Coordinator, open_coordinator
from federated_optimizer.coordinator.queries import repairs
from gateway.site import flow_reports, host
from gateway.site.host import SiteHost
from host.mqtt import Will
from host.mqtt.in_memory import InMemoryBroker, InMemoryClient
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row, Value
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.messages import TableSet
from streamsql.wire.site_messages import Birth, SiteRole, SiteState
from streamsql.wire.source_shapes import shape_of
from streamsql.wire.topics import Topics
from tests.streamsql.from_text import catalog_of

SCHEMA = """
CREATE SOURCE SeatSensor (mid TEXT, rid TEXT, weightLevel DOUBLE, KEY (mid))
  WITH (colocate = 'rid');
CREATE SOURCE RoomSensor (rid TEXT, status TEXT, KEY (rid))
  WITH (colocate = 'rid');
CREATE SOURCE Temperature (rid TEXT, celsius DOUBLE) WITH (colocate = 'rid');
CREATE LINK SOURCE Link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst));
CREATE TABLE Machines (mid TEXT PRIMARY KEY, rid TEXT) WITH (source = 'csv', path = 'm.csv');
CREATE TABLE MachineSoftware (mid TEXT, software TEXT) WITH (source = 'csv', path = 's.csv');
"""
STREAMS = ("seatsensor", "roomsensor", "temperature", "link")
SECONDS = 60.0


def wall() -> int:
    """The clock of everything here."""
    return time.time_ns() // 1000


def definitions(schema: str) -> dict[str, SourceDefinition]:
    """The schema's definitions by name."""
    catalog = catalog_of(schema)
    return {d.name: d for d in catalog.sources + catalog.tables}


class Site:
    """A gateway, base or static site with a real engine."""

    def __init__(self, federation: "Federation", name: str, role: SiteRole, epoch: int) -> None:
        self.name, self.role, self.epoch = name, role, epoch
        self.topics = federation.topics
        state = SiteState(online=False, epoch=epoch, ts=wall(), role=role, reason="lost")
        will = Will(self._state_topic, encode_json(state))
        self.client = federation.broker.client(name, will=will)
        self.engine = RecordedSite(name, epoch)
        self.sources: tuple[str, ...] = ()
        self.scans: list[Scan] = []
        self.host = SiteHost(
            self.engine,
            self.client,
            self.topics,
            wall,
            grace_seconds=0.2,
            tick_seconds=0.005,
            reads_observations=role == SiteRole.BASE,
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self, sources: Iterable[str], schema: str) -> "Site":
        """Connect, announce, run."""
        known = definitions(schema)
        self.sources = tuple(sources)
        self.scans = [known[source].scan() for source in self.sources]
        for scan in self.scans:
            self.engine.declare(scan)
        await self.client.connect()
        self._announce(connected=True)
        self.client.on_connection(lambda connected: self._announce(connected=connected))
        await self.host.start()
        self._task = asyncio.get_running_loop().create_task(self.host.run())
        return self

    async def stop(self) -> None:
        """Leave without a word; cut the link first for a crash."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.client.close()

    def put(self, source: str, *rows: tuple[Value, ...], delete: bool = False) -> None:
        """Readings arrive."""
        self.engine.ingest(source, [SourceEvent(row, wall(), delete) for row in rows])
        self.host.wake()

    @property
    def _state_topic(self) -> str:
        if self.role == SiteRole.STATIC:
            return self.topics.host_state(self.name)
        return self.topics.state(self.name)

    def _announce(self, *, connected: bool) -> None:
        if not connected:
            return
        state = SiteState(online=True, epoch=self.epoch, ts=wall(), role=self.role)
        self.client.publish(self._state_topic, encode_json(state), retain=True)
        if self.role != SiteRole.STATIC:
            birth = Birth(
                *(self.name, self.epoch, 0, wall()),
                role=self.role,
                sources=self.sources,
                shapes=tuple(map(shape_of, self.scans)),
            )
            self.client.publish(self.topics.birth(self.name), encode_json(birth), retain=True)


class Federation:
    """The broker, its sites and coordinators."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = InMemoryBroker()
        self.topics = Topics("demo")
        self.sites: dict[str, Site] = {}
        self.coordinators: list[Coordinator] = []

    async def site(
        self,
        name: str,
        role: SiteRole = SiteRole.GATEWAY,
        *,
        epoch: int = 1,
        sources: Iterable[str] = STREAMS,
        schema: str = SCHEMA,
    ) -> Site:
        """Start a site."""
        made = Site(self, name, role, epoch)
        self.sites[name] = made
        return await made.start(() if role == SiteRole.BASE else sources, schema)

    async def coordinator(
        self,
        *,
        define_schema: bool = False,
        explainer: Any = None,
        beside: Any = None,
        history: Any = None,
        **changes: Any,
    ) -> Coordinator:
        """Start a coordinator on the shared catalog."""
        defaults: dict[str, Any] = {
            "database": f"sqlite:///{self.folder}/catalog.db",
            "session_grace": 0.2,
            "switch": 2.0,
            "regroup": 0.1,
            "grace": 0.2,
        }
        settings = CoordinatorSettings(**{**defaults, **changes})

        def client(will: Will) -> InMemoryClient:
            return self.broker.client(settings.host, will=will)

        made = await open_coordinator(settings, client, wall, explainer, beside, history)
        self.coordinators.append(made)
        if define_schema:
            await made.execute(SCHEMA)
        return made

    async def standard(self, gateways: int = 2, **changes: Any) -> Coordinator:
        """Start a base, a static site with two tables, gateways, and a coordinator."""
        await self.site("base", SiteRole.BASE)
        static = await self.site("static", SiteRole.STATIC, sources=("machines", "machinesoftware"))
        static.put("machines", ("m1", "r1"), ("m2", "r2"), ("m3", "r1"))
        static.put("machinesoftware", ("m1", "Word"), ("m2", "Word"), ("m3", "LaTeX"))
        for number in range(1, gateways + 1):
            await self.site(f"gw-{number}")
        made = await self.coordinator(define_schema=True, **changes)
        await until(lambda: sum(site.online for site in made.sites()) == gateways + 2)
        return made

    async def close(self) -> None:
        """Stop everything."""
        for coordinator in self.coordinators:
            await coordinator.close()
        for site in self.sites.values():
            await site.stop()

    def tables(self) -> tuple[str, ...]:
        """The tables the static engine has been told about."""
        message = self.broker.retained.get(self.topics.tables())
        if message is None:
            return ()
        return tuple(t.name for t in decode_json(message.payload, TableSet).tables)

    def fragments(self) -> set[tuple[str, str]]:
        """(query, site) of all retained fragments."""
        found = set()
        for topic in self.broker.retained:
            parts = self.topics.parts(topic)
            if parts[0] == "q" and parts[2] == "frag":
                found.add((parts[1], parts[3]))
        return found


async def until(condition: Callable[[], bool], what: str = "") -> None:
    """Wait until something is so, at most `SECONDS`."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what or condition}"
        await asyncio.sleep(0.01)


async def start_query(coordinator: Coordinator, text: str, **options: Any) -> str:
    """Start a query; return its id."""
    (result,) = await coordinator.execute(text, **options)
    assert result.kind == ResultKind.QUERY
    assert result.query is not None
    return result.query.id


async def until_rows(coordinator: Coordinator, query: str, rows: Iterable[Row]) -> None:
    """Wait until a query's relation is as given and the query runs."""
    wanted = sorted(rows)
    try:
        await until(lambda: sorted(coordinator.relation(query)) == wanted)
    except AssertionError:
        info = coordinator.query(query)
        raise AssertionError(f"{coordinator.relation(query)} instead of {wanted}: {info}") from None


async def until_status(coordinator: Coordinator, query: str, status: QueryStatus) -> None:
    """Wait until a query stands somewhere."""
    try:
        await until(lambda: coordinator.query(query).status == status)
    except AssertionError:
        raise AssertionError(f"not {status}: {coordinator.query(query)}") from None


async def next_batch(reader: AsyncIterator[ChangeBatch]) -> ChangeBatch:
    """Wait for a reader's next batch."""
    async with asyncio.timeout(SECONDS):
        return await anext(reader)


class Harness:
    """What tests of the coordinator use; given by the fixture `harness`."""

    until = staticmethod(until)
    until_rows = staticmethod(until_rows)
    until_status = staticmethod(until_status)
    start_query = staticmethod(start_query)
    next_batch = staticmethod(next_batch)
    schema = SCHEMA
    kinds = SourceKind

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, scenario: Callable[[Federation], Coroutine[Any, Any, None]]) -> None:
        """Run a scenario over a new federation."""

        async def whole() -> None:
            federation = Federation(self.folder)
            try:
                async with asyncio.timeout(60):
                    await scenario(federation)
            finally:
                await federation.close()

        asyncio.run(whole())


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """The tools of this folder's tests."""
    return Harness(tmp_path)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts come more often and are doubted sooner."""
    monkeypatch.setattr(flow_reports, "REPEAT", 0.3)
    monkeypatch.setattr(host, "LONGEST_SLEEP", 0.3)
    monkeypatch.setattr(repairs, "LOOK_MICROSECONDS", 50_000)
    monkeypatch.setattr(repairs, "FIRST_PATIENCE", 200_000)
