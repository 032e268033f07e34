"""The real lake as trials read it."""

import asyncio
from pathlib import Path

import pytest

from deploy.console import open_history
from deploy.history.engine_runner import EngineRunner
from deploy.history.lake_happenings import KeptSource
from deploy.history.lake_past import LakePast
from deploy.history.opened_past import OpenedPast
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryChanges,
    HistoryEnd,
    HistoryMessage,
)
from static_engine.lake.lake_settings import LakeSettings
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.errors import DeploymentError
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
