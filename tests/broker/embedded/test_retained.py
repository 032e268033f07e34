"""Retained messages."""

from collections.abc import Callable

import pytest

from broker.broker_testing import BrokerProcess, RawClient

pytestmark = pytest.mark.broker

Connect = Callable[..., RawClient]


def test_a_new_subscriber_gets_the_last_retained_message(connect: Connect, root: str) -> None:
    writer = connect("writer")
    writer.publish(f"{root}/a", b"old", retain=True)
    writer.publish(f"{root}/a", b"new", retain=True)
    writer.publish(f"{root}/a", b"live")
    reader = connect("reader")
    reader.subscribe((f"{root}/a", 1))
    [message] = reader.wait_for(1)
    assert (message.payload, message.retain, message.qos) == (b"new", True, 1)


def test_a_live_delivery_does_not_carry_the_flag(connect: Connect, root: str) -> None:
    reader, writer = connect("reader"), connect("writer")
    reader.subscribe((f"{root}/a", 1))
    writer.publish(f"{root}/a", b"x", retain=True)
    assert [m.retain for m in reader.wait_for(1)] == [False]


def test_an_empty_payload_clears_and_is_delivered(connect: Connect, root: str) -> None:
    early, writer = connect("early"), connect("writer")
    early.subscribe((f"{root}/#", 1))
    writer.publish(f"{root}/a", b"x", retain=True)
    writer.publish(f"{root}/a", b"", retain=True)
    assert [m.payload for m in early.wait_for(2)] == [b"x", b""]
    late = connect("late")
    late.subscribe((f"{root}/#", 1))
    assert late.sync() == []


@pytest.mark.parametrize(
    ("topic_filter", "expected"),
    [("{}/#", {"a", "b/c", "b/d"}), ("{}/+", {"a"}), ("{}/b/+", {"b/c", "b/d"}), ("{}/b", set())],
)
def test_wildcards_find_retained_messages(
    connect: Connect, root: str, topic_filter: str, expected: set[str]
) -> None:
    writer = connect("writer")
    for name in ("a", "b/c", "b/d"):
        writer.publish(f"{root}/{name}", name.encode(), 0, retain=True)
    writer.sync()
    reader = connect("reader")
    reader.subscribe((topic_filter.format(root), 0))
    assert {m.payload.decode() for m in reader.sync()} == expected


def test_many_retained_messages_arrive_in_full(connect: Connect, root: str) -> None:
    writer = connect("writer")
    for number in range(3_000):
        writer.publish(f"{root}/{number}", b"x" * 1_000, 0, retain=True)
    writer.sync()
    for qos in (0, 1):
        reader = connect(f"reader{qos}")
        reader.subscribe((f"{root}/#", qos))
        assert len({m.topic for m in reader.wait_for(3_000)}) == 3_000
        reader.close()
    for number in range(3_000):
        writer.publish(f"{root}/{number}", b"", 0, retain=True)
    writer.sync()


def test_retain_options_of_mqtt_5(shared_broker: BrokerProcess, root: str) -> None:
    with (
        RawClient(shared_broker.port, f"{root}-w", 5) as writer,
        RawClient(shared_broker.port, f"{root}-r", 5) as reader,
    ):
        writer.open()
        reader.open()
        writer.publish(f"{root}/a", b"stored", retain=True)
        reader.subscribe((f"{root}/a", 1 | 2 << 4))  # never send what is retained
        assert reader.sync() == []
        reader.subscribe((f"{root}/a", 1 | 1 << 4))  # only if the subscription is new
        assert reader.sync() == []
        reader.subscribe((f"{root}/c", 1 | 1 << 3))  # keep the flag of live messages
        writer.publish(f"{root}/c", b"live", retain=True)
        assert [m.retain for m in reader.sync()] == [True]
        reader.subscribe((f"{root}/b", 1 | 1 << 2))  # not my own
        reader.publish(f"{root}/b", b"mine")
        assert reader.sync() == []
