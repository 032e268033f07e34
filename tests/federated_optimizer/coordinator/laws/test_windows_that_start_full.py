"""A query's windows begin with what the lake has of the last days, and go on live."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.site import window_fills
from host.mqtt.in_memory import InMemoryClient
from static_engine.filling.fill_requests import FillRequests
from static_engine.filling.lake_pieces import LakePieces
from static_engine.lake.lake import Lake
from streamsql.data.events import SourceEvent
from streamsql.wire.codec import encode_json
from streamsql.wire.fill_messages import Cut
from streamsql.wire.site_messages import SiteRole, SiteState
from tests.federated_optimizer.coordinator.conftest import SCHEMA, definitions, wall
from tests.static_engine.lake.lake_rows import keep, lake_in

DAY = 86_400_000_000
WEEK = "SELECT rid, COUNT(*) AS n FROM Temperature [RANGE 7 DAYS] GROUP BY rid"


class Filler:
    """The part of a static engine that fills windows."""

    def __init__(self, federation: Any, lake: Lake | None) -> None:
        self.topics = federation.topics
        self.client: InMemoryClient = federation.broker.client("static")
        pieces = None if lake is None else LakePieces(lake)
        self.requests = FillRequests(self.client, self.topics, pieces)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Answer, and say so."""
        await self.client.connect()
        self.client.on_messages(self._take)
        await self.client.subscribe(self.topics.fill_request(scope="+"))
        state = SiteState(online=True, epoch=1, ts=wall(), role=SiteRole.STATIC, fills=True)
        self.client.publish(self.topics.host_state("static"), encode_json(state), retain=True)
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Be gone."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.client.close()

    def _take(self, messages: list[Any]) -> None:
        for message in messages:
            *_rest, scope, sender = message.topic.split("/")
            self.requests.take(sender, message.payload, is_base=scope == "all")

    async def _work(self) -> None:
        async def run(work: Callable[[], Any]) -> Any:
            return await asyncio.to_thread(work)

        while True:
            await self.requests.work(run)
            await asyncio.sleep(0.01)


def week(folder: Path, hours: int = 7 * 24 + 50) -> Lake:
    """Return a lake in which room r1 was measured every hour, for more than a week."""
    lake = lake_in(folder)
    now = wall()
    hour = DAY // 24
    past = [SourceEvent(("r1", float(n % 30)), now - n * hour - hour // 2) for n in range(hours)]
    keep(lake, definitions(SCHEMA)["temperature"], past, gateway="gw-1", epoch=0)
    return lake


async def started(federation: Any) -> Any:
    """Start a base, a gateway whose packs of this epoch come by themselves, and a coordinator."""
    await federation.site("base", SiteRole.BASE)
    site = await federation.site("gw-1")
    site.host.fills.cut = lambda _source: Cut(1, 0)
    return await federation.coordinator(define_schema=True)


def test_a_week_is_there_at_once_and_goes_on_live(harness: Any, tmp_path: Path) -> None:
    lake = week(tmp_path / "lake")

    async def scenario(federation: Any) -> None:
        made = await started(federation)
        filler = Filler(federation, lake)
        await filler.start()
        await harness.until(lambda: made._shared.membership.fills_windows)
        site = federation.sites["gw-1"]
        site.put("temperature", ("r1", 21.0))
        query = await harness.start_query(made, WEEK)
        await harness.until_rows(made, query, [("r1", 7 * 24)])
        site.put("temperature", ("r1", 22.0), ("r2", 22.0))
        await harness.until_rows(made, query, [("r1", 7 * 24 + 1), ("r2", 1)])
        await harness.until(lambda: made._queries.find(query).is_settled())
        empty = await harness.start_query(made, f"{WEEK} WITH (backfill = 'no')")
        await harness.until(lambda: site.engine.runs(empty))
        site.put("temperature", ("r2", 23.0))
        await harness.until_rows(made, empty, [("r2", 1)])
        await filler.stop()

    harness.run(scenario)


def test_windows_over_all_gateways_begin_full_too(
    harness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_fills, "SETTLE_SECONDS", 0.1)
    lake = week(tmp_path / "lake", hours=10)

    async def scenario(federation: Any) -> None:
        made = await started(federation)
        filler = Filler(federation, lake)
        await filler.start()
        await harness.until(lambda: made._shared.membership.fills_windows)
        query = await harness.start_query(made, "SELECT rid, celsius FROM Temperature [ROWS 4]")
        await harness.until_rows(made, query, [("r1", float(n)) for n in range(4)])
        await filler.stop()

    harness.run(scenario)


def test_without_the_static_engine_a_query_runs_and_is_filled_later(
    harness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_fills, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(window_fills, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(window_fills, "LONGEST_PAUSE", 0.5)
    lake = week(tmp_path / "lake", hours=10)

    async def scenario(federation: Any) -> None:
        made = await started(federation)
        filler = Filler(federation, lake)
        await filler.start()
        await harness.until(lambda: made._shared.membership.fills_windows)
        await filler.stop()
        query = await harness.start_query(made, WEEK)
        site = federation.sites["gw-1"]
        await harness.until(lambda: site.engine.runs(query))
        site.put("temperature", ("r1", 21.0))
        await harness.until_rows(made, query, [("r1", 1)])
        await harness.until(lambda: "does not answer" in made.query(query).error)
        again = Filler(federation, lake)
        await again.start()
        await harness.until_rows(made, query, [("r1", 11)])
        await harness.until(lambda: not made.query(query).error)
        await again.stop()

    harness.run(scenario)
