"""Sessions: offline queues, redelivery, takeover, expiry, flow control."""

import time
from collections.abc import Callable

import pytest

from broker.broker_testing import BrokerProcess, ConnectionClosed, RawClient

pytestmark = pytest.mark.broker

Connect = Callable[..., RawClient]

_HOUR = b"\x11\x00\x00\x0e\x10"


def _keep(version: int) -> dict[str, object]:
    """Fields of a CONNECT that keeps its session for an hour."""
    return {"clean": False, "properties": _HOUR if version == 5 else b""}


def test_a_kept_session_queues_qos_1_while_its_client_is_away(
    connect: Connect, root: str, version: int
) -> None:
    reader = connect("reader", **_keep(version))
    assert not reader.session_present
    reader.subscribe((f"{root}/#", 1))
    reader.close()
    writer = connect("writer")
    sent = [str(number).encode() for number in range(400)]
    for payload in sent:
        writer.publish(f"{root}/a", payload, 1, wait=False)
    writer.publish(f"{root}/b", b"qos 0", 0)
    writer.sync()
    again = connect("reader", **_keep(version))
    assert again.session_present
    assert [m.payload for m in again.wait_for(len(sent)) if m.qos] == sent
    writer.publish(f"{root}/a", b"live")
    assert b"live" in [m.payload for m in again.sync()], "the subscription is still there"


def test_a_clean_start_forgets(connect: Connect, root: str, version: int) -> None:
    connect("reader", **_keep(version)).subscribe((f"{root}/a", 1))
    fresh = connect("reader", clean=True)
    assert not fresh.session_present
    writer = connect("writer")
    writer.publish(f"{root}/a", b"x")
    assert fresh.sync() == []
    fresh.close()
    assert not connect("reader", **_keep(version)).session_present


def test_unacknowledged_deliveries_come_again_in_order_with_dup(
    connect: Connect, root: str, version: int
) -> None:
    reader = connect("reader", **_keep(version))
    reader.subscribe((f"{root}/a", 1))
    reader.acknowledge = False
    writer = connect("writer")
    sent = [str(number).encode() for number in range(10)]
    for payload in sent:
        writer.publish(f"{root}/a", payload)
    first = reader.wait_for(10)
    assert not any(m.dup for m in first)
    for message in first[:4]:
        reader.packet(0x40, message.packet_id.to_bytes(2, "big"))
    reader.sync()
    reader.vanish()
    again = connect("reader", **_keep(version))
    repeated = again.wait_for(6)
    assert [m.payload for m in repeated] == sent[4:]
    assert all(m.dup for m in repeated)
    assert [m.packet_id for m in repeated] == [m.packet_id for m in first[4:]]
    again.sync()  # so that the acknowledgements have been read when the link ends
    again.close()
    assert connect("reader", **_keep(version)).sync() == [], "acknowledged now"


def test_a_second_connection_takes_the_session_over(
    shared_broker: BrokerProcess, connect: Connect, root: str, version: int
) -> None:
    first = connect("reader", **_keep(version))
    first.subscribe((f"{root}/a", 1))
    second = connect("reader", **_keep(version))
    assert second.session_present
    reason = first.wait_closed()
    if shared_broker.kind == "embedded":  # Mosquitto 2.0.11 hangs up without a word
        assert reason == (0x8E if version == 5 else None)
    writer = connect("writer")
    writer.publish(f"{root}/a", b"x")
    assert [m.payload for m in second.sync()] == [b"x"]


def test_a_session_expires(shared_broker: BrokerProcess, root: str) -> None:
    a_second, a_minute = b"\x11\x00\x00\x00\x01", b"\x11\x00\x00\x00\x3c"
    for expiry in (a_second, a_minute):
        client = RawClient(shared_broker.port, f"{root}-{expiry[-1]}", 5)
        client.open(clean=False, properties=expiry)
        client.vanish()
    time.sleep(4)  # time passes: the broker's clock
    for expiry, present in ((a_second, False), (a_minute, True)):
        with RawClient(shared_broker.port, f"{root}-{expiry[-1]}", 5) as again:
            assert again.open(clean=False, properties=expiry) == (present, 0)


def test_receive_maximum_bounds_what_is_in_flight(shared_broker: BrokerProcess, root: str) -> None:
    with (
        RawClient(shared_broker.port, f"{root}-r", 5) as reader,
        RawClient(shared_broker.port, f"{root}-w", 5) as writer,
    ):
        reader.open(properties=b"\x21\x00\x05")
        writer.open()
        reader.subscribe((f"{root}/a", 1))
        reader.acknowledge = False
        for number in range(20):
            writer.publish(f"{root}/a", str(number).encode())
        held = reader.sync()
        assert len(held) == 5
        reader.packet(0x40, held[0].packet_id.to_bytes(2, "big"))
        [sixth] = reader.wait_for(1)
        assert sixth.payload == b"5"
        reader.acknowledge = True
        for message in [*held[1:], sixth]:
            reader.packet(0x40, message.packet_id.to_bytes(2, "big"))
        assert [m.payload for m in reader.wait_for(14)] == [str(n).encode() for n in range(6, 20)]


def test_a_client_that_stops_reading_does_not_hold_up_others(
    shared_broker: BrokerProcess, root: str
) -> None:
    with (
        RawClient(shared_broker.port, f"{root}-slow") as slow,
        RawClient(shared_broker.port, f"{root}-quick") as quick,
        RawClient(shared_broker.port, f"{root}-w") as writer,
    ):
        for client in (slow, quick, writer):
            client.open()
        slow.subscribe((f"{root}/#", 0))
        quick.subscribe((f"{root}/#", 1))
        payload = bytes(100_000)
        for _ in range(300):  # 30 MB: far more than the sockets between us hold
            writer.publish(f"{root}/a", payload)
            assert len(quick.wait_for(1)) == 1
        try:
            read = slow.sync()
        except (ConnectionClosed, TimeoutError):
            read = slow.take()
        assert {m.payload for m in read} <= {payload}, "no packet is cut in pieces"


def test_an_empty_client_id_gets_a_name(shared_broker: BrokerProcess) -> None:
    with RawClient(shared_broker.port, "", 4) as old, RawClient(shared_broker.port, "", 5) as new:
        assert old.open(clean=True) == (False, 0)
        assert new.open(clean=True) == (False, 0)
    with RawClient(shared_broker.port, "", 4) as refused:
        assert refused.open(clean=False) == (False, 2)
