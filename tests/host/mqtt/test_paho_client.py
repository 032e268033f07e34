"""The MQTT client against a real broker process (outages: tests/broker/test_outages)."""

import asyncio
import contextlib
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import PATIENCE, BrokerProcess, RawClient
from broker.free_ports import free_port
from host.mqtt import (
    ClientClosed,
    ConnectFailed,
    Message,
    MessageClient,
    QueueFull,
    SubscribeRefused,
    Will,
    open_client,
    paho_client,
)
from host.mqtt.message_client import PublishTicket
from host.mqtt.paho_client import MqttClient

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess("embedded", tmp_path_factory.mktemp("broker")) as process:
        yield process


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - the conditions have no event of their own
            await asyncio.sleep(0.01)


def _run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(100):
            await scenario()

    asyncio.run(bounded())


def test_messages_arrive_in_order_and_in_bursts_on_the_loop(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client: MessageClient = open_client(broker.url, "order")
        bursts: list[list[Message]] = []
        threads: set[int] = set()

        def receive(burst: list[Message]) -> None:
            bursts.append(burst)
            threads.add(threading.get_ident())

        client.on_messages(receive)
        await client.connect()
        await client.subscribe("order/#")
        tickets: list[PublishTicket] = [
            client.publish(f"order/{n % 5}", b"%d" % n) for n in range(3_000)
        ]
        await tickets[-1].wait(PATIENCE)
        assert all(ticket.done() for ticket in tickets)
        assert client.pending() == 0
        await _until(lambda: sum(map(len, bursts)) == 3_000)
        assert [int(m.payload) for burst in bursts for m in burst] == list(range(3_000))
        assert threads == {threading.get_ident()}
        assert len(bursts) < 3_000, "not one call per message"
        await client.close()

    _run(scenario)


def test_fields_of_a_message(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client = open_client(broker.url, "fields")
        got: list[Message] = []
        client.on_messages(got.extend)
        await client.connect()
        await client.publish("fields/kept", b"\x00\xff", retain=True).wait(PATIENCE)
        await client.subscribe("fields/#")
        client.publish("fields/live", b"", qos=0)
        await _until(lambda: len(got) == 2)
        assert got == [
            Message("fields/kept", b"\x00\xff", 1, retain=True),
            Message("fields/live", b"", 0),
        ]
        await client.unsubscribe("fields/#", "never")
        await client.publish("fields/live", b"x").wait(PATIENCE)
        await client.subscribe("later")
        await client.publish("later", b"").wait(PATIENCE)
        await _until(lambda: len(got) > 2)
        assert [message.topic for message in got[2:]] == ["later"]
        await client.close()

    _run(scenario)


def test_nobody_there() -> None:
    async def scenario() -> None:
        url = f"mqtt://127.0.0.1:{free_port()}"
        client = open_client(url, "nobody")
        with pytest.raises(ConnectFailed, match=url):
            await client.connect(timeout=0.5)
        with pytest.raises(ClientClosed):
            client.publish("t", b"")
        await client.close()

    _run(scenario)


def test_a_close_that_is_cancelled_goes_on_and_others_wait_for_it(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client = open_client(broker.url, "leaving")
        assert isinstance(client, MqttClient)
        await client.connect(timeout=PATIENCE)
        ticket = client.publish("t", b"last")
        first = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await client.close()
        assert ticket.done()
        assert client._link._paho._thread is None

    _run(scenario)


def test_connecting_in_the_background(tmp_path: Path) -> None:
    async def scenario() -> None:
        process = BrokerProcess("embedded", tmp_path)
        client = open_client(process.url, "patient")
        ups: list[bool] = []
        got: list[Message] = []
        client.on_connection(ups.append)
        client.on_messages(got.extend)
        await client.connect(timeout=None)
        assert not client.connected
        await client.subscribe("t")
        early = client.publish("t", b"early")
        lost = client.publish("t", b"lost", qos=0)
        assert lost.done()
        with process:
            await early.wait(PATIENCE)
            await _until(lambda: [m.payload for m in got] == [b"early"])
            assert ups == [True]
            await client.close()
            assert ups == [True, False]

    _run(scenario)


@contextlib.asynccontextmanager
async def _embedded(port: int, *options: str) -> AsyncIterator[None]:
    """Run an embedded broker with these options; it ends however the test ends."""
    command = [sys.executable, "-m", "broker.embedded", "--port", str(port), *options]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        assert b"listening" in await process.stderr.readline()
        yield
    finally:
        process.terminate()
        await process.communicate()


def test_a_refused_password_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "passwords").write_text("someone:$7$101$AAAA$AAAA\n")

    async def scenario() -> None:
        port = free_port()
        async with _embedded(port, "--passwords", str(tmp_path / "passwords")):
            client = open_client(f"mqtt://gw:wrong@127.0.0.1:{port}", "gw")
            with pytest.raises(ConnectFailed, match="it refuses the connection") as caught:
                await client.connect(timeout=PATIENCE)
            assert "wrong" not in str(caught.value)

    _run(scenario)


def test_a_refused_filter(tmp_path: Path) -> None:
    (tmp_path / "acl").write_text("topic readwrite allowed/#\n")

    async def scenario() -> None:
        port = free_port()
        async with _embedded(port, "--acl", str(tmp_path / "acl")):
            client = open_client(f"mqtt://127.0.0.1:{port}", "gw")
            got: list[Message] = []
            client.on_messages(got.extend)
            await client.connect()
            with pytest.raises(SubscribeRefused, match="forbidden"):
                await client.subscribe("allowed/a", "forbidden/b")
            await client.publish("allowed/a", b"x").wait(PATIENCE)
            await _until(lambda: len(got) == 1)
            await client.close()

    _run(scenario)


def test_the_queue_is_bounded() -> None:
    async def scenario() -> None:
        url = f"mqtt://127.0.0.1:{free_port()}"
        client = open_client(url, "full", max_pending=3, max_pending_bytes=100)
        await client.connect(timeout=None)
        tickets = [client.publish("t", b"x") for _ in range(3)]
        with pytest.raises(QueueFull, match="3 messages"):
            client.publish("t", b"x")
        await client.close()
        for ticket in tickets:
            with pytest.raises(ClientClosed):
                await ticket.wait(1)

    _run(scenario)


def test_bad_arguments(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client = open_client(broker.url, "arguments")
        await client.connect()
        with pytest.raises(ValueError, match="wildcard"):
            client.publish("a/#", b"")
        with pytest.raises(ValueError, match="qos 2"):
            client.publish("a", b"", qos=2)
        with pytest.raises(ValueError, match="qos 2"):
            await client.subscribe("a", qos=2)
        with pytest.raises(ValueError, match="filter"):
            await client.subscribe("a#")
        with pytest.raises(RuntimeError, match="already started"):
            await client.connect()
        await client.close()
        await client.close()
        with pytest.raises(ClientClosed):
            await client.subscribe("a")

    _run(scenario)


def test_a_close_flushes_and_leaves_no_will(broker: BrokerProcess) -> None:
    with RawClient(broker.port, "watcher") as watcher:
        watcher.open()
        watcher.subscribe(("close/#", 1))

        async def scenario() -> None:
            client = open_client(broker.url, "closing", will=Will("close/will", b"dead"))
            await client.connect()
            for number in range(500):
                client.publish("close/a", b"%d" % number)
            await client.close()
            assert client.pending() == 0

        _run(scenario)
        assert [int(m.payload) for m in watcher.wait_for(500)] == list(range(500))
        assert watcher.sync() == []


def test_a_close_leaves_no_socket_open(broker: BrokerProcess) -> None:
    process = psutil.Process()

    async def scenario() -> None:
        before = process.num_fds()
        client = open_client(broker.url, "leaver")
        await client.connect()
        assert process.num_fds() >= before + 3, "a connection, and a pair that wakes its thread"
        await client.close()
        assert process.num_fds() == before

    asyncio.run(scenario())


def test_two_clients_with_one_id_do_not_spin(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        clients = [open_client(broker.url, "twin") for _ in range(2)]
        downs: list[bool] = []
        for client in clients:
            client.on_connection(lambda up: None if up else downs.append(up))
            await client.connect()
        await _until(lambda: bool(downs))
        await asyncio.sleep(3)  # time passes: attempts in so long
        # 0.2 s between attempts would make about thirty of them; the wait doubles each time.
        assert len(downs) <= 10
        for client in clients:
            await client.close()

    _run(scenario)


def test_a_kept_session_gets_what_it_missed(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        writer = open_client(broker.url, "kept-writer")
        await writer.connect()
        got: list[Message] = []
        for _ in range(2):
            reader = open_client(broker.url, "kept-reader", clean=False)
            reader.on_messages(got.extend)
            await reader.connect()
            await reader.subscribe("kept/#")
            await reader.close()
            await writer.publish("kept/a", b"missed").wait(PATIENCE)
        assert len(got) >= 1
        await writer.close()

    _run(scenario)


@pytest.mark.parametrize("kind", ["embedded", "mosquitto"])
def test_what_is_not_acknowledged_by_hand_comes_again_and_what_is_does_not(
    kind: Preference, tmp_path: Path
) -> None:
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("Mosquitto is not installed")

    async def life(url: str, heard: list[Message]) -> MessageClient:
        client = open_client(url, "lander", clean=False, acknowledges_by_hand=True)
        client.on_messages(heard.extend)
        await client.connect()
        return client

    async def scenario() -> None:
        first: list[Message] = []
        client = await life(place.url, first)
        assert not client.session_kept
        await client.subscribe("$share/landers/t/+")
        sender = open_client(place.url, "sender")
        await sender.connect()
        for number in range(1_000):
            sender.publish("t/1", b"%d" % number)
        await _until(lambda: len(first) == 1_000)  # all in flight: no window holds them back
        client.acknowledge([message.receipt for message in first[:600]])
        await client.close()

        again: list[Message] = []
        client = await life(place.url, again)
        assert client.session_kept
        client.acknowledge([message.receipt for message in first])  # of the connection before
        await _until(lambda: len(again) == 400)
        assert [message.payload for message in again] == [b"%d" % n for n in range(600, 1_000)]
        client.acknowledge([message.receipt for message in again])
        await client.close()
        await sender.close()

        none: list[Message] = []
        client = await life(place.url, none)
        await client.subscribe("end")
        await client.publish("end", b"").wait(5)
        await _until(lambda: bool(none))
        assert [message.topic for message in none] == ["end"]
        await client.close()

    with BrokerProcess(kind, tmp_path) as place:
        _run(scenario)


def test_a_peer_that_is_not_a_broker() -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            client = open_client(f"mqtt://127.0.0.1:{port}", "fooled", keepalive=2)
            with pytest.raises(ConnectFailed, match="not connected within"):
                await client.connect(timeout=0.5)

    _run(scenario)


def test_a_failing_callback_is_reported(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        reported: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, c: reported.append(c))
        client = open_client(broker.url, "failing")
        got: list[Message] = []
        client.on_messages(lambda _: 1 / 0)  # type: ignore[arg-type]
        client.on_messages(got.extend)
        await client.connect()
        await client.subscribe("failing")
        client.publish("failing", b"x")
        await _until(lambda: len(got) == 1)
        assert isinstance(reported[0]["exception"], ZeroDivisionError)
        await client.close()

    _run(scenario)


def test_a_defect_on_the_network_thread_costs_the_connection_and_no_more(
    broker: BrokerProcess,
) -> None:
    async def scenario() -> None:
        client = open_client(broker.url, "defect")
        got: list[bytes] = []
        links: list[bool] = []
        defects = [ZeroDivisionError("a defect")]

        def arrive(_message: Message) -> None:
            if defects:
                raise defects.pop()

        client.on_arrival(arrive)
        client.on_messages(lambda burst: got.extend(message.payload for message in burst))
        client.on_connection(links.append)
        await client.connect()
        await client.subscribe("defect")
        client.publish("defect", b"met", qos=0)
        await _until(lambda: links == [True, False, True])
        client.publish("defect", b"after")
        await _until(lambda: b"after" in got)
        await client.close()

    _run(scenario)


@pytest.mark.parametrize("says_no", [True, False])
def test_a_broker_that_knows_no_mqtt_5_is_spoken_to_in_3(says_no: bool) -> None:
    """It refuses the version, or hangs up, as old ones do."""
    versions: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readexactly(9)
        versions.append(head[8])
        if head[8] == 4:
            await reader.readexactly(head[1] - 7)
            writer.write(b"\x20\x02\x00\x00")
            # The publish: fixed header, topic "t", id, payload.
            publish = await reader.readexactly(2 + 2 + 1 + 2 + 1)
            writer.write(b"\x40\x02" + publish[5:7])
            await reader.read(100)
        elif says_no:
            writer.write(b"\x20\x02\x00\x01")
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            client = open_client(f"mqtt://127.0.0.1:{port}", "old", prefers_5=True)
            await client.connect()
            assert client.failure is None
            ticket = client.publish("t", b"x")
            await ticket.wait(PATIENCE)
            assert ticket.refusal == ""
            assert versions == [5, 4]
            await client.close()

    _run(scenario)


def test_a_publish_that_the_broker_forbids_is_told_with_mqtt_5(tmp_path: Path) -> None:
    (tmp_path / "acl").write_text("topic readwrite allowed/#\n")

    async def scenario() -> None:
        port = free_port()
        async with _embedded(port, "--acl", str(tmp_path / "acl")):
            for prefers_5 in (True, False):
                client = open_client(f"mqtt://127.0.0.1:{port}", "gw", prefers_5=prefers_5)
                got: list[Message] = []
                client.on_messages(got.extend)
                await client.connect()
                await client.subscribe("allowed/#")
                tickets = [client.publish(t, b"x") for t in ("allowed/a", "other/b", "allowed/c")]
                for ticket in tickets:
                    await ticket.wait(PATIENCE)
                told = "the broker's access list forbids it (0x87 not authorized)"
                assert [t.refusal for t in tickets] == ["", told if prefers_5 else "", ""]
                await _until(lambda got=got: len(got) == 2)  # type: ignore[misc]
                await client.close()

    _run(scenario)


def test_the_broker_says_how_many_publishes_may_wait_for_their_acknowledgement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paho_client, "_FLUSH_TIMEOUT", 0.01)
    unanswered = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal unanswered
        head = await reader.readexactly(2)
        await reader.readexactly(head[1])
        writer.write(b"\x20\x06\x00\x00\x03\x21\x00\x03")  # receive maximum 3
        for number in range(1, 4):
            await reader.readexactly(9)
            unanswered = number
        await reader.read(100)
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            client = open_client(f"mqtt://127.0.0.1:{port}", "small", prefers_5=True)
            await client.connect()
            for _ in range(10):
                client.publish("t", b"x")
            await _until(lambda: unanswered == 3)
            assert isinstance(client, MqttClient)
            assert len(client._outbox._sent) == 3
            await client.close()

    _run(scenario)


def test_a_kept_session_is_refused_with_mqtt_5() -> None:
    with pytest.raises(ValueError, match="session that is kept"):
        open_client("mqtt://127.0.0.1", "kept", clean=False, prefers_5=True)
