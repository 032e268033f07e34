"""No message ends a service, whatever is in it, and none meets a defect.

`PANDO_HOSTILE_MESSAGES` is how many each topic gets: 10**6 for the full run.
"""

import asyncio
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.coordinator_service import open_coordinator
from gateway.runtime import Gateway
from gateway.testing import SEATS, TEMPERATURES, settings_for
from host.files.site_directory import SiteDirectory
from host.mqtt import Message, Will
from host.mqtt.dead_letters import DeadLetters
from host.mqtt.in_memory import InMemoryBroker
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.service.engine_reports import will_state
from static_engine.service.static_engine import StaticEngine
from static_engine.sources.table_locations import Locations
from static_engine.static_settings import StaticSettings
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Filter, RemoteSource, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.codec import decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import (
    Command,
    DeltaBatch,
    FlowReport,
    LinkMessage,
    ObservationPack,
    QueryProblem,
    ReportRequest,
    SenmlRecord,
    SystemRows,
    TableSet,
    WeightedRow,
)
from streamsql.wire.observation_logs import PacksPublished, PacksWanted
from streamsql.wire.site_messages import Birth, SiteRole, SiteState, SourceRows
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.table_changes import TableChange, TableChanged
from streamsql.wire.topics import Topics
from tests.hostile.payloads import HostilePayloads

COUNT = int(os.environ.get("PANDO_HOSTILE_MESSAGES", "1500"))
TOPICS = Topics("demo")
OWN_LINK = TOPICS.link("base", "link", "a", "b")
"""Where a site looks for what its former lives have left: nobody looks into the messages."""
ROOMS = SourceDefinition(
    "rooms",
    SourceKind.TABLE,
    Schema.of(("room", DataType.TEXT), ("seats", DataType.INTEGER)),
    options=(("source", "csv"), ("path", "rooms.csv")),
)
WORDS = ("q1", "f0", "f1", "gw-2", "coordinator", "static", "out", "seatsensor", "room", "spec")


@dataclass
class Victim:
    """A service that hears messages; `probe` says whether it still works."""

    hear: Callable[[list[Message]], None]
    alive: Callable[[], bool]
    probe: Callable[[], Any]
    published: list[Message]
    dead_letters: DeadLetters
    defects: Callable[[], int] = lambda: 0

    async def until_answered(self) -> None:
        """Ask until the service has worked off what came before, and answers."""
        async with asyncio.timeout(120):
            while True:
                assert self.alive()
                if self.probe():
                    return
                await asyncio.sleep(0.01)


def wall() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


def collecting(query: str, version: int = 1) -> FragmentBundle:
    """Seats of a gateway that fill at the base site, and temperatures that it reads itself."""
    heavy = Call(
        ">", (Column(1, "weight", DataType.DOUBLE), Literal(1.5, DataType.DOUBLE)), DataType.BOOLEAN
    )
    seats = Fragment("f0", Engine.GATEWAY, SEATS.scan(), ("gw-1",), "f1", ("base",))
    read = Fragment("f2", Engine.BASE, TEMPERATURES.scan(), ("base",))
    base = Fragment("f1", Engine.BASE, Filter(RemoteSource("f0", SEATS.schema), heavy), ("base",))
    return FragmentBundle(query, version, (seats, base, read), SEATS.schema)


def stored(query: str, version: int = 1) -> FragmentBundle:
    """Rooms for the base site."""
    rooms = Fragment("f1", Engine.STATIC, ROOMS.scan(), ("static",), "f2", ("base",))
    return FragmentBundle(query, version, (rooms,), ROOMS.schema)


@asynccontextmanager
async def observed(*topics: str) -> AsyncIterator[tuple[InMemoryBroker, list[Message]]]:
    """Give a broker, and a list that grows by what is published there to some topics."""
    published: list[Message] = []
    broker = InMemoryBroker()
    observer = broker.client("observer")
    observer.on_messages(published.extend)
    await observer.connect()
    await observer.subscribe(*topics)
    yield broker, published
    await observer.close()


@asynccontextmanager
async def base_site(folder: Path) -> AsyncIterator[Victim]:
    """A base site with its journal on disk; afterwards it starts again from that."""
    async with observed(TOPICS.output("probe"), TOPICS.state("base")) as (broker, published):
        settings = settings_for(folder, "base", role="base")
        finished: list[Exception] = []
        with SiteDirectory(Path(settings.data_dir)) as directory:
            site = Gateway(settings, directory, 1, lambda will: broker.client("base", will=will))
            site._finish = finished.append  # type: ignore[method-assign,assignment]
            job = asyncio.create_task(site.run())
            hear = site.host._on_messages
            await asyncio.sleep(0)

            def probe() -> bool:
                """Whether a query that is installed now reads what comes now."""
                answered = [m for m in published if m.topic == TOPICS.output("probe", "base")]
                hear(
                    [Message(TOPICS.fragment("probe", "base"), encode_packed(collecting("probe")))]
                )
                record = SenmlRecord(n="celsius", bn="t1:", bt=time.time(), v=20.0)
                pack = ObservationPack(1, len(published), (record,))
                hear([Message(TOPICS.observation("gw-9", "temperature"), encode_json(pack))])
                return bool(answered)

            hear([Message(TOPICS.fragment("q1", "base"), encode_packed(collecting("q1")))])
            yield Victim(
                hear,
                lambda: not job.done() or bool(job.result()),
                probe,
                published,
                site.host.dead_letters,
                lambda: site.host.defects.count,
            )
            job.cancel()
            with suppress(asyncio.CancelledError):
                await job
            again = Gateway(settings, directory, 2, lambda will: broker.client("base", will=will))
            restored = again.keeper.restore()
            assert not restored.cut
            assert not again.keeper.files.problem
            await again.keeper.stop()
            again.buffer.close()


@asynccontextmanager
async def coordinator(folder: Path) -> AsyncIterator[Victim]:
    """A coordinator with a running query."""
    async with observed("#") as (broker, published):
        settings = CoordinatorSettings(database=f"sqlite:///{folder / 'catalog.db'}")
        made = await open_coordinator(
            settings, lambda will: broker.client("coordinator", will=will), wall
        )
        await made.execute("CREATE SOURCE SeatSensor (mid TEXT, KEY (mid))")
        birth = Birth("gw-1", 1, 0, wall(), sources=("seatsensor",))
        for site in (birth, Birth("base", 1, 0, wall(), role=SiteRole.BASE)):
            made._receiver.on_messages([Message(TOPICS.birth(site.gateway), encode_json(site))])
        (result,) = await made.execute("SELECT mid FROM SeatSensor", name="q1")
        assert result.query is not None
        assert result.query.id == "q1"
        hear = made._receiver.on_messages
        asked: list[str] = []

        def probe() -> bool:
            """Whether it tells the time, and new sites are seen."""
            asked.append(f"ask{len(asked)}")
            name = f"gw-new-{len(asked)}"
            hear([Message(TOPICS.state(name), encode_json(SiteState(True, 1, wall())))])
            hear([Message(TOPICS.clock("gw-9"), encode_json(Command(id=asked[-1])))])
            told = any(m.topic == TOPICS.command("gw-9", "clock") for m in published)
            return told and any(info.site == name for info in made.sites())

        yield Victim(hear, lambda: True, probe, published, made._receiver._dead_letters)
        await made.close()


@asynccontextmanager
async def static_engine(folder: Path) -> AsyncIterator[Victim]:
    """A static engine that evaluates in this process."""
    async with observed("#") as (broker, published):
        settings = StaticSettings(
            broker="mqtt://unused",
            data_dir=str(folder / "data"),
            base_dir=str(folder),
            poll_seconds=0.05,
        )
        (folder / "rooms.csv").write_text("room,seats\nr1,2\n")
        will = Will(TOPICS.host_state("static"), encode_json(will_state(7)))
        store = TableStore(Locations(folder), folder / "data" / "snapshots", snapshots=False)
        engine = StaticEngine(
            settings,
            7,
            broker.client("static", will=will),
            store,
            lambda tables, _progress: LocalExecutor(tables),
        )
        job = asyncio.create_task(engine.run())
        await asyncio.sleep(0)

        def probe() -> bool:
            """Whether a query that is installed now gets the rows of a table defined now."""
            rooms = ROOMS.__class__(**{**_fields(ROOMS), "name": "probed"})
            plan = rooms.scan()
            fragment = Fragment("f1", Engine.STATIC, plan, ("static",), "f2", ("base",))
            bundle = FragmentBundle("probe", 1, (fragment,), ROOMS.schema)
            engine._on_messages(
                [
                    Message(TOPICS.tables("static"), encode_json(TableSet((rooms,)))),
                    Message(TOPICS.fragment("probe", "static"), encode_packed(bundle)),
                ]
            )
            sent = [m for m in published if m.topic == TOPICS.exchange("probe", "base", "static")]
            return any(decode_packed(m.payload, DeltaBatch).deltas for m in sent)

        yield Victim(
            engine._on_messages,
            lambda: not job.done() or bool(job.result()),
            probe,
            published,
            engine._dead_letters,
            lambda: engine._defects.count,
        )
        job.cancel()
        with suppress(asyncio.CancelledError):
            await job


def _fields(definition: SourceDefinition) -> dict[str, Any]:
    return {name: getattr(definition, name) for name in definition.__struct_fields__}


STATE = SiteState(True, 3, 1_700_000_000_000_000, connectors=())
PACK = ObservationPack(3, 1, (SenmlRecord(n="celsius", bn="t1:", bt=1.7e9, v=20.5),))
NUMBERED = msgspec.structs.replace(PACK, n=4, life=7)
WANTED = PacksWanted("temperature", 3, 1)
PUBLISHED = PacksPublished("temperature", 3, 1, 4)
ROW = WeightedRow(("m1", 2.0, 1_700_000_000_000_000), 1)
BATCH = DeltaBatch(1, 1, 0, "f0", (ROW,), reset=True, now=1_700_000_000_000_000)
COMMAND = Command("c1", "q1", "gw-1", {"version": 1, "watermark": 5, "port f0": 7})
SIMULATE = Command("c2", arguments={"source": "seatsensor", "mid": "m1", "weight": 1.0})
LINK = LinkMessage("a", "b", 1.0, {"rssi": -70, "up": True})
PROBLEM = QueryProblem("deployment_error", "no such table", "create it", 1, "gw-1")
BIRTH = Birth(
    "gw-1",
    3,
    0,
    1,
    sources=("seatsensor",),
    rooms=("r1",),
    current=(SourceRows("seatsensor", (("m1", 2.0, 5),)),),
)
CHANGE = TableChange("i1", 7, ROOMS, (("r2", 4),))

Service = Callable[[Path], AbstractAsyncContextManager[Victim]]
Case = tuple[Service, str, Any, bool, tuple[Any, ...]]
"""Service, topic, kind, whether it is packed, legal examples."""

CASES: tuple[Case, ...] = (
    (base_site, TOPICS.state("gw-1"), SiteState, False, (STATE,)),
    (base_site, TOPICS.state("base"), SiteState, False, (STATE,)),
    (base_site, TOPICS.settings("base"), SiteSettings, False, (SiteSettings(),)),
    *(
        (base_site, TOPICS.request("base", verb, "gw-1"), Command, False, (COMMAND,))
        for verb in ("resync", "forget", "other")
    ),
    (base_site, TOPICS.request("base", "packs", "gw-1"), PacksWanted, False, (WANTED,)),
    (base_site, TOPICS.request("base", "published", "gw-1"), PacksPublished, False, (PUBLISHED,)),
    *(
        (base_site, TOPICS.command("base", verb), Command, False, (COMMAND, SIMULATE))
        for verb in ("flow", "mark", "clock", "simulate", "ping", "other")
    ),
    (base_site, TOPICS.fragment("q1", "base"), FragmentBundle, True, (collecting("q1", 2),)),
    (base_site, TOPICS.exchange("q1", "base", "gw-1"), DeltaBatch, True, (BATCH,)),
    *(
        (base_site, topic, ObservationPack, False, (PACK, NUMBERED))
        for topic in (
            TOPICS.observation("gw-1", "temperature"),
            TOPICS.history("gw-1", "temperature"),
        )
    ),
    (base_site, TOPICS.observation("gw-1", "sys_stream"), SystemRows, False, ()),
    (base_site, OWN_LINK, LinkMessage, False, (LINK,)),
    (coordinator, TOPICS.state("gw-1"), SiteState, False, (STATE,)),
    (coordinator, TOPICS.host_state("static"), SiteState, False, (STATE,)),
    (coordinator, TOPICS.host_state("coordinator"), SiteState, False, (STATE,)),
    (coordinator, TOPICS.birth("gw-1"), Birth, False, (BIRTH,)),
    (coordinator, TOPICS.link("gw-1", "link", "a", "b"), LinkMessage, False, (LINK,)),
    (coordinator, TOPICS.output("q1", "base"), DeltaBatch, True, (BATCH,)),
    (coordinator, TOPICS.flow("q1", "gw-1"), FlowReport, True, (FlowReport(1, 1, {}, {"x": 1}),)),
    (coordinator, TOPICS.error("q1", "gw-1"), QueryProblem, False, (PROBLEM,)),
    (coordinator, TOPICS.clock("gw-1"), Command, False, (COMMAND,)),
    (coordinator, TOPICS.request("coordinator", "resync", "gw-1"), Command, False, (COMMAND,)),
    (coordinator, TOPICS.response("static", "i1"), TableChanged, True, (TableChanged("i1"),)),
    (static_engine, TOPICS.tables("static"), TableSet, False, (TableSet((ROOMS,)),)),
    (static_engine, TOPICS.reports("static"), ReportRequest, False, (ReportRequest(),)),
    (static_engine, TOPICS.host_state("static"), SiteState, False, (STATE,)),
    (static_engine, TOPICS.fragment("q1", "static"), FragmentBundle, True, (stored("q1", 2),)),
    (static_engine, TOPICS.command("static", "change"), TableChange, True, (CHANGE,)),
    *(
        (static_engine, TOPICS.command("static", verb), Command, False, (COMMAND,))
        for verb in ("flow", "refresh", "other")
    ),
    (static_engine, TOPICS.request("static", "resync", "base"), Command, False, (COMMAND,)),
)


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{c[0].__name__} {c[1].removeprefix(TOPICS.root + '/')}" for c in CASES]
)
def test_no_message_ends_a_service(
    case: Case, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service, topic, kind, packed, legal = case
    hostile = HostilePayloads(kind, 1, packed=packed, legal=legal, words=WORDS)

    async def scenario() -> tuple[int, int]:
        async with service(tmp_path) as victim:
            for number, payload in enumerate(hostile.payloads(COUNT)):
                victim.hear([Message(topic, payload, retain=number % 3 == 0)])
                if number % 20 == 0:
                    victim.published.clear()
                    await asyncio.sleep(0)
            victim.published.clear()
            await victim.until_answered()
            return victim.dead_letters.count, victim.defects()

    with caplog.at_level(logging.ERROR):
        refused, defects = asyncio.run(scenario())
    assert refused > COUNT // 10 or topic == OWN_LINK, "they are hostile"
    assert not defects
    assert not [r.getMessage() for r in caplog.records if "defect" in r.getMessage()]


@pytest.mark.parametrize("service", [base_site, coordinator, static_engine])
def test_no_topic_ends_a_service(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(service.__name__)
    known = [case[1] for case in CASES]
    levels = (*WORDS, "", "gw", "q", "x", "cmd", "\n", "ä" * 200, "$SYS")

    def topic() -> str:
        parts = rng.choice(known).split("/")
        for _ in range(rng.randint(0, 3)):
            parts[rng.randrange(len(parts))] = rng.choice(levels)
        return "/".join(parts[: rng.choice((len(parts), rng.randint(0, 9)))])

    async def scenario() -> int:
        async with service(tmp_path) as victim:
            for number in range(COUNT):
                payload = rng.choice((b"", b"{}", b"\x80", b"null", encode_json(STATE)))
                victim.hear([Message(topic(), payload, retain=number % 3 == 0)])
                if number % 20 == 0:
                    await asyncio.sleep(0)
            victim.published.clear()
            await victim.until_answered()
            return victim.defects()

    with caplog.at_level(logging.ERROR):
        assert not asyncio.run(scenario())
    assert not [r.getMessage() for r in caplog.records if "defect" in r.getMessage()]
