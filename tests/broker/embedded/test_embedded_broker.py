"""The broker's state without sockets: bounds, counters, wills, expiry; time is told."""

from dataclasses import replace

import pytest

from broker.embedded.embedded_broker import Broker
from broker.embedded.limits import Limits
from broker.embedded.mqtt_session import Session
from broker.embedded.packets.framing import Framer
from broker.embedded.packets.packets import V3, V5, Connect, Message, Options, WillMessage
from broker.embedded.server import publish_statistics, statistics

_CONNECT = Connect(
    version=V3,
    client_id="c",
    clean=True,
    keepalive=0,
    will=None,
    user=None,
    password=None,
    session_expiry=0,
    receive_maximum=0xFFFF,
    max_packet_size=None,
)
_KEPT = replace(_CONNECT, clean=False, session_expiry=None)


class Outlet:
    """A connection that keeps what is written to it."""

    def __init__(self, version: int = V3) -> None:
        self.version = version
        self.max_packet_size: int | None = None
        self.writable = True
        self.frames: list[bytes] = []
        self.closed: int | None = None

    def send(self, frame: bytes) -> None:
        self.frames.append(frame)

    def close(self, reason: int) -> None:
        self.closed = reason

    def payloads(self) -> list[bytes]:
        """Payloads of the 3.1.1 QoS 1 publishes on topic `t` written so far."""
        packets = [next(Framer(1 << 20).feed(frame)) for frame in self.frames]
        return [body[3 + (2 if first & 2 else 0) :] for first, body in packets]


def _reader(broker: Broker, packet: Connect, outlet: Outlet, qos: int = 1) -> Session:
    session, _ = broker.connect(packet, packet.client_id, outlet, 0.0)
    broker.subscribe(session, None, [("t", Options(qos))])
    return session


def _publish(broker: Broker, payload: bytes, qos: int = 1) -> None:
    broker.publish(Message("t", payload, qos), 0.0)


def test_the_window_holds_back_and_acknowledgements_open_it() -> None:
    broker, outlet = Broker(Limits(max_inflight=2)), Outlet()
    session = _reader(broker, _CONNECT, outlet)
    for number in range(5):
        _publish(broker, b"%d" % number)
    assert outlet.payloads() == [b"0", b"1"]
    assert (session.inflight, session.queued) == (2, 3)
    session.acknowledge(1, 0.0)
    assert outlet.payloads() == [b"0", b"1", b"2"]
    session.acknowledge(99, 0.0)
    session.acknowledge(2, 0.0)
    session.acknowledge(3, 0.0)
    assert outlet.payloads() == [b"0", b"1", b"2", b"3", b"4"]


def test_a_full_queue_drops_the_newest_and_counts() -> None:
    broker = Broker(Limits(max_queued=3))
    outlet = Outlet()
    session = _reader(broker, _KEPT, outlet)
    broker.lost(session, outlet, 0.0)
    for number in range(5):
        _publish(broker, b"%d" % number)
    assert broker.counters.dropped == 2
    again = Outlet()
    broker.connect(_KEPT, "c", again, 1.0)
    session.drain(1.0)
    assert again.payloads() == [b"0", b"1", b"2"]
    assert broker.counters.queued_bytes == 0


@pytest.mark.parametrize("limits", [Limits(max_queued_bytes=10), Limits(max_total_queued_bytes=10)])
def test_queues_are_bounded_in_bytes(limits: Limits) -> None:
    broker, outlet = Broker(limits), Outlet()
    session = _reader(broker, _KEPT, outlet)
    broker.lost(session, outlet, 0.0)
    for _ in range(4):
        _publish(broker, b"12345")
    assert (session.queued, broker.counters.dropped, broker.counters.queued_bytes) == (2, 2, 10)
    broker.connect(replace(_CONNECT, clean=True), "c", Outlet(), 0.0)
    assert broker.counters.queued_bytes == 0, "a forgotten session gives back what it held"


def test_qos_0_waits_only_for_a_connected_client_and_within_its_bound() -> None:
    broker, outlet = Broker(Limits(max_queued_qos0=2)), Outlet()
    session = _reader(broker, _KEPT, outlet, qos=0)
    outlet.writable = False
    for number in range(4):
        _publish(broker, b"%d" % number, 0)
    assert (session.queued, broker.counters.dropped) == (2, 2)
    outlet.writable = True
    session.drain(0.0)
    assert outlet.payloads() == [b"0", b"1"]
    outlet.writable = False
    _publish(broker, b"lost", 0)
    broker.lost(session, outlet, 0.0)
    _publish(broker, b"lost too", 0)
    assert session.queued == 0
    assert broker.counters.queued_bytes == 0


def test_retained_messages_are_not_dropped_for_a_slow_client() -> None:
    broker, outlet = Broker(Limits(max_queued_qos0=1, max_queued=1)), Outlet()
    for number in range(20):
        broker.publish(Message(f"r/{number}", b"x", 0, retain=True), 0.0)
    session, _ = broker.connect(_CONNECT, "c", outlet, 0.0)
    outlet.writable = False
    codes, wanting = broker.subscribe(session, None, [("r/#", Options(0))])
    broker.send_retained(session, wanting, 0.0)
    assert codes == [0]
    assert session.queued == 20
    outlet.writable = True
    session.drain(0.0)
    assert len(outlet.frames) == 20


def test_a_packet_above_the_clients_own_limit_is_dropped_and_counted() -> None:
    broker, outlet = Broker(), Outlet(V5)
    outlet.max_packet_size = 20
    session = _reader(broker, _CONNECT, outlet)
    _publish(broker, bytes(100))
    _publish(broker, b"small")
    assert len(outlet.frames) == 1
    assert broker.counters.dropped == 1
    assert session.inflight == 1


def test_an_expired_message_is_not_delivered() -> None:
    broker, outlet = Broker(), Outlet()
    session = _reader(broker, _KEPT, outlet)
    broker.lost(session, outlet, 0.0)
    broker.publish(Message("t", b"short", 1, expires_at=5.0), 0.0)
    broker.publish(Message("t", b"long", 1, expires_at=50.0), 0.0)
    again = Outlet()
    broker.connect(_KEPT, "c", again, 10.0)
    session.drain(10.0)
    assert again.payloads() == [b"long"]
    assert broker.counters.dropped == 1


def test_a_kept_session_is_forgotten_after_the_brokers_own_limit() -> None:
    broker, outlet = Broker(Limits(max_session_age=100.0)), Outlet()
    session = _reader(broker, _KEPT, outlet)
    broker.tick(1_000.0)
    assert "c" in broker.sessions, "connected sessions do not age"
    broker.lost(session, outlet, 1_000.0)
    broker.tick(1_099.0)
    assert "c" in broker.sessions
    broker.tick(1_100.0)
    assert "c" not in broker.sessions
    _publish(broker, b"x")
    assert session.queued == 0


def _with_will(delay: int, expiry: int | None) -> Connect:
    will = WillMessage("t", b"dead", 1, retain=False, properties={}, delay=delay)
    return replace(_CONNECT, client_id="v", clean=False, will=will, session_expiry=expiry)


def test_a_delayed_will_comes_when_the_delay_or_the_session_ends() -> None:
    for delay, expiry, due in ((10, 100, 10.0), (10, 5, 5.0), (10, 0, 0.0)):
        broker, outlet, victim = Broker(), Outlet(), Outlet(V5)
        _reader(broker, _CONNECT, outlet)
        session, _ = broker.connect(_with_will(delay, expiry), "v", victim, 0.0)
        broker.lost(session, victim, 0.0)
        if due:
            broker.tick(due - 0.1)
            assert outlet.payloads() == []
            broker.tick(due)
        assert outlet.payloads() == [b"dead"]
        broker.tick(1_000.0)
        assert outlet.payloads() == [b"dead"], "once"


def test_a_clean_start_ends_the_session_and_so_sends_its_delayed_will() -> None:
    broker, outlet, victim = Broker(), Outlet(), Outlet(V5)
    _reader(broker, _CONNECT, outlet)
    session, _ = broker.connect(_with_will(10, 100), "v", victim, 0.0)
    broker.lost(session, victim, 0.0)
    broker.connect(replace(_CONNECT, client_id="v"), "v", Outlet(), 1.0)
    assert outlet.payloads() == [b"dead"]


def test_a_takeover_closes_the_older_connection_and_sends_its_will() -> None:
    broker, outlet, victim = Broker(), Outlet(), Outlet(V5)
    _reader(broker, _CONNECT, outlet)
    session, _ = broker.connect(_with_will(0, 100), "v", victim, 0.0)
    again, present = broker.connect(_with_will(0, 100), "v", Outlet(V5), 1.0)
    assert present
    assert again is session
    assert victim.closed == 0x8E
    assert outlet.payloads() == [b"dead"]
    broker.lost(session, victim, 2.0)
    assert session.outlet is not None, "the late news of the old connection changes nothing"


def test_packet_ids_wrap_around_without_meeting_one_in_use() -> None:
    broker, outlet = Broker(), Outlet()
    session = _reader(broker, _CONNECT, outlet)
    _publish(broker, b"kept open")
    outlet.frames.clear()
    for _ in range(0xFFFF):
        _publish(broker, b"x")
        packet_id = int.from_bytes(outlet.frames.pop()[5:7], "big")
        assert packet_id not in {0, 1}
        session.acknowledge(packet_id, 0.0)
    assert session.inflight == 1


def test_filters_of_a_session_are_bounded() -> None:
    broker = Broker(Limits(max_filters=2))
    session, _ = broker.connect(_CONNECT, "c", Outlet(), 0.0)
    wishes = [(name, Options(1)) for name in ("a", "b", "c", "a", "x#", "$share/g")]
    codes, _ = broker.subscribe(session, None, wishes)
    assert codes == [1, 1, 0x97, 1, 0x8F, 0x8F]
    assert broker.unsubscribe(session, ["a", "never"]) == [0, 0x11]


def test_sessions_are_bounded() -> None:
    broker = Broker(Limits(max_sessions=1))
    assert broker.has_room_for("a")
    broker.connect(_CONNECT, "a", Outlet(), 0.0)
    assert broker.has_room_for("a")
    assert not broker.has_room_for("b")


def test_a_shared_message_prefers_a_member_that_keeps_up() -> None:
    broker, slow, quick, away = Broker(), Outlet(), Outlet(), Outlet()
    for name, outlet in (("slow", slow), ("quick", quick), ("away", away)):
        session, _ = broker.connect(replace(_KEPT, client_id=name), name, outlet, 0.0)
        broker.subscribe(session, None, [("$share/g/t", Options(1))])
        if outlet is away:
            broker.lost(session, away, 0.0)
    slow.writable = False
    for _ in range(9):
        _publish(broker, b"x")
    assert (len(slow.frames), len(quick.frames)) == (0, 9)


def test_statistics_are_retained_and_published_when_they_change() -> None:
    broker, outlet = Broker(), Outlet()
    session, _ = broker.connect(_CONNECT, "c", outlet, 0.0)
    broker.subscribe(session, None, [("$SYS/broker/clients/connected", Options(0))])
    _publish(broker, b"x")
    publish_statistics(broker, 1.0, 1.0)
    publish_statistics(broker, 2.0, 2.0)
    assert len(outlet.frames) == 1
    figures = statistics(broker, 2.0)
    assert figures["$SYS/broker/clients/connected"] == "1"
    assert figures["$SYS/broker/publish/messages/received"] == "1"
    assert broker.retained.get("$SYS/broker/uptime") is not None
