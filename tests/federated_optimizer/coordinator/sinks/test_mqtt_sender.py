"""Messages of sinks on real brokers: retained, in order, again after the broker has restarted."""

import asyncio
import functools
import json
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import PATIENCE, BrokerProcess
from federated_optimizer.coordinator.sinks import mqtt_sender
from federated_optimizer.coordinator.sinks.mqtt_sender import BrokerTarget, MqttSender
from federated_optimizer.coordinator.sinks.outgoing import Outgoing
from federated_optimizer.coordinator.sinks.retained_topics import retained_topics
from host.mqtt import Message, MessageClient, open_client
from streamsql.catalog.sinks import SinkConnector, SinkDefinition, SinkMode
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

pytestmark = pytest.mark.broker

SCHEMA = Schema.of(("desk", DataType.TEXT), ("n", DataType.INTEGER))
UPSERTS = SinkDefinition(
    *("free", "SELECT", SinkConnector.MQTT, SinkMode.UPSERT), key=("desk",), topic="free/{desk}"
)
STREAM = SinkDefinition(
    *("free", "SELECT", SinkConnector.MQTT, SinkMode.APPEND), topic="free/{desk}"
)


@pytest.fixture(params=["embedded", "mosquitto"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    kind = cast("Preference", request.param)
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    with BrokerProcess(kind, tmp_path) as process:
        yield process


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await scenario()

    asyncio.run(bounded())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the conditions have no event of their own
        await asyncio.sleep(0.01)


async def retained(url: str, expected: dict[str, Any]) -> None:
    """Wait until a new subscriber is told exactly this."""
    while True:
        reader = open_client(url, "reader")
        messages: list[Message] = []
        reader.on_messages(messages.extend)
        await reader.connect()
        await reader.subscribe("#")
        # Retained messages come before those that are published afterwards.
        marker = open_client(url, "marker")
        await marker.connect()
        await marker.publish("mark", b"1", retain=False).wait()
        await marker.close()
        await until(functools.partial(_is_marked, messages))
        found = {m.topic: json.loads(m.payload) for m in messages if m.retain}
        await reader.close()
        if found == expected:
            return


def _is_marked(messages: list[Message]) -> bool:
    return any(message.topic == "mark" for message in messages)


def target_of(client: MessageClient, cleared: list[str] | None = None) -> BrokerTarget:
    noted = cleared if cleared is not None else []
    return BrokerTarget("the broker", client, noted.append, owns_client=True)


def test_the_newest_row_of_each_key_is_retained(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client = open_client(broker.url, "sinks")
        await client.connect()
        target = target_of(client)
        sender = MqttSender(UPSERTS, SCHEMA, target)
        keys = [f"d/{number}" for number in range(1_000)]
        for n in (1, 2):
            for begin in range(0, 1_000, 250):
                part = keys[begin : begin + 250]
                assert await sender.send([Outgoing((k,), (k, n)) for k in part]) == []
        assert await sender.send([Outgoing((key,), None) for key in keys[2:]]) == []
        rows = {f"free/d%2F{n}": {"desk": f"d/{n}", "n": 2} for n in (0, 1)}
        await retained(broker.url, rows)
        await target.close()

    run(scenario)


def test_messages_wait_for_a_broker_that_restarts(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client = open_client(broker.url, "sinks", keepalive=5)
        await client.connect()
        target = target_of(client)
        sender = MqttSender(UPSERTS, SCHEMA, target)
        assert await sender.send([Outgoing(("a",), ("a", 1))]) == []
        await asyncio.to_thread(broker.stop, signal.SIGKILL)
        await until(lambda: not client.connected)
        assert sender.problem == "the broker is not connected"
        sending = asyncio.create_task(sender.send([Outgoing(("a",), ("a", 2))]))
        await asyncio.sleep(0)
        assert not sending.done()
        await asyncio.to_thread(broker.start)
        assert await sending == []
        await retained(broker.url, {"free/a": {"desk": "a", "n": 2}})
        await target.close()

    run(scenario)


def test_rows_of_a_stream_come_once_in_their_order_and_are_not_retained(
    broker: BrokerProcess,
) -> None:
    async def scenario() -> None:
        reader = open_client(broker.url, "reader")
        heard: list[int] = []
        reader.on_messages(lambda burst: heard.extend(json.loads(m.payload)["n"] for m in burst))
        await reader.connect()
        await reader.subscribe("free/+")
        client = open_client(broker.url, "sinks")
        await client.connect()
        target = target_of(client)
        sender = MqttSender(STREAM, SCHEMA, target)
        batch = [Outgoing(row=("a", n), number=n) for n in range(250)]
        assert await sender.send(batch) == []
        await until(lambda: len(heard) >= 250)
        assert heard == list(range(250))
        await retained(broker.url, {})
        await target.close()
        await reader.close()

    run(scenario)


def test_topics_of_dropped_sinks_are_emptied_before_anything_is_sent(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_sender, "CLEARINGS", 3)

    async def scenario() -> None:
        client = open_client(broker.url, "sinks")
        await client.connect()
        cleared: list[str] = []
        target = target_of(client, cleared)
        sender = MqttSender(UPSERTS, SCHEMA, target)
        keys = [(name,) for name in "abcdefgh"]
        await sender.send([Outgoing(key, (*key, 1)) for key in keys])
        topics = retained_topics(UPSERTS, SCHEMA, keys)
        assert topics == [f"free/{name}" for name in "abcdefgh"]
        target.clear(topics)
        assert await sender.send([Outgoing(("c",), ("c", 2))]) == []
        assert cleared == topics
        await retained(broker.url, {"free/c": {"desk": "c", "n": 2}})
        await target.close()

    run(scenario)


def test_a_row_that_no_message_can_hold_is_refused(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client = open_client(broker.url, "sinks")
        await client.connect()
        target = target_of(client)
        sender = MqttSender(UPSERTS, SCHEMA, target)
        long = Outgoing(("x" * 2_000,), ("x" * 2_000, 1))
        good = Outgoing(("a",), ("a", 1))
        (refused,) = await sender.send([long, good])
        assert refused.message == long
        assert "characters" in refused.reason
        assert retained_topics(UPSERTS, SCHEMA, [long.key, good.key]) == ["free/a"]
        await retained(broker.url, {"free/a": {"desk": "a", "n": 1}})
        await target.close()

    run(scenario)
