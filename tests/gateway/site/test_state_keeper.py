"""When snapshots are taken, what is said after a restart, and who is given up."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.settings import SnapshotSettings
from gateway.site.state_keeper import StateKeeper
from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.step_result import Forget
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Plan,
    RemoteSource,
    Scan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.channels import SendingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import QueryProblem

SECOND = 1_000_000
LOG = Scan("log", SourceKind.STREAM, Schema.of(("k", DataType.TEXT)))
COUNT = (AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),)


OPEN: list["World"] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().keeper.files.close()


class World:
    """A disk, a clock, and one life of a site after another."""

    def __init__(self, folder: Path, **changes: float) -> None:
        self.folder = folder
        self.settings = SnapshotSettings(**changes)  # type: ignore[arg-type]
        self.now = 100.0
        self.hears = False
        self.said: list[tuple[str, QueryProblem | None]] = []
        self.begin()

    def begin(self) -> None:
        if self in OPEN:
            self.keeper.files.close()  # type: ignore[has-type]
        else:
            OPEN.append(self)
        self.site = RecordedSite("here", 1)
        self.site.declare(LOG)
        self.keeper = StateKeeper(
            self.site,
            self.folder / "state",
            self.settings,
            lambda: int(self.now * SECOND),
            host_state=lambda: {"x": 1},
            say=lambda query, problem: self.said.append((query, problem)),
            hears=self.hears,
            elapsed=lambda: self.now,
        )
        self.restored = self.keeper.restore()

    def install(self, plan: Plan = LOG) -> None:
        counted = Aggregate(plan, (), COUNT)
        fragment = Fragment("f", Engine.GATEWAY, counted, ("here",))
        self.site.install(FragmentBundle("q", 1, (fragment,), counted.schema))

    def live(self, *, connected: bool = True, seconds: float = 1.0) -> None:
        self.now += seconds
        self.site.ingest("log", [SourceEvent(("a",), int(self.now * SECOND))])
        self.site.step(int(self.now * SECOND))
        self.keeper.stepped(connected=connected)

    async def written(self) -> None:
        if self.keeper._writing is not None:
            await self.keeper._writing

    @property
    def snapshot(self) -> Path:
        return self.folder / "state" / "snapshot"

    def count(self) -> int:
        """What the query counts now."""
        self.site.resync("q", "")
        done = self.site.step(int(self.now * SECOND))
        (batch,) = [o.batch for o in done.outgoing if o.query == "q"]
        (row,) = batch.deltas
        return int(str(row.row[0]))


def test_snapshots_are_periodic_and_nothing_is_written_where_nothing_happened(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, seconds=10.0)
        world.install()
        world.live()
        await world.written()
        first = world.snapshot.stat().st_mtime_ns
        for _ in range(8):
            world.live()
        await world.written()
        assert world.snapshot.stat().st_mtime_ns == first
        world.live(seconds=5)
        await world.written()
        second = world.snapshot.stat().st_mtime_ns
        assert second > first
        world.now += 60
        world.site.step(int(world.now * SECOND))
        world.keeper.stepped(connected=True)
        assert world.keeper._writing is None
        assert world.snapshot.stat().st_mtime_ns == second
        world.begin()
        assert world.count() == 10

    asyncio.run(scenario())


def test_a_clean_stop_saves_what_came_last(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        world.install()
        world.live()
        world.site.ingest("log", [SourceEvent(("b",), 5)])  # not stepped any more
        await world.keeper.stop()
        world.begin()
        assert (world.restored.host, world.restored.notes) == ({"x": 1}, [])
        assert world.count() == 2

    asyncio.run(scenario())


def test_a_cut_journal_names_the_time_that_is_missing_until_the_window_has_passed(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, max_bytes=10_000, seconds=5000)
        world.install(Window(LOG, WindowKind.RANGE, 60 * SECOND))
        world.live()
        await world.written()
        world.keeper.files.max_bytes = world.keeper.files.journal_bytes + 200
        world.keeper._earliest = float("inf")  # the disk is too slow for another snapshot
        for _ in range(20):
            world.live()
        assert "max_bytes" in world.keeper.problem
        world.now += 3
        world.begin()
        world.live()
        assert world.said == []  # not before the site has announced itself
        world.live()
        world.live()
        query, problem = world.said[-1]
        assert problem is not None
        assert (query, problem.code) == ("q", "state_lost")
        assert "to 1970-01-01 00:02:04.000 UTC is missing in the answer" in problem.message
        assert "was cut" in problem.message
        world.live(seconds=70)
        assert world.said[-1] == ("q", None)
        await world.written()

    asyncio.run(scenario())


def test_a_site_that_does_not_come_back_is_given_up_and_one_that_does_is_not(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        plan = RemoteSource("f0", LOG.columns)
        fragments = (
            Fragment("f0", Engine.GATEWAY, LOG, ("there", "gone", "here"), "f1", ("here",)),
            Fragment("f1", Engine.BASE, plan, ("here",)),
        )
        world.site.install(FragmentBundle("q", 1, fragments, plan.schema))
        senders = {name: SendingChannel(version=1, epoch=3) for name in ("there", "gone")}
        for name, sender in senders.items():
            list(sender.push("f0", {(name,): 1}, now=0))
            for batch in sender.snapshot(now=0):
                world.site.receive("q", name, batch)
        world.live()
        await world.keeper.stop()
        world.begin()
        for batch in senders["there"].snapshot(now=0):
            world.site.receive("q", "there", batch)
        world.live()
        world.live(seconds=30)
        done = world.site.step(int(world.now * SECOND) + 1)
        lost = [row for out in done.outgoing for row in out.batch.deltas]
        assert [(row.row, row.weight) for row in lost] == [(("gone",), -1)]
        await world.written()

    asyncio.run(scenario())


def test_a_base_site_names_the_time_in_which_it_heard_no_observations(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        world.hears = True
        world.install(Window(LOG, WindowKind.RANGE, 60 * SECOND))
        world.live()
        await world.keeper.stop()
        world.now += 5
        world.begin()
        world.live()
        world.live()
        query, problem = world.said[-1]
        assert problem is not None
        assert query == "q"
        assert "from 1970-01-01 00:01:41.000 UTC to 1970-01-01 00:01:48.000" in problem.message
        world.live(seconds=70)
        assert world.said[-1] == ("q", None)
        await world.written()

    asyncio.run(scenario())


def test_nothing_is_kept_where_nothing_is_to_be_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, keep=False)
        world.install()
        world.live()
        await world.keeper.stop()
        assert not (tmp_path / "state").exists()

    asyncio.run(scenario())


@pytest.mark.parametrize("arrives", [True, False])
def test_senders_are_told_what_was_known_when_the_snapshot_on_disk_was_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, arrives: bool
) -> None:
    """Not what is known when it has been written, and nothing if it was not."""

    async def scenario() -> None:
        world = World(tmp_path, seconds=10.0)
        world.install()
        told: list[list[Forget]] = []
        monkeypatch.setattr(
            world.site, "forgettable", lambda: [Forget("q", "gw", 1, int(world.now), {})]
        )
        monkeypatch.setattr(world.site, "kept", lambda forgets: told.append(list(forgets)))
        if not arrives:
            monkeypatch.setattr(world.keeper.files, "save", lambda *_taken: False)
        world.live()
        assert world.keeper._writing is not None
        world.live()  # while it is being written
        assert told == []
        await world.written()
        assert told == ([[Forget("q", "gw", 1, 101, {})]] if arrives else [])

    asyncio.run(scenario())


def test_a_state_that_could_not_be_written_is_written_later_though_nothing_has_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        world = World(tmp_path, seconds=10.0)
        world.install()
        with monkeypatch.context() as patch:
            patch.setattr(world.keeper.files, "save", lambda *_taken: False)
            world.live()
            await world.written()
        assert not world.snapshot.exists()
        world.now += 60
        world.keeper.stepped(connected=True)
        await world.written()
        assert world.snapshot.exists()

    asyncio.run(scenario())


def test_a_journal_that_is_half_full_is_ended_by_an_early_snapshot(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, max_bytes=10_000, seconds=5_000)
        world.install()
        world.live()
        await world.written()
        first = world.snapshot.stat().st_mtime_ns
        for _ in range(1_000):
            if world.keeper.files.wants_snapshot:
                break
            assert world.keeper._writing is None  # long before it is due
            world.site.ingest("log", [SourceEvent(("a",), int(world.now * SECOND))] * 20)
            world.live()
        world.live(seconds=100)
        await world.written()
        assert world.snapshot.stat().st_mtime_ns > first
        assert not world.keeper.files.wants_snapshot

    asyncio.run(scenario())
