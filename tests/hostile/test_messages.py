"""No message ends a service, whatever is in it, and none meets a defect.

`PANDO_HOSTILE_MESSAGES` is how many each topic gets: 10**6 for the full run.
"""

import asyncio
import logging
import os
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from host.mqtt import Message
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refresh_times import RefreshSchedule
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.mapping.source_mapping import ColumnMapping, SourceMapping
from streamsql.wire.codec import encode_json, encode_packed
from streamsql.wire.fill_messages import FillColumn, FillRow, FillRows, FillWanted
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import (
    Command,
    DeltaBatch,
    FlowReport,
    KeptSource,
    LinkMessage,
    ObservationPack,
    QueryProblem,
    SenmlRecord,
    SystemRows,
    TableSet,
    WeightedRow,
)
from streamsql.wire.observation_logs import Interest, PacksPublished, PacksWanted
from streamsql.wire.site_messages import (
    Birth,
    ColumnCount,
    SiteFlows,
    SiteState,
    SourceCount,
    SourceRows,
)
from streamsql.wire.site_settings import ReportRequest, SiteSettings
from streamsql.wire.source_orders import SourceOrder
from streamsql.wire.stored_tables.lake_messages import (
    ColumnFigures,
    JobState,
    LakeAnswer,
    LakeColumn,
    LakeJob,
    LakeRequest,
    LakeSample,
    LakeTable,
    LakeTask,
    TableFigures,
)
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder
from streamsql.wire.stored_tables.table_changes import TableChange, TableChanged
from streamsql.wire.trial_messages import SAMPLE, SourceTrial, TrialReport, TrialSample
from tests.hostile.payloads import HostilePayloads
from tests.hostile.services import (
    LAKE_ANSWER,
    ROOMS,
    TOPICS,
    TRIAL,
    Victim,
    base_site,
    collecting,
    coordinator,
    static_engine,
    stored,
)

COUNT = int(os.environ.get("PANDO_HOSTILE_MESSAGES", "1500"))
OWN_LINK = TOPICS.link("base", "link", "a", "b")
"""Where a site looks for what its former lives have left: nobody looks into the messages."""
WORDS = ("q1", "f0", "f1", "gw-2", "coordinator", "static", "out", "seatsensor", "room", "spec")


STATE = SiteState(True, 3, 1_700_000_000_000_000, connectors=())
PACK = ObservationPack(3, 1, (SenmlRecord(n="celsius", bn="t1:", bt=1.7e9, v=20.5),))
NUMBERED = msgspec.structs.replace(PACK, n=4, life=7)
WANTED = PacksWanted("temperature", 3, 1)
PUBLISHED = PacksPublished("temperature", 3, 1, 4)
ROW = WeightedRow(("m1", 2.0, 1_700_000_000_000_000), 1)
FLOWS = SiteFlows({name: FlowReport(1, 1, {}, {"x": 1}) for name in ("q1", "q2", "a/#")})
COLUMN = ColumnCount(b"\0\0\0\1", 1, 5, 1, 3, (1.0,) * 11, 2**60, 1e300)
COUNTED = SourceCount(20, 20, 9, {"celsius": COLUMN}, "temperature")
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
ORDER = SourceOrder(
    1,
    SourceDefinition(
        "heat",
        SourceKind.STREAM,
        Schema.of(("mid", DataType.TEXT), ("celsius", DataType.DOUBLE)),
        key=(0,),
        version=1,
        mapping=SourceMapping("mqtt", "lan", columns=(ColumnMapping("mid"), ColumnMapping("c"))),
    ),
)
TRIED = Command("c3", arguments={"trial": encode_json(SourceTrial((ORDER,))).decode()})
KEPT = KeptSource("heat", "30 days", "1 min", ("mid",))
BUSY = SourceDefinition(
    "busy",
    SourceKind.TABLE,
    ROOMS.schema,
    refresh=RefreshSchedule("SELECT room, seats FROM rooms", (840,)),
)
REFRESHED = encode_packed(RefreshOrder(BUSY, ROOMS.scan()))
TABLES = TableSet((ROOMS,), (REFRESHED,), (KEPT,))
FILL = FillWanted("f1", "q1", "heat", (FillColumn("celsius", DataType.DOUBLE),), "gw-1", 0)
FILLED = FillRows("f1", (("gw-1", 1, 1),), (FillRow(0, 5, ("m1", 2.0)),), (5, "gw-1", 1, 1, 0))
LAKE_REQUESTS = tuple(
    LakeRequest(f"r{number}", 7, task, "readings.heat", 0, 10**15)
    for number, task in enumerate(LakeTask)
)
LAKE_ANSWERED = LakeAnswer(
    LAKE_ANSWER,
    "file:///lake",
    "local",
    (LakeTable("readings", "heat", columns=(LakeColumn("mid", "string"),)),),
    jobs=(LakeJob("j1", "compact", "heat", JobState.RUNNING, 1, 2),),
    sample=LakeSample(("mid",), (("m1",),), series=("_from", "_count"), buckets=((0, 1),)),
    stored=(TableFigures("rooms", "csv", "rooms.csv", 3, 9, 5, 60.0, (LakeColumn("a", "TEXT"),)),),
    figures=(ColumnFigures("a", 1, 2, "x", "y", ("x", "y"), (1, 1)),),
)
REPORT = TrialReport(TRIAL, 1, (TrialSample(5, "heat", b"{}", 2, rows=(("m1", 2.0),)),))
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
        (base_site, TOPICS.command("base", verb), Command, False, (COMMAND, SIMULATE, TRIED))
        for verb in ("flow", "mark", "clock", "simulate", "ping", SAMPLE, "other")
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
    (base_site, TOPICS.fill("base"), FillRows, True, (FILLED,)),
    (base_site, TOPICS.interest("temperature"), Interest, False, (Interest(wanted=False),)),
    (base_site, TOPICS.source("heat"), SourceOrder, False, (ORDER,)),
    (base_site, TOPICS.observation("gw-1", "sys_stream"), SystemRows, False, ()),
    (base_site, OWN_LINK, LinkMessage, False, (LINK,)),
    (coordinator, TOPICS.state("gw-1"), SiteState, False, (STATE,)),
    (coordinator, TOPICS.host_state("static"), SiteState, False, (STATE,)),
    (coordinator, TOPICS.host_state("coordinator"), SiteState, False, (STATE,)),
    (coordinator, TOPICS.birth("gw-1"), Birth, False, (BIRTH,)),
    (coordinator, TOPICS.link("gw-1", "link", "a", "b"), LinkMessage, False, (LINK,)),
    (coordinator, TOPICS.output("q1", "base"), DeltaBatch, True, (BATCH,)),
    (coordinator, TOPICS.flow("gw-1"), SiteFlows, True, (FLOWS,)),
    (coordinator, TOPICS.columns("gw-1"), SourceCount, True, (COUNTED,)),
    (coordinator, TOPICS.error("q1", "gw-1"), QueryProblem, False, (PROBLEM,)),
    (coordinator, TOPICS.clock("gw-1"), Command, False, (COMMAND,)),
    (coordinator, TOPICS.request("coordinator", "resync", "gw-1"), Command, False, (COMMAND,)),
    (coordinator, TOPICS.response("static", "i1"), TableChanged, True, (TableChanged("i1"),)),
    (coordinator, TOPICS.response("static", LAKE_ANSWER), LakeAnswer, True, (LAKE_ANSWERED,)),
    (coordinator, TOPICS.response("gw-1", TRIAL), TrialReport, True, (REPORT,)),
    (static_engine, TOPICS.tables("static"), TableSet, False, (TABLES,)),
    (static_engine, TOPICS.reports("static"), ReportRequest, False, (ReportRequest(),)),
    (static_engine, TOPICS.host_state("static"), SiteState, False, (STATE,)),
    (static_engine, TOPICS.fragment("q1", "static"), FragmentBundle, True, (stored("q1", 2),)),
    (static_engine, TOPICS.command("static", "change"), TableChange, True, (CHANGE,)),
    (static_engine, TOPICS.command("static", "lake"), LakeRequest, True, LAKE_REQUESTS),
    *(
        (static_engine, TOPICS.fill_request("static", "gw-1", scope), FillWanted, True, (FILL,))
        for scope in ("own", "all")
    ),
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
