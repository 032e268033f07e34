"""Delivery: QoS, order, wildcards, overlapping and shared subscriptions, sizes."""

from collections import Counter
from collections.abc import Callable

import pytest

from broker.broker_testing import BrokerProcess, RawClient

pytestmark = pytest.mark.broker

Connect = Callable[..., RawClient]


@pytest.mark.parametrize(("published", "granted"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_delivered_qos_is_the_lower_of_both(
    connect: Connect, root: str, published: int, granted: int
) -> None:
    reader, writer = connect("reader"), connect("writer")
    assert reader.subscribe((f"{root}/a", granted)) == [granted]
    writer.publish(f"{root}/a", b"hello", published)
    writer.sync()
    [message] = reader.sync()
    assert (message.topic, message.payload) == (f"{root}/a", b"hello")
    assert message.qos == min(published, granted)
    assert not message.retain
    assert not message.dup


@pytest.mark.parametrize("qos", [0, 1])
def test_order_of_one_publisher_is_kept(connect: Connect, root: str, qos: int) -> None:
    reader, writer = connect("reader"), connect("writer")
    reader.subscribe((f"{root}/#", qos))
    sent = [f"{number}".encode() for number in range(600)]
    for number, payload in enumerate(sent):
        writer.publish(f"{root}/{number % 3}", payload, qos, wait=False)
    assert [m.payload for m in reader.wait_for(len(sent))] == sent


def test_empty_and_large_payloads(connect: Connect, root: str) -> None:
    reader, writer = connect("reader"), connect("writer")
    reader.subscribe((f"{root}/#", 1))
    large = bytes(range(256)) * 8_000  # 2 MB: several reads and writes on both sides
    for payload in (b"", large, b"after"):
        writer.publish(f"{root}/a", payload)
    assert [m.payload for m in reader.wait_for(3)] == [b"", large, b"after"]


@pytest.mark.parametrize(
    ("topic_filter", "topic", "expected"),
    [
        ("{}/a/b", "{}/a/b", True),
        ("{}/a/b", "{}/a/c", False),
        ("{}/+/b", "{}/a/b", True),
        ("{}/+", "{}/a/b", False),
        ("{}/+", "{}/", True),
        ("{}/#", "{}", True),
        ("{}/#", "{}/a/b/c", True),
        ("{}/a/#", "{}/ab", False),
        ("+/{}x/+", "/{}x/", True),
        ("{}/+/+/#", "{}/a", False),
        ("{}//b", "{}/a/b", False),
    ],
)
def test_wildcards(
    connect: Connect, root: str, topic_filter: str, topic: str, expected: bool
) -> None:
    reader, writer = connect("reader"), connect("writer")
    reader.subscribe((topic_filter.format(root), 0))
    writer.publish(topic.format(root), b"x")
    assert bool(reader.sync()) is expected


def test_leading_wildcards_do_not_see_dollar_topics(connect: Connect, root: str) -> None:
    reader = connect("reader")
    assert reader.subscribe(("#", 0), ("+/broker/#", 0)) == [0, 0]
    topics = {m.topic for m in reader.sync()}
    assert not [topic for topic in topics if topic.startswith("$")]
    reader.unsubscribe("#", "+/broker/#")
    reader.take()
    reader.subscribe(("$SYS/broker/version", 0))
    [version] = reader.wait_for(1)
    assert version.retain
    assert root not in version.topic


def test_overlapping_subscriptions_deliver_with_the_higher_qos(
    shared_broker: BrokerProcess, connect: Connect, root: str, version: int
) -> None:
    reader, writer = connect("reader"), connect("writer")
    reader.subscribe((f"{root}/#", 0), (f"{root}/a", 1), (f"{root}/+", 0))
    writer.publish(f"{root}/a", b"x")
    messages = reader.sync()
    assert max(m.qos for m in messages) == 1
    # MQTT allows a copy per subscription, and Mosquitto makes them for MQTT 5 clients.
    if (shared_broker.kind, version) != ("mosquitto", 5):
        assert len(messages) == 1


def test_subscribing_again_replaces_the_qos(connect: Connect, root: str) -> None:
    reader, writer = connect("reader"), connect("writer")
    reader.subscribe((f"{root}/a", 1))
    reader.subscribe((f"{root}/a", 0))
    writer.publish(f"{root}/a", b"x")
    assert [m.qos for m in reader.sync()] == [0]


def test_unsubscribing_ends_delivery(connect: Connect, root: str) -> None:
    reader, writer = connect("reader"), connect("writer")
    reader.subscribe((f"{root}/a", 1), (f"{root}/b", 1))
    reader.unsubscribe(f"{root}/a", f"{root}/never")
    writer.publish(f"{root}/a", b"x")
    writer.publish(f"{root}/b", b"y")
    assert [m.payload for m in reader.sync()] == [b"y"]


def test_a_shared_subscription_gives_each_message_to_one_member(
    connect: Connect, root: str
) -> None:
    members = [connect(f"member{i}") for i in range(3)]
    for member in members:
        member.subscribe((f"$share/{root}/{root}/+", 1))
    everything, writer = connect("everything"), connect("writer")
    everything.subscribe((f"{root}/#", 1))
    sent = [str(i).encode() for i in range(60)]
    for payload in sent:
        writer.publish(f"{root}/a", payload)
    shares = [[m.payload for m in member.sync()] for member in members]
    assert Counter(p for share in shares for p in share) == Counter(sent)
    assert all(shares), "each member gets some"
    assert len(everything.sync()) == 60

    members[0].unsubscribe(f"$share/{root}/{root}/+")
    members[1].vanish()
    members[2].sync()
    for payload in sent:
        writer.publish(f"{root}/a", payload)
    # A broker may need a moment to see that one is gone; what it was given meanwhile is lost with
    # its clean session. Everything else goes to the one left.
    assert len(members[2].sync()) >= 30
    assert members[0].sync() == []


def test_a_qos_2_publish_is_taken_once(connect: Connect, root: str) -> None:
    reader, writer = connect("reader"), connect("writer")
    reader.subscribe((f"{root}/a", 1))
    body = len(f"{root}/a").to_bytes(2, "big") + f"{root}/a".encode() + b"\x00\x07"
    body += (b"\0" if writer.version == 5 else b"") + b"exactly"
    writer.packet(0x34, body)
    assert writer.expect(5)[:2] == b"\x00\x07"
    writer.packet(0x3C, body)  # sent again with DUP: the handshake is not over
    assert writer.expect(5)[:2] == b"\x00\x07"
    writer.packet(0x62, b"\x00\x07")
    assert writer.expect(7)[:2] == b"\x00\x07"
    assert [m.payload for m in reader.sync()] == [b"exactly"]
