"""Final rows wait for all senders."""

from stream_engine.exchange.channel_inbox import Inbox
from stream_engine.exchange.sender_sync import SenderSync
from stream_engine.operators.windows.hold import Hold
from streamsql.wire.messages import DeltaBatch


def inbox_from(*senders: str) -> Inbox:
    """Return an inbox that nobody has sent anything to."""
    return Inbox(1, {(sender, "f1"): 1 for sender in senders})


def hear(inbox: Inbox, sender: str) -> None:
    """Let a sender say that it has nothing."""
    inbox.accept(sender, DeltaBatch(1, 1, 0, "f1", reset=True))


def test_nobody_waits_where_nothing_is_final_or_nobody_sends() -> None:
    assert not SenderSync([], inbox_from("a"), None).is_on
    hold = Hold()
    assert not SenderSync([hold], inbox_from(), None).is_on
    assert not hold.is_on


def test_all_are_held_until_the_last_is_heard() -> None:
    inbox, holds = inbox_from("a", "b"), [Hold(), Hold()]
    sync = SenderSync(holds, inbox, None)
    assert sync.is_on
    assert all(hold.is_on for hold in holds)
    hear(inbox, "a")
    sync.poll()
    assert not sync.ends_now
    assert not any(hold.over_at(1) for hold in holds)
    hear(inbox, "b")
    assert sync.ends_now
    sync.poll()
    assert not sync.is_on
    assert all(hold.over_at(2) for hold in holds)


def test_it_waits_no_longer_than_it_may_and_again_after_a_restart() -> None:
    inbox, hold = inbox_from("a"), Hold()
    sync = SenderSync([hold], inbox, 10)
    assert [hold.over_at(now) for now in (5, 14, 15)] == [False, False, True]
    hear(inbox, "a")
    sync.poll()
    assert not sync.is_on
    sync.begin()
    assert not sync.is_on  # nobody is left to be heard
    inbox.lose("a", 1)
    inbox.believe_in_all()
    sync.begin()
    assert sync.is_on
    assert [hold.over_at(now) for now in (20, 29, 30)] == [False, False, True]
