"""When snapshots are taken, what is said after a restart, and who is given up."""

import asyncio
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Self

import pytest

from gateway.gateway_settings import SnapshotSettings
from gateway.state.state_keeper import StateKeeper
from gateway.state.state_losses import MAX_GAPS, Loss, merged, sentence
from stream_engine.site.step_result import Forget
from stream_engine.snapshot.query_state import memory_of
from stream_engine.snapshot.recorded_site import RecordedSite
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
from streamsql.wire.channel_protocol import SendingChannel
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
        self.told = 0
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
            hears=self.site.readers if self.hears else None,
            elapsed=lambda: self.now,
            told=self._count_told,
        )
        self.restored = self.keeper.restore()

    def _count_told(self) -> None:
        self.told += 1

    @classmethod
    def hearing(cls, folder: Path, plan: Plan = LOG) -> Self:
        """Return a base that hears observations and has lived with a query for a second."""
        world = cls(folder)
        world.hears = True
        world.install(plan)
        world.live()
        return world

    def install(self, plan: Plan = LOG) -> None:
        counted = Aggregate(plan, (), COUNT)
        fragment = Fragment("f", Engine.GATEWAY, counted, ("here",))
        self.site.install(FragmentBundle("q", 1, (fragment,), counted.schema))

    def live(self, *, connected: bool = True, seconds: float = 1.0) -> None:
        self.now += seconds
        self.site.ingest("log", [SourceEvent(("a",), int(self.now * SECOND))])
        self.site.step(int(self.now * SECOND))
        self.keeper.stepped(connected=connected)

    def lost(self, *, newest: int | None = None, origin: str = "") -> Loss:
        """A loss that another site has published, until now."""
        until = int(self.now * SECOND)
        reason = f"it was lost {origin}"
        return Loss(101 * SECOND, until, reason, heard=True, newest=newest, origin=origin)

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
        assert "to 1970-01-01 00:02:04.000 UTC: " in problem.message
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
        world = World.hearing(tmp_path, Window(LOG, WindowKind.RANGE, 60 * SECOND))
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


def stretch(since: int, until: int) -> str:
    """Return how a stretch of the second and third minute of 1970 is named."""
    a, b = (f"1970-01-01 00:{at // 60:02d}:{at % 60:02d}.000 UTC" for at in (since, until))
    return f"from {a} to {b}"


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_all_gaps_are_named_and_each_until_its_window_has_passed(
    tmp_path: Path, *, clean: bool
) -> None:
    """It is told of its absence a second after the broker is there: two seconds after the start."""

    async def scenario() -> None:
        world = World.hearing(tmp_path, Window(LOG, WindowKind.RANGE, 60 * SECOND))
        for away in (5, 7, 8):
            await world.written()
            if clean:
                await world.keeper.stop()
            world.now += away
            world.begin()
            for _ in range(4):
                world.live()
        assert gaps(world) == [stretch(101, 108), stretch(110, 119), stretch(121, 131)]
        world.live(seconds=40)
        assert gaps(world) == [stretch(110, 119), stretch(121, 131)], "108 has left the window"
        world.live(seconds=10)
        assert gaps(world) == [stretch(121, 131)]
        world.live(seconds=10)
        assert world.said[-1] == ("q", None)
        await world.written()
        await world.keeper.stop()
        world.hears = False
        world.begin()
        assert world.keeper.losses.saved() == b"", "what is over is not said again"

    asyncio.run(scenario())


def counted(*partition: int) -> Window:
    return Window(LOG, WindowKind.ROWS, 3, partition=partition)


@pytest.mark.parametrize(("window", "ends"), [(counted(), True), (counted(0), False)])
def test_a_gap_in_a_window_by_count_ends_when_it_is_full_of_later_rows(
    tmp_path: Path, window: Window, *, ends: bool
) -> None:
    """Where each partition has its own, one may be lost of which nothing else has come."""

    async def scenario() -> None:
        world = World(tmp_path)
        world.install(window)
        for _ in range(3):
            world.live()
        world.keeper.missed(["q"], world.lost(newest=104 * SECOND))
        assert world.keeper.is_untold("q")
        for _ in range(3):  # until 106
            world.live()
            assert world.said[-1][1] is not None
            assert not world.keeper.is_untold("q")
        world.live(seconds=0.5)
        world.live(seconds=10)
        assert (world.said[-1] == ("q", None)) is ends
        await world.written()

    asyncio.run(scenario())


def test_a_gap_of_unknown_event_times_stays_in_a_window_by_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        world.install(counted())
        world.live()
        world.live()
        world.keeper.missed(["q"], world.lost())
        for _ in range(10):
            world.live(seconds=30)
        assert world.said[-1][1] is not None
        await world.written()

    asyncio.run(scenario())


def test_a_loss_that_is_withdrawn_is_over_and_others_stay(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        world.install(counted())
        world.live()
        world.keeper.missed(["q"], world.lost(origin="gw-1 log"))
        world.keeper.missed(["q"], world.lost(origin="gw-2 log"))
        world.live()
        assert world.said[-1][1] is not None
        world.keeper.withdraw("gw-1 log")
        world.live()
        assert world.said[-1][1] is not None
        world.keeper.withdraw("gw-2 log")
        world.live()
        assert world.said[-1] == ("q", None)
        await world.written()

    asyncio.run(scenario())


def test_a_lost_reading_of_a_keyed_stream_may_stand_for_ever() -> None:
    """The next of the same key would take its place, but need not come."""
    keyed = Scan("log", SourceKind.STREAM, LOG.schema, key=(0,))
    assert memory_of(whole(keyed), "here") == 0
    assert memory_of(whole(keyed), "here", heard=True) is None
    lasting = Scan("log", SourceKind.STREAM, LOG.schema, key=(0,), ttl=7)
    assert memory_of(whole(lasting), "here", heard=True) == 7


def whole(plan: Plan) -> FragmentBundle:
    return FragmentBundle("q", 1, (Fragment("f", Engine.BASE, plan, ("here",)),), plan.schema)


def gaps(world: World) -> list[str]:
    """Return the gaps that were named last."""
    query, problem = world.said[-1]
    assert (query, problem is not None) == ("q", True)
    assert problem is not None
    return re.findall(r"from [-0-9:. ]+ UTC to [-0-9:. ]+ UTC", problem.message)


@pytest.mark.parametrize("damaged", [True, False])
def test_a_gap_that_nobody_was_told_of_yet_is_told_by_the_next_life(
    tmp_path: Path, *, damaged: bool
) -> None:
    async def scenario() -> None:
        world = World.hearing(tmp_path, Window(LOG, WindowKind.RANGE, 60 * SECOND))
        await world.written()
        world.now += 5
        world.begin()
        world.live(connected=False)  # killed before the broker was there
        await world.written()
        if damaged:
            (tmp_path / "state" / "losses.json").write_bytes(b"{")
        world.now += 5
        world.begin()
        world.live()
        world.live()
        _query, problem = world.said[-1]
        assert problem is not None
        if damaged:
            assert "from the beginning" in problem.message
            assert "is damaged" in problem.message
        else:
            assert gaps(world) == [stretch(101, 114)]
        await world.written()

    asyncio.run(scenario())


def test_of_very_many_gaps_the_nearest_are_named_together() -> None:
    losses = merged([Loss(100 * n + n % 2, 100 * n + 50, "away") for n in range(20)])
    assert len(losses) == MAX_GAPS
    assert sum(loss.gaps for loss in losses) == 20
    assert (losses[0].since, losses[-1].until) == (0, 1950)
    assert all(a.until < b.start for a, b in pairwise(losses))
    assert "gaps)" in sentence(losses)


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


def test_a_query_is_not_finished_before_it_is_said_what_a_restart_has_lost(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        world = World.hearing(tmp_path)
        await world.keeper.stop()
        world.now += 20
        world.begin()
        assert world.keeper.is_untold("q")
        assert not world.keeper.is_untold("another")
        world.live(seconds=0.1)
        assert world.keeper.is_untold("q")
        assert (world.said, world.told) == ([], 0)
        world.live(seconds=2)
        assert [query for query, problem in world.said if problem is not None] == ["q"]
        assert not world.keeper.is_untold("q")
        assert world.told == 1
        world.live(seconds=20)
        assert world.told == 1

    asyncio.run(scenario())
