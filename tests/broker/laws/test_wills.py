"""Wills: when the broker speaks for a client that vanished, and when it must not."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from broker.broker_testing import PATIENCE, BrokerProcess, ConnectionClosed, RawClient

pytestmark = pytest.mark.broker

Connect = Callable[..., RawClient]

DELAY_SECONDS = 2
HOUR = b"\x11\x00\x00\x0e\x10"
"""The property that keeps a session for an hour."""


def test_a_vanished_client_leaves_its_will(connect: Connect, root: str) -> None:
    reader = connect("reader")
    reader.subscribe((f"{root}/state", 1))
    connect("victim", will=(f"{root}/state", b"dead", 1, True)).vanish()
    [message] = reader.wait_for(1)
    assert (message.payload, message.qos, message.retain) == (b"dead", 1, False)
    late = connect("late")
    late.subscribe((f"{root}/state", 1))
    assert [m.payload for m in late.wait_for(1)] == [b"dead"], "the will was to be retained"


def test_a_clean_goodbye_leaves_none(connect: Connect, root: str) -> None:
    reader = connect("reader")
    reader.subscribe((f"{root}/state", 1))
    connect("victim", will=(f"{root}/state", b"dead", 1, False)).close()
    marker = connect("victim")  # the same id again: the goodbye has been handled by now
    marker.publish(f"{root}/state", b"marker")
    assert [m.payload for m in reader.wait_for(1)] == [b"marker"]


def test_a_silent_client_is_declared_dead_after_one_and_a_half_keep_alives(
    connect: Connect, root: str
) -> None:
    reader = connect("reader")
    reader.subscribe((f"{root}/state", 1))
    started = time.monotonic()
    silent = connect("silent", keepalive=1, will=(f"{root}/state", b"silent", 1, False))
    pinged = time.monotonic()
    pinging = connect("pinging", keepalive=1, will=(f"{root}/state", b"pinging", 1, False))
    longest = 0.0
    dead: list[bytes] = []
    while b"silent" not in dead and time.monotonic() < started + PATIENCE:
        time.sleep(0.1)
        if b"pinging" not in dead:
            with contextlib.suppress(ConnectionClosed):
                pinging.sync()
            longest, pinged = max(longest, time.monotonic() - pinged), time.monotonic()
        dead += [message.payload for message in reader.sync()]
    assert b"silent" in dead
    assert time.monotonic() - started > 1.4
    silent.wait_closed()
    if longest < 1.4:  # else this process had no time to ping, and the broker is right as well
        assert dead == [b"silent"]
        pinging.sync()


def test_a_protocol_error_leaves_the_will(connect: Connect, root: str) -> None:
    reader = connect("reader")
    reader.subscribe((f"{root}/state", 1))
    victim = connect("victim", will=(f"{root}/state", b"dead", 0, False))
    victim.send(b"\x36\x03\x00\x01a")  # QoS 3
    assert [m.payload for m in reader.wait_for(1)] == [b"dead"]


def test_goodbye_with_will(shared_broker: BrokerProcess, root: str) -> None:
    with (
        RawClient(shared_broker.port, f"{root}-r", 5) as reader,
        RawClient(shared_broker.port, f"{root}-v", 5) as victim,
    ):
        reader.open()
        reader.subscribe((f"{root}/state", 1))
        victim.open(will=(f"{root}/state", b"dead", 1, False))
        victim.packet(0xE0, b"\x04")
        assert [m.payload for m in reader.wait_for(1)] == [b"dead"]


def test_a_delayed_will_waits(shared_broker: BrokerProcess, root: str) -> None:
    with RawClient(shared_broker.port, f"{root}-r", 5) as reader:
        reader.open()
        reader.subscribe((f"{root}/state", 1))
        started = _leave_delayed_will(shared_broker, root)
        assert [m.payload for m in reader.wait_for(1)] == [b"dead"]
        assert time.monotonic() - started > DELAY_SECONDS - 0.5


def test_a_delayed_will_is_called_off(shared_broker: BrokerProcess, root: str) -> None:
    with RawClient(shared_broker.port, f"{root}-r", 5) as reader:
        reader.open()
        reader.subscribe((f"{root}/state", 1))
        for _ in range(5):  # on a busy machine we may come too late, and the broker is right
            started = _leave_delayed_will(shared_broker, root)
            with RawClient(shared_broker.port, f"{root}-v", 5) as again:
                again.open(clean=False, properties=HOUR)
                in_time = time.monotonic() - started < DELAY_SECONDS - 1
                time.sleep(DELAY_SECONDS + 0.8)
                told = reader.sync()
                again.close()
            if in_time:
                assert told == []
                return
    pytest.fail("this process was never back in time")


def _leave_delayed_will(broker: BrokerProcess, root: str) -> float:
    """Vanish and leave a delayed will; return when, by the monotonic clock."""
    victim = RawClient(broker.port, f"{root}-v", 5)
    victim.open(
        clean=False,
        properties=HOUR,
        will=(f"{root}/state", b"dead", 1, False),
        will_properties=b"\x18" + DELAY_SECONDS.to_bytes(4, "big"),
    )
    started = time.monotonic()
    victim.vanish()
    return started


_SERVICE = """
import asyncio, sys
from host.mqtt import Will, open_client

async def main():
    url, client_id, topic = sys.argv[1:]
    client = open_client(url, client_id, will=Will(topic, b"dead"))
    await client.connect()
    await client.publish(topic, b"alive", retain=True).wait(10)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until our input is closed
    client.publish(topic, b"stopped", retain=True)
    await client.close()

asyncio.run(main())
"""


@pytest.mark.parametrize(("kill", "last"), [(True, b"dead"), (False, b"stopped")])
def test_a_service_process_that_is_killed_or_stops(
    shared_broker: BrokerProcess, root: str, kill: bool, last: bytes
) -> None:
    with (
        RawClient(shared_broker.port, f"{root}-r") as reader,
        subprocess.Popen(
            [sys.executable, "-c", _SERVICE, shared_broker.url, f"{root}-s", f"{root}/state"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as service,
    ):
        reader.open()
        reader.subscribe((f"{root}/state", 1))
        assert service.stdout is not None
        assert service.stdout.readline() == b"ready\n"
        if kill:
            service.send_signal(signal.SIGKILL)
        service.communicate(timeout=PATIENCE)
        assert [m.payload for m in reader.wait_for(2)] == [b"alive", last]
        if not kill:
            assert service.returncode == 0
            assert reader.sync() == []
