"""Both ends of a site's channels: what is refused, what is merged, what a snapshot contains."""

import pytest

from stream_engine.exchange.channel_inbox import Inbox, oldest, split_port
from stream_engine.exchange.channel_outbox import RESULT, Outbox, route
from streamsql.data.delta import Delta
from streamsql.errors import WireError
from streamsql.wire.bundles.partitioning import site_of
from streamsql.wire.channel_protocol import Reception
from streamsql.wire.messages import DeltaBatch, WeightedRow


def batch(  # noqa: PLR0913  (a batch has many parts)
    seq: int,
    port: str = "f1",
    *rows: tuple[str, int],
    reset: bool = False,
    epoch: int = 1,
    version: int = 1,
    ts: int | None = None,
) -> DeltaBatch:
    weighted = tuple(WeightedRow((value,), weight) for value, weight in rows)
    return DeltaBatch(version, epoch, seq, port, weighted, reset, ts=ts)


def inbox(*ports: str) -> Inbox:
    return Inbox(1, {("gw-1", port): 1 for port in ports or ("f1",)})


def test_changes_between_steps_add_up() -> None:
    box = inbox()
    box.accept("gw-1", batch(0, "f1", ("a", 1), reset=True))
    box.accept("gw-1", batch(1, "f1", ("b", 1), ts=9))
    box.accept("gw-1", batch(2, "f1", ("a", -1), ts=7))
    assert not box.is_empty
    arrivals = box.take()["f1"]
    assert (arrivals.delta, arrivals.ts) == ({("b",): 1}, 7)
    assert box.is_empty
    assert box.take() == {}


def test_a_change_for_several_destinations_is_added_to_for_one_only() -> None:
    box = Outbox(version=1, epoch=1, first=0, ports={"b1": ["f1"], "b2": ["f1"]}, recursions={})
    box.flush(0)
    shared: Delta = {("a",): 1}
    for destination in ("b1", "b2"):
        box.collect(destination, "f1", shared, None)
    for value in ("b", "c"):
        box.collect("b1", "f1", {(value,): 1}, None)
    assert shared == {("a",): 1}
    sent = {to: {r.row[0] for r in batch.deltas} for to, batch in box.flush(1)}
    assert sent == {"b1": {"a", "b", "c"}, "b2": {"a"}}


def test_unknown_senders_ports_and_widths_are_refused() -> None:
    box = inbox()
    with pytest.raises(WireError, match="no channel from"):
        box.accept("gw-9", batch(0))
    with pytest.raises(WireError, match="'f7'"):
        box.accept("gw-1", batch(0, "f7"))
    wide = DeltaBatch(1, 1, 0, "f1", (WeightedRow(("a", "b"), 1),), reset=True)
    with pytest.raises(WireError, match="2 columns instead of 1"):
        box.accept("gw-1", wide)


def test_batches_of_another_version_are_dropped_unread() -> None:
    box = inbox()
    assert box.accept("gw-1", batch(0, "other", version=2)) == Reception.STALE
    assert box.is_empty


def test_a_snapshot_that_lost_its_beginning_is_not_taken_in() -> None:
    """Of a channel with two ports, the reset of the second alone would leave the first stale."""
    box = inbox("f1", "f2")
    box.accept("gw-1", batch(0, "f1", ("a", 1), reset=True))
    box.accept("gw-1", batch(1, "f2", ("x", 1), reset=True))
    # Batch 2 took "a" away and was lost, and so was batch 3, the snapshot's beginning.
    assert box.accept("gw-1", batch(4, "f2", ("x", 1), reset=True)) == Reception.GAP
    assert box.accept("gw-1", batch(5, "f1", reset=True)) == Reception.ACCEPTED
    assert box.accept("gw-1", batch(6, "f2", ("x", 1), reset=True)) == Reception.ACCEPTED
    assert box.channels["gw-1"].contents == {"f1": {}, "f2": {("x",): 1}}


def test_a_later_life_begins_with_the_first_port_too() -> None:
    box = inbox("f1", "f2")
    assert box.accept("gw-1", batch(1, "f2", ("x", 1), reset=True, epoch=2)) == Reception.GAP
    assert box.accept("gw-1", batch(2, "f1", ("a", 1), reset=True, epoch=2)) == Reception.ACCEPTED


def test_a_sender_that_comes_back_is_waited_for_again() -> None:
    box = inbox("f1", "f2")
    assert not box.is_complete
    box.lose("gw-1", None)
    assert box.is_complete
    assert box.accept("gw-1", batch(5, "f2", epoch=2)) == Reception.GAP
    assert box.is_complete, "what is dropped does not bring it back"
    box.accept("gw-1", batch(6, "f1", ("a", 1), reset=True, epoch=2))
    assert not box.is_complete
    box.accept("gw-1", batch(7, "f2", reset=True, epoch=2))
    assert box.is_complete


def test_who_was_given_up_in_another_life_is_waited_for() -> None:
    box = inbox()
    box.lose("gw-1", None)
    box.believe_in_all()
    assert not box.is_complete


def test_losing_a_sender_retracts_once() -> None:
    box = inbox()
    box.accept("gw-1", batch(0, "f1", ("a", 2), reset=True))
    box.take()
    box.lose("gw-1", None)
    box.lose("gw-1", None)
    box.lose("nobody", None)
    assert box.take()["f1"].delta == {("a",): -2}
    assert box.accept("gw-1", batch(1, "f1", ("b", 1))) == Reception.GAP
    assert box.accept("gw-1", batch(2, "f1", ("a", 2), reset=True)) == Reception.ACCEPTED
    assert box.take()["f1"].delta == {("a",): 2}


def test_the_will_of_an_earlier_life_is_ignored() -> None:
    box = inbox()
    box.accept("gw-1", batch(0, "f1", ("a", 1), reset=True, epoch=5))
    box.lose("gw-1", 4)
    assert box.take()["f1"].delta == {("a",): 1}
    box.lose("gw-1", 5)
    assert box.take()["f1"].delta == {("a",): -1}


@pytest.mark.parametrize(("first", "second", "answer"), [(None, 3, 3), (4, None, 4), (5, 2, 2)])
def test_oldest(first: int | None, second: int | None, answer: int) -> None:
    assert oldest(first, second) == answer


def test_ports_inside_recursions() -> None:
    assert split_port("f-1/2/77/leaf:0") == ("f-1/2", "77/leaf:0")


def outbox(**ports: list[str]) -> Outbox:
    return Outbox(version=1, epoch=1, first=10, ports=ports, recursions={})


def test_an_outbox_begins_with_snapshots() -> None:
    box = outbox(base=["f1", "f2"])
    box.collect("base", "f1", {("a",): 1}, 5)
    sent = [(to, b.seq, b.port, b.reset, len(b.deltas)) for to, b in box.flush(now=9)]
    assert sent == [("base", 10, "f1", True, 1), ("base", 11, "f2", True, 0)]
    assert list(box.flush(now=9)) == []


def test_changes_of_a_step_make_one_batch_a_port() -> None:
    box = outbox(base=["f1", "f2"])
    list(box.flush(now=0))
    box.collect("base", "f1", {("a",): 1}, 5)
    box.collect("base", "f1", {("b",): 1}, 4)
    box.collect("base", "f2", {("c",): 1}, None)
    box.collect("base", "f2", {("c",): -1}, None)
    assert not box.is_empty
    ((to, only),) = box.flush(now=9)
    assert (to, only.port, only.seq, only.ts, only.reset) == ("base", "f1", 12, 4, False)
    assert {row.row for row in only.deltas} == {("a",), ("b",)}
    assert box.last_sequence() == 13


def test_a_requested_snapshot_includes_the_pending_change() -> None:
    box = outbox(base=["f1"])
    list(box.flush(now=0))
    box.collect("base", "f1", {("a",): 1}, 5)
    list(box.flush(now=1))
    box.collect("base", "f1", {("b",): 1}, 5)
    assert box.request_snapshot("base")
    assert not box.request_snapshot("gw-9")
    ((_, only),) = box.flush(now=2)
    assert only.reset
    assert {row.row for row in only.deltas} == {("a",), ("b",)}


def test_the_result_is_a_destination() -> None:
    box = Outbox(version=1, epoch=1, first=0, ports={RESULT: ["f1"]}, recursions={})
    assert [to for to, _ in box.flush(now=0)] == [RESULT]


def test_routing_by_key_and_to_all() -> None:
    sites = ["one", "two", "three"]
    delta: Delta = {(k, n): 1 for k in "abcdefgh" for n in (1, 2)}
    parts = route(delta, sites, (0,))
    assert len(parts) > 1
    for site, part in parts.items():
        assert {site_of((row[0],), sites) for row in part} == {site}
    merged = {row: weight for part in parts.values() for row, weight in part.items()}
    assert merged == delta
    assert route(delta, sites, ()) == dict.fromkeys(sites, delta)
    assert route({}, sites, (0,)) == {}


def test_equal_keys_of_different_types_meet() -> None:
    sites = [f"s{number}" for number in range(50)]
    assert site_of((1,), sites) == site_of((1.0,), sites)
    assert site_of((0.0,), sites) == site_of((-0.0,), sites)


def test_a_batch_of_another_plan_is_stale_whoever_sends_it() -> None:
    """Planned anew, a query may have no channel from a site that has not heard of that yet."""
    assert inbox().accept("nobody", batch(0, "f1", ("a", 1), version=9)) == Reception.STALE
