"""Messages that have to keep their order wait in one queue, whatever sources they are for."""

from collections.abc import Sequence

import pytest

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt import message_queues
from gateway.connectors.mqtt.message_queues import Match, MessageQueues
from gateway.connectors.mqtt.subscribed_source import SubscribedSource
from gateway.connectors.testing.source_statements import definitions_of
from host.mqtt.packet_stream import Received
from streamsql.mapping.mapper import Mapper

TEXT = """
CREATE SOURCE device (d TEXT, KEY (d))
WITH (connector = 'mqtt', topic = 'd/{d}', availability = 'gone/{d}');
CREATE SOURCE lamp (d TEXT, KEY (d))
WITH (connector = 'mqtt', topic = 'l/{d}', availability = 'out/{d}');
CREATE SOURCE plain (n INTEGER) WITH (connector = 'mqtt', topic = '+/x');
CREATE SOURCE other (n INTEGER) WITH (connector = 'mqtt', topic = 'o/x')
"""
DEVICE, LAMP, PLAIN, OTHER = (1, 2, 3, 4)


def queues() -> MessageQueues:
    """Return queues of which a message names the sources by their numbers, as a broker does."""
    sources = [
        SubscribedSource(DeclaredSource(each, Mapper(each), lambda: 1, {}, lambda _: None))
        for each in definitions_of(TEXT)
    ]

    def find(message: Received) -> list[Match]:
        return [(sources[number - 1], {}, False) for number in message.subscriptions]

    return MessageQueues(find)


def message(number: int, topic: str, *sources: int) -> Received:
    return Received(topic, str(number).encode(), subscriptions=sources)


def order(waiting: MessageQueues) -> list[int]:
    """Return the numbers of the messages as they have their turns, one at a turn."""
    numbers = []
    while waiting:
        queue = waiting.next_queue()
        if queue.messages:
            numbers.append(int(queue.messages.popleft()[1].payload))
        waiting.end_turn(queue)
    return numbers


def before(numbers: Sequence[int], one: int, other: int) -> bool:
    return numbers.index(one) < numbers.index(other)


def test_the_end_of_a_device_does_not_overtake_its_rows() -> None:
    waiting = queues()
    rows = [message(n, "d/x", DEVICE, PLAIN) for n in range(5)]
    waiting.add([*rows, message(5, "gone/x", DEVICE)], 1)
    assert order(waiting) == [0, 1, 2, 3, 4, 5]


def test_a_retained_message_does_not_overtake_a_live_one_of_its_topic() -> None:
    waiting = queues()
    waiting.add([message(n, "o/z", OTHER) for n in range(3)], 1)
    waiting.add([message(n, "o/x", OTHER) for n in range(3, 6)], 1)
    waiting.add([message(6, "o/x", PLAIN, OTHER)], 1)
    numbers = order(waiting)
    assert before(numbers, 5, 6)


def test_sources_in_order_that_turn_out_to_share_a_topic_share_a_queue() -> None:
    waiting = queues()
    waiting.add([message(0, "d/x", DEVICE), message(1, "l/x", LAMP), message(2, "d/y", DEVICE)], 1)
    waiting.add([message(3, "l/y", LAMP), message(4, "d/l", DEVICE, LAMP)], 1)
    waiting.add([message(5, "gone/x", DEVICE), message(6, "out/x", LAMP)], 1)
    assert order(waiting) == [0, 1, 2, 3, 4, 5, 6]


def test_a_queue_that_is_absorbed_in_its_turn_loses_nothing() -> None:
    waiting = queues()
    waiting.add([message(0, "d/x", DEVICE), message(2, "d/x", DEVICE)], 1)
    waiting.add([message(1, "l/x", LAMP)], 1)
    queue = waiting.next_queue()
    queue.messages.popleft()
    waiting.add([message(3, "d/l", LAMP, DEVICE)], 1)
    waiting.end_turn(queue)
    assert sorted(order(waiting)) == [1, 2, 3]


def test_others_have_their_turns() -> None:
    waiting = queues()
    waiting.add([message(n, "d/x", DEVICE) for n in range(5)], 1)
    waiting.add([message(5, "o/x", OTHER)], 1)
    assert order(waiting) == [0, 5, 1, 2, 3, 4]


def test_topics_that_are_forgotten_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_queues, "MAX_TOPICS", 2)
    waiting = queues()
    for n in range(0, 40, 2):
        waiting.add([message(n, f"o/{n % 6}", OTHER)], 1)
        waiting.add([message(n + 1, f"o/{n % 6}", PLAIN, OTHER)], 1)
    numbers = order(waiting)
    for topic in range(0, 6, 2):
        own = [n for n in numbers if n // 2 * 2 % 6 == topic]
        assert own == sorted(own)
