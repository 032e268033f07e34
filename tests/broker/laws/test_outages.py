"""The broker stops, freezes or restarts under services that use the message client."""

import asyncio
import signal
import time
from collections.abc import Callable

import pytest

from broker.broker_testing import PATIENCE, BrokerProcess, RawClient
from host.mqtt import Message, open_client

pytestmark = pytest.mark.broker


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - the conditions have no event of their own
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_clients_survive_a_restart_and_keep_order(own_broker: BrokerProcess, number: int) -> None:
    async def scenario() -> None:
        writer = open_client(own_broker.url, "writer")
        reader = open_client(own_broker.url, "reader")
        got: list[Message] = []
        ups: list[bool] = []
        reader.on_messages(got.extend)
        reader.on_connection(ups.append)
        await writer.connect()
        await reader.connect()
        await reader.subscribe("t/#")
        writer.publish("t/kept", b"state", retain=True)
        await _until(lambda: len(got) == 1)

        await asyncio.to_thread(own_broker.stop, number)
        await _until(lambda: not writer.connected and not reader.connected)
        tickets = [writer.publish("t/a", str(n).encode()) for n in range(1_000)]
        assert writer.pending() == 1_000
        assert not tickets[0].done()
        await asyncio.to_thread(own_broker.start)
        await _until(lambda: reader.connected)
        for number_ in range(1_000, 1_100):
            writer.publish("t/a", str(number_).encode())
        await _until(lambda: writer.pending() == 0)
        assert tickets[-1].done()
        await _until(lambda: got[-1].payload == b"1099")
        numbers = [int(m.payload) for m in got if m.topic == "t/a"]
        # The reader may have come back after the first ones; from its first on nothing is missing.
        assert numbers == list(range(numbers[0], 1_100))
        assert ups == [True, False, True]

        late = open_client(own_broker.url, "late")
        seen: list[Message] = []
        late.on_messages(seen.extend)
        await late.connect()
        await late.subscribe("t/kept")
        await writer.publish("t/kept", b"live").wait(PATIENCE)
        await _until(lambda: bool(seen))
        assert [m.payload for m in seen] == [b"live"], (
            "retained messages are kept in memory only; gateways publish them again"
        )
        for client in (late, writer, reader):
            await client.close()

    asyncio.run(scenario())


def test_clients_survive_a_frozen_broker(own_broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client = open_client(own_broker.url, "client", keepalive=2)
        got: list[Message] = []
        client.on_messages(got.extend)
        await client.connect()
        await client.subscribe("t")
        own_broker.freeze()
        ticket = client.publish("t", b"while frozen")
        with pytest.raises(TimeoutError):
            await ticket.wait(0.5)
        await _until(lambda: not client.connected)  # no answer to pings
        own_broker.thaw()
        await ticket.wait(PATIENCE)
        await _until(lambda: b"while frozen" in [m.payload for m in got])
        await client.close()

    asyncio.run(scenario())


def test_a_short_freeze_declares_nobody_dead(own_broker: BrokerProcess) -> None:
    with RawClient(own_broker.port, "reader") as reader, RawClient(own_broker.port, "v") as victim:
        reader.open()
        reader.subscribe(("state", 1))
        victim.open(keepalive=2, will=("state", b"dead", 1, False))
        victim.sync()
        own_broker.freeze()
        time.sleep(1)  # time passes: longer than the keep-alive
        victim.send(b"\xc0\0")
        time.sleep(3)  # time passes: longer than the keep-alive
        own_broker.thaw()
        victim.expect(13)
        assert reader.sync() == []


def test_the_broker_ends_cleanly_on_sigterm(own_broker: BrokerProcess) -> None:
    with RawClient(own_broker.port, "reader", 5) as reader:
        reader.open()
        assert own_broker.stop() == 0
        assert reader.wait_closed() in {None, 0x8B}
