"""Channels of streams: the latest rows are kept, and what was given is given once and stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.delta import Delta, accumulate
from streamsql.wire import channel_protocol as channels
from streamsql.wire.channel_protocol import ReceivingChannel, Reception, SendingChannel

MOST = 10


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "STREAM_ROWS", MOST)


def pair() -> tuple[SendingChannel, ReceivingChannel]:
    sender = SendingChannel(version=1, epoch=1, ports=["s"], streams={"s"})
    return sender, ReceivingChannel(version=1, streams={"s"})


def take(receiver: ReceivingChannel, sender: SendingChannel, delta: Delta) -> Delta:
    total: Delta = {}
    for batch in sender.push("s", delta, now=0):
        accumulate(total, receiver.accept(batch)[1])
    return total


def resend(receiver: ReceivingChannel, sender: SendingChannel) -> Delta:
    total: Delta = {}
    for batch in sender.snapshot(now=0):
        accumulate(total, receiver.accept(batch)[1])
    return total


@given(st.lists(st.sampled_from(("push", "lose", "resend", "away")), max_size=60))
def test_every_row_arrives_once(steps: list[str]) -> None:
    channels.STREAM_ROWS, before = MOST, channels.STREAM_ROWS
    try:
        sender, receiver = pair()
        view = resend(receiver, sender)
        number = lost = 0
        for step in steps:
            match step:
                case "push":
                    accumulate(view, take(receiver, sender, {(number,): 1}))
                    number += 1
                case "lose" if lost < MOST:
                    list(sender.push("s", {(number,): 1}, now=0))
                    number, lost = number + 1, lost + 1
                case "resend":
                    accumulate(view, resend(receiver, sender))
                    lost = 0
                case "away":
                    assert not receiver.lose_sender()
                case _:
                    pass
        accumulate(view, resend(receiver, sender))
        if number <= MOST:
            assert view == {(n,): 1 for n in range(number)}
        assert set(view.values()) <= {1}
        assert max(view, default=(number - 1,)) == (number - 1,)
    finally:
        channels.STREAM_ROWS = before


def test_both_ends_stay_small() -> None:
    sender, receiver = pair()
    resend(receiver, sender)
    for number in range(20 * MOST):
        assert take(receiver, sender, {(number,): 1}) == {(number,): 1}
    assert len(sender.contents["s"]) <= 2 * MOST
    assert len(receiver.contents["s"]) <= 4 * MOST
    assert resend(receiver, sender) == {}


def test_a_new_life_of_the_sender_takes_nothing_back() -> None:
    sender, receiver = pair()
    resend(receiver, sender)
    take(receiver, sender, {(1,): 1})
    again = SendingChannel(version=1, epoch=2, ports=["s"], streams={"s"})
    assert resend(receiver, again) == {}
    assert take(receiver, again, {(2,): 1}) == {(2,): 1}


def test_what_a_new_life_has_to_give_again_is_given_once() -> None:
    """Its former life was saved before the second row."""
    sender, receiver = pair()
    resend(receiver, sender)
    take(receiver, sender, {(1,): 1})
    take(receiver, sender, {(2,): 1})
    again = SendingChannel(version=1, epoch=2, ports=["s"], streams={"s"})
    again.note("s", {(1,): 1})
    assert resend(receiver, again) == {}
    assert take(receiver, again, {(2,): 1}) == {}
    assert take(receiver, again, {(2,): 1, (3,): 1}) == {(2,): 1, (3,): 1}


def test_the_receiver_remembers_all_that_may_be_sent_again() -> None:
    """It has rows of an earlier life as well, which count when it forgets."""
    sender, receiver = pair()
    resend(receiver, sender)
    take(receiver, sender, {(-n,): 1 for n in range(1, MOST // 2)})
    again = SendingChannel(version=1, epoch=2, ports=["s"], streams={"s"})
    resend(receiver, again)
    for number in range(2 * MOST):
        assert take(receiver, again, {(number,): 1}) == {(number,): 1}
    assert len(again.contents["s"]) == 2 * MOST
    assert resend(receiver, again) == {}


def test_a_snapshot_with_fewer_copies_takes_none_back() -> None:
    """The sender may have forgotten the first copy as one of its oldest rows."""
    sender, receiver = pair()
    resend(receiver, sender)
    take(receiver, sender, {(1,): 2})
    del sender.contents["s"][(1,)]
    sender.note("s", {(1,): 1})
    assert resend(receiver, sender) == {}
    assert receiver.contents["s"] == {(1,): 2}


def test_after_a_gap_the_latest_rows_come_again() -> None:
    sender, receiver = pair()
    resend(receiver, sender)
    for number in range(3):
        list(sender.push("s", {(number,): 1}, now=0))
    (batch,) = sender.push("s", {(3,): 1}, now=0)
    assert receiver.accept(batch) == (Reception.GAP, {})
    assert resend(receiver, sender) == {(n,): 1 for n in range(4)}
