"""The queue of publishes: bounds, the window, order across lost connections, tickets."""

import asyncio

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from host.mqtt.message_client import ClientClosed, QueueFull
from host.mqtt.publish_queue import Outbox, Outgoing
from host.mqtt.ticket import Ticket


def _outgoing(payload: bytes, qos: int = 1) -> Outgoing:
    return Outgoing("t", payload, qos, retain=False, ticket=Ticket())


class OutboxMachine(RuleBasedStateMachine):
    """A link that comes and goes: first arrivals are in order and nothing is ever lost."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox(max_messages=8, max_bytes=1_000, window=3)
        self.items: list[Outgoing] = []
        self.arrived: list[bytes] = []  # what the broker got, in order, doubles included
        self.unacknowledged: list[int] = []
        self.packet_id = 0

    @rule(qos=st.integers(0, 1))
    def publish(self, qos: int) -> None:
        item = _outgoing(b"%d" % len(self.items), qos)
        waiting = len(self.outbox)
        try:
            self.outbox.add(item)
        except QueueFull:
            assert waiting == 8
        else:
            assert waiting < 8
            self.items.append(item)

    @rule()
    def send(self) -> None:
        while (item := self.outbox.next()) is not None:
            self.packet_id += 1
            self.arrived.append(item.payload)
            self.outbox.mark_sent(self.packet_id)
            if item.qos:
                self.unacknowledged.append(self.packet_id)

    @precondition(lambda self: self.unacknowledged)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        packet_id = data.draw(st.sampled_from(self.unacknowledged))
        self.unacknowledged.remove(packet_id)
        self.outbox.acknowledge(packet_id)
        self.outbox.acknowledge(packet_id)  # twice is once

    @rule()
    def lose_the_link(self) -> None:
        stale = list(self.unacknowledged)
        self.unacknowledged.clear()
        self.outbox.rewind()
        for packet_id in stale:  # late news of the old connection
            self.outbox.acknowledge(packet_id)

    @invariant()
    def first_arrivals_are_in_order(self) -> None:
        first = list(dict.fromkeys(self.arrived))
        assert first == [item.payload for item in self.items][: len(first)]

    @invariant()
    def pending_is_what_has_no_receipt(self) -> None:
        assert len(self.outbox) == sum(not item.ticket.done() for item in self.items)
        assert len(self.unacknowledged) <= 3

    def teardown(self) -> None:
        for _ in range(20):
            self.send()
            while self.unacknowledged:
                self.outbox.acknowledge(self.unacknowledged.pop())
        assert len(self.outbox) == 0
        assert set(self.arrived) == {item.payload for item in self.items}


TestOutbox = OutboxMachine.TestCase


def test_bytes_are_bounded_and_given_back() -> None:
    outbox = Outbox(max_messages=100, max_bytes=10, window=10)
    outbox.add(_outgoing(b"123456"))
    with pytest.raises(QueueFull, match="6 bytes"):
        outbox.add(_outgoing(b"12345"))
    outbox.mark_sent(1)
    outbox.acknowledge(1)
    outbox.add(_outgoing(b"1234567890"))


def test_tickets() -> None:
    async def scenario() -> None:
        ticket = Ticket()
        with pytest.raises(TimeoutError):
            await ticket.wait(0.01)
        waiters = [asyncio.create_task(ticket.wait(5)) for _ in range(2)]
        await asyncio.sleep(0)
        ticket.resolve()
        await asyncio.gather(*waiters)
        await ticket.wait(0)
        assert ticket.done()

        failed = Ticket()
        waiter = asyncio.create_task(failed.wait())
        await asyncio.sleep(0)
        failed.resolve(ClientClosed("closed"))
        failed.resolve()
        with pytest.raises(ClientClosed):
            await waiter
        assert not failed.done()

    asyncio.run(scenario())


def test_failing_tells_everybody() -> None:
    outbox = Outbox(max_messages=10, max_bytes=100, window=1)
    items = [_outgoing(b"a"), _outgoing(b"b")]
    for item in items:
        outbox.add(item)
    outbox.mark_sent(1)
    assert outbox.last() is items[1].ticket
    outbox.fail(ClientClosed("closed"))
    assert len(outbox) == 0
    assert outbox.last() is None
    for item in items:
        with pytest.raises(ClientClosed):
            asyncio.run(item.ticket.wait())
