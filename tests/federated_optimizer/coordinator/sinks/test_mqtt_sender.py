"""Messages of sinks on real brokers: retained, in order, again after the broker has restarted."""

import asyncio
import functools
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import PATIENCE, BrokerProcess
from broker.free_ports import free_port
from federated_optimizer.coordinator.sinks import mqtt_sender
from federated_optimizer.coordinator.sinks.mqtt_sender import BrokerTarget, MqttSender
from federated_optimizer.coordinator.sinks.outgoing import Outgoing
from federated_optimizer.coordinator.sinks.sink_topics import retained_topics
from host.mqtt import Message, MessageClient, open_client
from streamsql.catalog.sink_definitions import SinkConnector, SinkDefinition, SinkMode
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
        assert sender.problem.startswith("the broker is not connected: ")
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


class Forbidden:
    """Receipt of a message that the broker did not take."""

    refusal = "the broker's access list forbids it"

    def done(self) -> bool:
        return True

    async def wait(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Nothing to wait for."""


def test_topics_that_a_broker_did_not_empty_are_emptied_at_the_next_connection(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        client = open_client(broker.url, "sinks", keepalive=5)
        await client.connect()
        cleared: list[str] = []
        target = target_of(client, cleared)
        with monkeypatch.context() as forbidding:
            forbidding.setattr(client, "publish", lambda *_args, **_options: Forbidden())
            target.clear(["free/a", "free/b"])
            await target.until_clear()
        assert cleared == []
        assert target.uncleared.startswith("2 retained topics of dropped sinks not emptied: ")
        await asyncio.to_thread(broker.stop, signal.SIGKILL)
        await until(lambda: not client.connected)
        await asyncio.to_thread(broker.start)
        await target.until_ready()
        await until(lambda: cleared == ["free/a", "free/b"])
        assert target.uncleared == ""
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


@pytest.fixture(params=["embedded", "mosquitto"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Address of a broker whose access list allows `free/#`, but not `homeassistant/#`."""
    port = free_port()
    rules = tmp_path / "acl"
    rules.write_text("topic write free/#\ntopic write mark\ntopic read #\n")
    if request.param == "embedded":
        command = [sys.executable, "-m", "broker.embedded", "--port", str(port)]
        command += ["--acl", str(rules)]
    else:
        found = find_mosquitto()
        if found is None:
            pytest.skip("mosquitto is not installed")
        rules.chmod(0o644)
        config = tmp_path / "mosquitto.conf"
        config.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nacl_file {rules}\nuser root\n"
        )
        command = [str(found), "-c", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield f"mqtt://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def test_a_topic_that_the_access_list_forbids_is_no_delivery(guarded: str) -> None:
    async def scenario() -> None:
        client = open_client(guarded, "sinks", prefers_5=True)
        await client.connect(timeout=PATIENCE)
        target = target_of(client)
        forbidden = MqttSender(replace(UPSERTS, topic="taken/{desk}"), SCHEMA, target)
        batch = [Outgoing((name,), (name, 1)) for name in "ab"]
        refused = await forbidden.send(batch)
        assert [refusal.message for refusal in refused] == batch
        assert refused[0].reason == (
            "topic 'taken/a': the broker's access list forbids it (0x87 not authorized)"
        )
        assert forbidden.problem == refused[0].reason
        allowed = MqttSender(UPSERTS, SCHEMA, target)
        assert await allowed.send(batch) == []
        assert allowed.problem == ""
        described = MqttSender(replace(UPSERTS, discovery="homeassistant"), SCHEMA, target)
        for _ in range(2):  # and each time it tries to describe the key
            (refused_one,) = await described.send(batch[:1])
            assert "topic 'homeassistant/sensor/pando_free_a_" in refused_one.reason
        await retained(guarded, {"free/a": {"desk": "a", "n": 1}, "free/b": {"desk": "b", "n": 1}})
        await target.close()

    run(scenario)


def test_topics_that_the_access_list_does_not_let_us_empty_are_named(guarded: str) -> None:
    async def scenario() -> None:
        client = open_client(guarded, "sinks", prefers_5=True)
        await client.connect(timeout=PATIENCE)
        cleared: list[str] = []
        target = target_of(client, cleared)
        target.clear(["taken/a", "free/b"])
        sender = MqttSender(UPSERTS, SCHEMA, target)
        assert await sender.send([Outgoing(("a",), ("a", 1))]) == [], "nobody waits for them"
        assert cleared == ["free/b"]
        assert sender.problem == (
            "1 retained topic of dropped sinks not emptied: topic 'taken/a': the broker's access "
            "list forbids it (0x87 not authorized); once the broker allows it, the next connection "
            "empties them"
        )
        await target.close()

    run(scenario)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mqtt://no-such-host.invalid", "the host name 'no-such-host.invalid' is not known"),
        ("mqtt://127.0.0.1:1", "nothing listens there"),
    ],
)
def test_why_a_broker_is_not_connected_is_told(url: str, reason: str) -> None:
    async def scenario() -> None:
        client = open_client(url, "sinks")
        await client.connect(timeout=None)
        target = target_of(client)
        await until(lambda: reason in target.problem)
        assert target.problem.startswith("the broker is not connected: ")
        await target.close()

    run(scenario)


def test_a_wrong_password_is_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "passwords").write_text("someone:$7$101$AAAA$AAAA\n")
    port = free_port()
    command = [sys.executable, "-m", "broker.embedded", "--port", str(port)]
    process = subprocess.Popen([*command, "--passwords", str(tmp_path / "passwords")])

    async def scenario() -> None:
        client = open_client(f"mqtt://someone:wrong@127.0.0.1:{port}", "someone")
        await client.connect(timeout=None)
        target = target_of(client)
        await until(lambda: "it refuses the connection: " in target.problem)
        assert "wrong" not in target.problem
        await target.close()

    try:
        run(scenario)
    finally:
        process.terminate()
        process.wait(30)
