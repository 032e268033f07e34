"""The real lake as trials read it."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deploy.console import open_history
from deploy.history.engine_runner import EngineRunner
from deploy.history.happenings import Presence
from deploy.history.lake_happenings import KeptSource
from deploy.history.lake_past import LakePast, presences_of
from deploy.history.opened_past import OpenedPast
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryChanges,
    HistoryEnd,
    HistoryMessage,
)
from host.heartbeats import TRUST_SECONDS
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.message_tables import MESSAGE_SCHEMA, SystemTable, ensure_system
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.errors import DeploymentError
from streamsql.wire.codec import encode_json
from streamsql.wire.site_messages import SiteRole, SiteState
from tests.deploy.history.past import SECOND, catalog
from tests.deploy.history.test_order_run import order
from tests.static_engine.lake.lake_rows import keep, lake_in
from ui.console_settings import ConsoleSettings

HOUR = 3_600 * SECOND


def test_a_trial_reads_the_lake_in_a_process_of_its_own(tmp_path: Path) -> None:
    known = catalog()
    noise = known.find("noise")
    assert isinstance(noise, SourceDefinition)
    lake = lake_in(tmp_path)
    keep(lake, noise, [SourceEvent(("a", n), n * 60 * SECOND) for n in range(200)])
    trial = order(
        "SELECT COUNT(*) AS n FROM noise [RANGE 1 HOURS]",
        known,
        "noise",
        since=2 * HOUR,
        until=3 * HOUR,
    )
    place = LakeSettings(f"sqlite:///{tmp_path / 'catalog.db'}", str(tmp_path / "lake"))

    async def run() -> list[HistoryMessage]:
        async with asyncio.timeout(60):
            return [message async for message in EngineRunner(OpenedPast(place)).run(trial)]

    messages = asyncio.run(run())
    assert messages[-1] == HistoryEnd()
    changes = [message for message in messages if isinstance(message, HistoryChanges)]
    assert changes[0] == HistoryChanges(2 * HOUR, ((1, (60,)),))


def test_columns_of_former_definitions_are_null(tmp_path: Path) -> None:
    before = catalog("CREATE SOURCE noise (room TEXT)").find("noise")
    after = catalog("CREATE SOURCE noise (room TEXT, level INTEGER, at TIMESTAMP)").find("noise")
    assert isinstance(before, SourceDefinition)
    assert isinstance(after, SourceDefinition)
    lake = lake_in(tmp_path)
    first = keep(lake, before, [SourceEvent(("a",), 5 * SECOND)])
    keep(lake, after, [SourceEvent(("b", 2, 7), 6 * SECOND)], first=first)
    past = LakePast(lake, {"noise": after})
    found = list(KeptSource(past, after, direct=True).readings(0, HOUR))
    assert [event for readings in found for event in readings.events] == [
        SourceEvent(("a", None, None), 5 * SECOND),
        SourceEvent(("b", 2, 7), 6 * SECOND),
    ]


def test_a_lake_that_cannot_be_opened_ends_the_trial_with_the_reason(tmp_path: Path) -> None:
    known = catalog()
    trial = order("SELECT room FROM noise [ROWS 1]", known, "noise", since=0, until=HOUR)
    place = LakeSettings(f"sqlite:///{tmp_path / 'no' / 'catalog.db'}", str(tmp_path))

    async def last() -> HistoryMessage:
        async with asyncio.timeout(60):
            return [message async for message in EngineRunner(OpenedPast(place)).run(trial)][-1]

    end = asyncio.run(last())
    assert isinstance(end, HistoryEnd)
    assert "cannot open the lake's catalog" in end.problem


@pytest.mark.parametrize("name", ["catalog", "warehouse"])
def test_settings_of_a_lake_without_a_place_are_refused(name: str) -> None:
    lake = {"catalog": "sqlite:///catalog.db", "warehouse": "lake"}
    del lake[name]
    with pytest.raises(DeploymentError, match="setting lake"):
        open_history(ConsoleSettings("mqtt://localhost", "data", lake=lake))


def test_a_gateway_is_away_from_its_will_or_its_silence_on() -> None:
    def state(at: int, *, online: bool = True, site: str = "gw-1") -> tuple[int, str, SiteState]:
        role = SiteRole.BASE if site == "base" else SiteRole.GATEWAY
        return (at * SECOND, site, SiteState(online, 1, at * SECOND, role))

    told = [
        state(0),
        state(10),
        state(14, online=False),
        state(40),
        state(45, site="base"),
        state(50),
        state(110),  # its will was lost
    ]
    left = [(p.at // SECOND, p.online) for p in presences_of(told)]
    silence = int(TRUST_SECONDS)
    assert left == [
        (0, True),
        (10, True),
        (14, False),
        (40, True),
        (50, True),
        (50 + silence, False),
        (110, True),
    ]


def test_states_are_read_from_the_lake(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    assert LakePast(lake, {}).presences(0, HOUR) == []
    table = ensure_system(lake, SystemTable.STATES)
    payloads = [
        encode_json(SiteState(online=online, epoch=1, ts=at))
        for at, online in ((5, True), (9, False))
    ]
    rows = pa.table(
        {
            "site": ["gw-1", "gw-1", "gw-1"],
            "topic": ["t"] * 3,
            "payload": [*payloads, b"no state"],
            "reason": pa.nulls(3, pa.string()),
            "digest": [b"1", b"2", b"3"],
            "_arrived": pa.array([5, 9, 11], pa.int64()).cast(pa.timestamp("us", "UTC")),
        },
        schema=MESSAGE_SCHEMA,
    )
    pq.write_table(rows, tmp_path / "states.parquet")
    assert lake.commit(table, [(tmp_path / "states.parquet").as_uri()], 0, "test")
    assert LakePast(lake, {}).presences(0, HOUR) == [
        Presence(5, "gw-1", online=True),
        Presence(9, "gw-1", online=False),
    ]
