"""Results: versions, emit modes, readers that are slow."""

import asyncio

import msgspec
import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Change, QueryStatus
from federated_optimizer.coordinator.queries.answers.results import QueryResult
from streamsql.algebra.operators import Plan, Scan, SourceKind, StreamKind, ToStream, Values
from streamsql.algebra.streams import Emit
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import WireError
from streamsql.wire.channel_protocol import Reception, SendingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SCHEMA = Schema.of(("a", DataType.TEXT))
A, B, C = ("a",), ("b",), ("c",)


def bundle(version: int = 1, emit: Emit = Emit.RELATION) -> FragmentBundle:
    plan: Plan = Scan("s", SourceKind.STREAM, SCHEMA)
    if emit == Emit.STREAM:
        plan = ToStream(StreamKind.ISTREAM, Values((), Schema.of()), (), (), (), "a")
    fragment = Fragment("f0", Engine.BASE, plan, ("base",))
    return FragmentBundle("q1", version, (fragment,), SCHEMA, emit=emit)


def result(
    emit: Emit = Emit.RELATION, *, recovered: bool = False, behind: int = 100
) -> QueryResult:
    return QueryResult(bundle(emit=emit), clock=lambda: 7, max_behind=behind, recovered=recovered)


class Sender:
    """The base site's end of the channel."""

    def __init__(self, version: int = 1, epoch: int = 1) -> None:
        self.channel = SendingChannel(version=version, epoch=epoch, ports=("f0",))

    def snapshot(self, target: QueryResult) -> list[Reception]:
        return [target.accept("base", b) for b in self.channel.snapshot(now=0)]

    def push(self, target: QueryResult, delta: Delta, ts: int | None = None) -> list[Reception]:
        return [target.accept("base", b) for b in self.channel.push("f0", delta, now=0, ts=ts)]


def signed(changes: tuple[Change, ...]) -> Delta:
    return {change.row: change.diff for change in changes}


def test_changes_sum_to_the_relation_and_carry_the_reading() -> None:
    async def scenario() -> None:
        shown, sender = result(), Sender()
        reader = shown.subscribe(lambda _: None, snapshot=True)
        sender.snapshot(shown)
        sender.push(shown, {A: 2, B: 1}, ts=3)
        first = await anext(reader)
        assert first.snapshot
        assert signed(first.changes) == {A: 2, B: 1}
        sender.push(shown, {A: -1, C: 1}, ts=5)
        second = await anext(reader)
        assert not second.snapshot
        assert second.changes == (Change(7, -1, A, 5), Change(7, 1, C, 5))
        assert shown.rows() == (A, B, C)
        assert (shown.changes, shown.last_change) == (4, 7)

    asyncio.run(scenario())


def test_a_lost_batch_is_noticed_and_a_snapshot_repairs_it() -> None:
    shown, sender = result(), Sender()
    sender.snapshot(shown)
    list(sender.channel.push("f0", {A: 1}, now=0))
    assert sender.push(shown, {B: 1}) == [Reception.GAP]
    assert not shown.is_synchronised
    assert sender.snapshot(shown) == [Reception.ACCEPTED]
    assert shown.rows() == (A, B)


def test_a_stranger_and_an_old_version_are_not_listened_to() -> None:
    shown, old = result(), Sender(version=0)
    assert old.snapshot(shown) == [Reception.STALE]
    assert shown.accept("gw-1", next(iter(old.channel.snapshot(now=0)))) == Reception.STALE
    batch = next(iter(Sender().channel.snapshot(now=0)))
    with pytest.raises(WireError, match="'gw-1' sends a result"):
        shown.accept("gw-1", batch)


def test_a_result_that_is_on_its_way_when_a_run_goes_silent_is_left_out() -> None:
    silent = msgspec.structs.replace(bundle(), silent=True)
    shown = QueryResult(silent, clock=lambda: 7, max_behind=100, recovered=False)
    assert Sender().snapshot(shown) == [Reception.STALE]
    assert shown.rows() == ()


def test_a_redeployment_shows_only_what_is_different() -> None:
    async def scenario() -> None:
        shown, sender = result(), Sender()
        sender.snapshot(shown)
        sender.push(shown, {A: 1, B: 1})
        reader = shown.subscribe(lambda _: None, snapshot=True)
        await anext(reader)
        shown.redeploy(bundle(version=2))
        assert not shown.is_synchronised
        newer = Sender(version=2)
        newer.snapshot(shown)
        newer.push(shown, {A: 1})
        assert shown.rows() == (A, B)  # still the old view
        newer.push(shown, {C: 1})
        shown.release()
        assert signed((await anext(reader)).changes) == {B: -1, C: 1}
        newer.push(shown, {C: -1})
        assert signed((await anext(reader)).changes) == {C: -1}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        (Emit.RELATION, [(A, 1), (B, 1), (A, -1), (C, 1)]),
        (Emit.STREAM, [(A, 1), (B, 1), (C, 1)]),
    ],
)
def test_emit_modes(emit: Emit, expected: list[tuple[tuple[str], int]]) -> None:
    async def scenario() -> None:
        shown, sender = result(emit), Sender()
        sender.snapshot(shown)
        reader = shown.subscribe(lambda _: None, snapshot=False)
        sender.push(shown, {A: 1, B: 1})
        sender.push(shown, {C: 1} if emit == Emit.STREAM else {A: -1, C: 1})
        reader.end()
        seen = [(c.row, c.diff) async for batch in reader for c in batch.changes]
        assert seen == expected
        if emit == Emit.STREAM:
            assert shown.rows() == tuple(row for row, _ in expected)
            assert not shown.view  # nobody adds a stream up

    asyncio.run(scenario())


def test_a_stream_does_not_repeat_itself_after_a_restart() -> None:
    shown, sender = result(Emit.STREAM, recovered=True), Sender()
    sender.channel.contents = {"f0": {A: 1}}
    sender.snapshot(shown)
    assert shown.rows() == ()
    sender.push(shown, {B: 1})
    assert shown.rows() == (B,)


def test_a_stream_shows_what_came_while_it_was_held_once() -> None:
    shown, sender = result(Emit.STREAM), Sender()
    sender.snapshot(shown)
    sender.push(shown, {A: 1})
    restarted = Sender(epoch=2)
    restarted.channel.contents = {"f0": {A: 1, B: 1}}
    restarted.snapshot(shown)
    assert shown.held
    restarted.push(shown, {C: 1})
    assert shown.rows() == (A,)
    shown.release()
    assert shown.rows() == (A, B, C)


def test_a_relation_is_complete_after_a_restart() -> None:
    shown, sender = result(recovered=True), Sender()
    sender.channel.contents = {"f0": {A: 1}}
    sender.snapshot(shown)
    assert shown.rows() == (A,)


def test_a_slow_reader_gets_a_snapshot_instead_of_what_it_missed() -> None:
    async def scenario() -> None:
        shown, sender = result(behind=3), Sender()
        sender.snapshot(shown)
        slow = shown.subscribe(lambda _: None, snapshot=True)
        fast = shown.subscribe(lambda _: None, snapshot=True)
        assert (await anext(slow)).snapshot
        assert (await anext(fast)).snapshot
        seen: Delta = {}
        for number in range(10):
            sender.push(shown, {(f"row {number}",): 1})
            seen.update(signed((await anext(fast)).changes))
        assert len(seen) == 10
        batch = await anext(slow)
        assert batch.snapshot
        assert signed(batch.changes) == seen
        sender.push(shown, {A: 1})
        assert signed((await anext(slow)).changes) == {A: 1}

    asyncio.run(scenario())


def test_the_end_comes_after_everything_else() -> None:
    async def scenario() -> None:
        shown, sender = result(), Sender()
        reader = shown.subscribe(lambda _: None, snapshot=True)
        sender.snapshot(shown)
        sender.push(shown, {A: 1})
        shown.announce(QueryStatus.RUNNING, "")
        shown.end(QueryStatus.STOPPED)
        batches = [batch async for batch in reader]
        assert [b.status for b in batches] == [None, QueryStatus.RUNNING, QueryStatus.STOPPED]
        assert signed(batches[0].changes) == {A: 1}

    asyncio.run(scenario())


def test_closing_twice_tells_once() -> None:
    async def scenario() -> None:
        closed: list[object] = []
        reader = result().subscribe(closed.append, snapshot=True)
        await reader.close()
        await reader.close()
        assert closed == [reader]
        assert [batch async for batch in reader] == []

    asyncio.run(scenario())
