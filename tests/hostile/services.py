"""Services that hear hostile messages, and how to see whether they still work."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.contract.trial_model import TrialInfo
from federated_optimizer.coordinator.coordinator_service import open_coordinator
from federated_optimizer.coordinator.system.message_receiver import Receiver
from federated_optimizer.coordinator.trials.source_trials import _Kept
from gateway.runtime import Gateway
from gateway.testing import SEATS, TEMPERATURES, settings_for
from host.files.site_directory import SiteDirectory
from host.mqtt import Message, Will
from host.mqtt.dead_letters import DeadLetters
from host.mqtt.in_memory import InMemoryBroker
from static_engine.care.workers import CurrentWorkers
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.service.engine_reports import will_state
from static_engine.service.lake_service import LakeService
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
    ObservationPack,
    SenmlRecord,
    TableSet,
)
from streamsql.wire.site_messages import Birth, SiteRole, SiteState
from streamsql.wire.topics import Topics
from tests.static_engine.care.test_compaction import filled

TOPICS = Topics("demo")
LAKE_ANSWER = "lake1"
TRIAL = "trial1"
ROOMS = SourceDefinition(
    "rooms",
    SourceKind.TABLE,
    Schema.of(("room", DataType.TEXT), ("seats", DataType.INTEGER)),
    options=(("source", "csv"), ("path", "rooms.csv")),
)


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
        _await_answers(made._receiver)
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


def _await_answers(receiver: Receiver) -> None:
    """Have it wait for the answers `LAKE_ANSWER` and `TRIAL`, whatever has come."""
    receiver._lake._answers._waiting[LAKE_ANSWER] = asyncio.get_running_loop().create_future()
    tried = _Kept(TrialInfo(TRIAL, "gw-1", Schema(())), None, "e", math.inf)
    receiver._trials._kept[TRIAL] = tried
    receiver._trials.waits_for = lambda site, trial_id: (site, trial_id) == ("gw-1", TRIAL)  # type: ignore[method-assign]


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
        client = broker.client("static", will=will)
        (folder / "lake").mkdir()
        lake = LakeService(
            client,
            TOPICS,
            "static",
            7,
            lake=filled(folder / "lake"),
            workers=CurrentWorkers(None),
            exports=folder / "exports",
        )
        engine = StaticEngine(
            settings,
            7,
            client,
            store,
            lambda tables, _progress: LocalExecutor(tables),
            lake=lake,
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
        lake.stop()


def _fields(definition: SourceDefinition) -> dict[str, Any]:
    return {name: getattr(definition, name) for name in definition.__struct_fields__}
