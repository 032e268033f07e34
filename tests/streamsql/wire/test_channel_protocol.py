"""Whatever the network repeats, loses or cuts off, both ends agree after resynchronisation."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.delta import Delta, accumulate
from streamsql.wire import batch_parts
from streamsql.wire.batch_parts import CHUNK_ROWS
from streamsql.wire.channel_protocol import (
    Forgotten,
    ReceivingChannel,
    Reception,
    SendingChannel,
)
from streamsql.wire.messages import DeltaBatch

rows = st.tuples(st.sampled_from("abc"))
deltas = st.dictionaries(rows, st.integers(-2, 2).filter(bool), min_size=1, max_size=3)
steps = st.lists(
    st.one_of(
        deltas.map(lambda d: ("push", d)),
        st.sampled_from([("lose", None), ("repeat", None), ("restart", None), ("away", None)]),
    ),
    max_size=25,
)


class Pair:
    """A sender and a receiver; `view` integrates what the receiver passes on."""

    def __init__(self) -> None:
        self.epoch = 1
        self.sender = SendingChannel(version=1, epoch=1, ports=["p"])
        self.receiver = ReceivingChannel(version=1)
        self.view: Delta = {}
        self.last: DeltaBatch | None = None
        self.lossy = False
        self.deliver(self.sender.snapshot(now=0))

    def deliver(self, batches: Iterable[DeltaBatch]) -> None:
        for batch in batches:
            self.last = batch
            if self.lossy:
                self.lossy = False
                continue
            reception, delta = self.receiver.accept(batch)
            accumulate(self.view, delta)
            if reception == Reception.GAP:
                self.deliver(self.sender.snapshot(now=0))


@given(steps)
def test_the_receiver_ends_up_with_what_the_sender_has(
    events: list[tuple[str, Delta | None]],
) -> None:
    pair = Pair()
    for kind, delta in events:
        if kind == "push" and delta is not None:
            pair.deliver(pair.sender.push("p", delta, now=0))
        elif kind == "lose":
            pair.lossy = True
        elif kind == "repeat" and pair.last is not None:
            pair.deliver([pair.last])
        elif kind == "restart":
            pair.epoch += 1
            pair.sender = SendingChannel(version=1, epoch=pair.epoch, ports=["p"])
            pair.deliver(pair.sender.snapshot(now=0))
        elif kind == "away":
            for retraction in pair.receiver.lose_sender().values():
                accumulate(pair.view, retraction)
            assert pair.view == {}
    pair.lossy = False
    pair.deliver(pair.sender.snapshot(now=0))
    assert pair.view == pair.sender.contents["p"] == pair.receiver.contents["p"]


@given(steps, steps)
def test_a_copy_receives_on_as_the_first_receiver_does(
    before: list[tuple[str, Delta | None]], after: list[tuple[str, Delta | None]]
) -> None:
    pair = Pair()
    for _, delta in before:
        if delta is not None:
            pair.deliver(pair.sender.push("p", delta, now=0))
    twin, known = pair.receiver.copy(), dict(pair.view)
    for kind, delta in after:
        if kind == "restart":
            pair.epoch += 1
            pair.sender = SendingChannel(version=1, epoch=pair.epoch, ports=["p"])
        parts = pair.sender.snapshot(now=0)
        if delta is not None:
            parts = iter(pair.sender.push("p", delta, now=0))
        for batch in parts:
            received = pair.receiver.accept(batch)
            assert twin.accept(batch) == received
            accumulate(known, received[1])
    assert twin.contents == pair.receiver.contents
    assert known == pair.sender.contents["p"]
    twin.lose_sender()
    assert pair.receiver.contents["p"] == pair.sender.contents["p"], "they share nothing"


def test_a_copy_of_a_half_received_change_waits_for_the_rest() -> None:
    sender, receiver = SendingChannel(version=1, epoch=1, ports=["p"]), ReceivingChannel(version=1)
    large: Delta = {(number,): 1 for number in range(3 * CHUNK_ROWS)}
    sender.note("p", large)
    first, *others = sender.snapshot(now=0)
    receiver.accept(first)
    twin = receiver.copy()
    assert twin.size == receiver.size == CHUNK_ROWS
    for batch in others:
        assert twin.accept(batch)[0] == Reception.ACCEPTED
    assert twin.contents == {"p": large}
    assert receiver.contents == {}


def test_a_will_be_older_session_is_ignored() -> None:
    receiver = ReceivingChannel(version=1)
    new = SendingChannel(version=1, epoch=5, ports=["p"])
    old = SendingChannel(version=1, epoch=4, ports=["p"])
    for batch in new.snapshot(now=0):
        assert receiver.accept(batch)[0] == Reception.ACCEPTED
    for batch in old.snapshot(now=0):
        assert receiver.accept(batch)[0] == Reception.STALE


@pytest.mark.parametrize("version", [1, 3])
def test_batches_of_another_version_are_ignored(version: int) -> None:
    sender = SendingChannel(version=2, epoch=1, ports=["p"])
    (batch,) = sender.snapshot(now=0)
    assert ReceivingChannel(version=version).accept(batch) == (Reception.STALE, {})


def test_a_batch_that_comes_again_is_no_gap() -> None:
    """The sender need not send everything again because the network has said something twice."""
    sender, receiver = SendingChannel(version=1, epoch=1), ReceivingChannel(version=1)
    (batch,) = sender.push("p", {("a",): 1}, now=0)
    receiver.accept(msgspec.structs.replace(batch, reset=True))
    (batch,) = sender.push("p", {("b",): 1}, now=0)
    assert receiver.accept(batch) == (Reception.ACCEPTED, {("b",): 1})
    assert receiver.accept(batch) == (Reception.DUPLICATE, {})
    assert (receiver.synchronised, receiver.duplicates, receiver.gaps) == (True, 1, 0)
    (batch,) = sender.push("p", {("c",): 1}, now=0)
    assert receiver.accept(batch) == (Reception.ACCEPTED, {("c",): 1})


def test_half_a_change_of_a_sender_that_is_lost_is_not_kept() -> None:
    sender, receiver = SendingChannel(version=1, epoch=1), ReceivingChannel(version=1)
    (batch,) = sender.push("p", {("a",): 1}, now=0)
    assert receiver.accept(msgspec.structs.replace(batch, reset=True, more=True))[1] == {}
    assert receiver.size == 1
    assert receiver.lose_sender() == {}
    assert receiver.size == 0


def test_a_change_that_breaks_off_for_another_port_is_a_gap() -> None:
    sender, receiver = SendingChannel(version=1, epoch=1), ReceivingChannel(version=1)
    (first,) = sender.push("p", {("a",): 1}, now=0)
    receiver.accept(msgspec.structs.replace(first, reset=True, more=True))
    (other,) = sender.push("q", {("b",): 1}, now=0)
    assert receiver.accept(other) == (Reception.GAP, {})
    assert receiver.size == 0


def test_what_comes_before_the_snapshot_of_a_new_life_is_a_gap() -> None:
    sender, receiver = SendingChannel(version=1, epoch=1, ports=["p"]), ReceivingChannel(version=1)
    for batch in sender.snapshot(now=0):
        receiver.accept(batch)
    again = SendingChannel(version=1, epoch=2, ports=["p"])
    list(again.snapshot(now=0))  # lost
    (batch,) = again.push("p", {("a",): 1}, now=0)
    assert receiver.accept(batch) == (Reception.GAP, {})


def test_a_gap_counts_once_until_the_channel_is_in_step_again() -> None:
    sender, receiver = SendingChannel(version=1, epoch=1, ports=["p"]), ReceivingChannel(version=1)
    for _time in range(2):
        for batch in sender.snapshot(now=0):
            receiver.accept(batch)
        assert receiver.synchronised
        sender.push("p", {("lost",): 1}, now=0)
        for _batch in range(3):
            (batch,) = sender.push("p", {("a",): 1}, now=0)
            assert receiver.accept(batch) == (Reception.GAP, {})
            assert not receiver.synchronised
    assert receiver.gaps == 2


def test_the_sender_has_forgotten_as_much_as_its_latest_word_says() -> None:
    """A snapshot of an earlier saved state says less than has been heard."""
    receiver = ReceivingChannel(version=1)
    assert receiver.sender_forgot is None
    for epoch, (told, known) in enumerate([(5, 5), (3, 5), (None, 5), (7, 7)], start=1):
        sender = SendingChannel(version=1, epoch=epoch, ports=["p"])
        sender.forget(Forgotten(told))
        for batch in sender.snapshot(now=0):
            receiver.accept(batch)
        assert receiver.sender_forgot == known


def test_both_ends_forget_no_less_than_they_were_told() -> None:
    rows: Delta = {(number,): 1 for number in range(6)}
    sender, receiver = SendingChannel(version=1, epoch=1), ReceivingChannel(version=1)
    (batch,) = sender.push("p", rows, now=0)
    receiver.accept(msgspec.structs.replace(batch, reset=True))
    assert receiver.forget(Forgotten(9, {"p": (0, 3)})) == {"p": {(n,): -1 for n in range(3)}}
    assert receiver.forget(Forgotten(8, {"p": (0, 1)})) == {}
    for told in (Forgotten(9, {"p": (0, 3)}), Forgotten(8, {"p": (0, 1)})):
        sender.forget(told)
    for end in (sender, receiver):
        assert end.contents["p"] == {(n,): 1 for n in (3, 4, 5)}
        assert end.forgotten == Forgotten(9, {"p": (0, 3)})
    (batch,) = sender.push("p", {(2,): 1, (3,): 1}, now=0)
    assert receiver.accept(batch) == (Reception.ACCEPTED, {(3,): 1})


def test_large_snapshots_travel_in_chunks_and_arrive_whole() -> None:
    sender = SendingChannel(version=1, epoch=1)
    large: Delta = {(number,): 1 for number in range(CHUNK_ROWS * 2 + 1)}
    assert len(list(sender.push("p", large, now=0))) == 3
    receiver = ReceivingChannel(version=1)
    for batch in sender.snapshot(now=0):
        assert receiver.accept(batch)[0] == Reception.ACCEPTED
    assert receiver.contents["p"] == large


LARGE: Delta = {(number,): 1 for number in range(CHUNK_ROWS * 2 + 1)}


def synchronised(*ports: str) -> tuple[SendingChannel, ReceivingChannel]:
    """Both ends of a channel whose first port has a large change behind it."""
    sender = SendingChannel(version=1, epoch=1, ports=ports)
    receiver = ReceivingChannel(version=1, first_port=ports[0])
    for batch in [*sender.snapshot(now=0), *sender.push(ports[0], LARGE, now=0)]:
        assert receiver.accept(batch)[0] == Reception.ACCEPTED
    assert receiver.contents[ports[0]] == LARGE
    return (sender, receiver)


def test_a_large_snapshot_never_looks_like_a_retraction() -> None:
    sender, receiver = synchronised("p")
    list(sender.push("p", {(0,): -1, (-1,): 1}, now=0))  # lost
    *first, last = [receiver.accept(batch)[1] for batch in sender.snapshot(now=0)]
    assert first == [{}, {}]
    assert last == {(0,): -1, (-1,): 1}
    assert receiver.contents["p"] == sender.contents["p"]


def test_a_change_of_several_batches_counts_as_a_whole() -> None:
    sender, receiver = synchronised("p")
    replaced: Delta = {(number,): -1 for number in range(CHUNK_ROWS)}
    replaced |= {(-number,): 1 for number in range(1, CHUNK_ROWS)}
    parts = [receiver.accept(batch)[1] for batch in sender.push("p", replaced, now=0)]
    assert parts == [{}, replaced]
    assert receiver.contents["p"] == sender.contents["p"]


def test_what_was_interrupted_is_forgotten_with_the_next_snapshot() -> None:
    sender, receiver = synchronised("p", "q")
    for batches in (sender.push("q", LARGE, now=0), sender.snapshot(now=0)):
        receiver.accept(next(iter(batches)))  # the sender gave up after the first one
        assert receiver.contents == {"p": LARGE, "q": {}}
        assert receiver.size > len(LARGE)
    for batch in sender.snapshot(now=0):
        assert receiver.accept(batch)[0] == Reception.ACCEPTED
    assert receiver.contents == sender.contents
    assert receiver.size == 2 * len(LARGE)


def test_a_lost_middle_is_a_gap_and_leaves_the_old_rows() -> None:
    sender, receiver = synchronised("p")
    first, _lost, last = sender.snapshot(now=0)
    assert receiver.accept(first)[0] == Reception.ACCEPTED
    assert receiver.accept(last) == (Reception.GAP, {})
    assert receiver.contents["p"] == LARGE
    assert receiver.size == len(LARGE)


@given(st.lists(deltas | st.just({}), max_size=4), st.booleans())
def test_a_change_in_parts_counts_as_a_whole(parts: list[Delta], reset: bool) -> None:
    """The sender notes nothing of it: whoever carries parts knows what was sent."""
    pair = Pair()
    before: Delta = {("a",): 5, ("d",): 1}
    sent = [*pair.sender.push("p", before, now=0)]
    batches = [*pair.sender.carry("p", parts, now=0, reset=reset)]
    changes = [pair.receiver.accept(batch)[1] for batch in sent + batches]
    assert not any(changes[1:-1])  # nothing of it shows before its last batch
    expected: Delta = {} if reset else dict(before)
    for part in parts:
        accumulate(expected, part)
    assert pair.receiver.contents["p"] == expected
    whole: Delta = {}
    for part in parts:
        accumulate(whole, part)
    assert len(batches) == (reset or bool(whole))
    assert pair.sender.contents == {"p": before}


many = st.dictionaries(st.tuples(st.integers(0, 20)), st.integers(-2, 2).filter(bool), max_size=9)


@given(st.lists(many, max_size=6))
def test_batches_are_filled_across_parts(parts: list[Delta]) -> None:
    """A row of several parts is once in a batch: receivers keep one weight for it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batch_parts, "CHUNK_ROWS", 4)
        patched.setattr(batch_parts, "_FEW_ROWS", 3)
        sender, receiver = SendingChannel(version=1, epoch=1), ReceivingChannel(version=1)
        batches = [*sender.carry("p", parts, now=0, reset=True)]
    for batch in batches:
        assert receiver.accept(batch)[0] == Reception.ACCEPTED
        assert len({row.row for row in batch.deltas}) == len(batch.deltas) <= 4
    expected: Delta = {}
    for part in parts:
        accumulate(expected, part)
    assert receiver.contents["p"] == expected
    assert [batch.more for batch in batches] == [True] * (len(batches) - 1) + [False]
    assert len(batches) <= 1 + sum(map(len, parts)) // 4


def test_many_parts_are_few_batches() -> None:
    parts: list[Delta] = [
        {(begin + n, "x"): 1 for n in range(820)} for begin in range(0, 13_000, 1_000)
    ]
    sender = SendingChannel(version=1, epoch=1)
    (batch,) = sender.carry("p", iter(parts), now=0)
    assert [row.row for row in batch.deltas] == [row for part in parts for row in part]
