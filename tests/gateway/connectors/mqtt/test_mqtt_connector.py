"""The MQTT connector against real brokers."""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from gateway.connectors.mqtt import broker_connection, subscribed_line
from gateway.connectors.mqtt.mqtt_connector import MqttConnector
from host.mqtt import Message, open_client
from host.mqtt.topic_filters import matches
from streamsql.mapping.topic_pattern import TopicPattern
from tests.gateway.connectors.serving import Served, serving, until

pytestmark = pytest.mark.broker

CLIMATE = """
CREATE SOURCE climate (
  device TEXT,
  temperature DOUBLE FROM 'AM2301.Temperature',
  KEY (device)
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{device}/SENSOR')
"""
DOOR = """
CREATE SOURCE door (
  device TEXT,
  contact BOOLEAN,
  KEY (device)
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'zigbee2mqtt/{device}',
        availability = 'zigbee2mqtt/{device}/availability')
"""


@pytest.fixture(params=["embedded", "mosquitto"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    kind = cast("Preference", request.param)
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    with BrokerProcess(kind, tmp_path) as process:
        yield process


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(bounded())


async def publish(url: str, *messages: tuple[str, str], retain: bool = False) -> None:
    client = open_client(url, "device")
    await client.connect()
    tickets = [client.publish(topic, text.encode(), retain=retain) for topic, text in messages]
    for ticket in tickets:
        await ticket.wait(30)
    await client.close()


async def subscribed(served: Served, url: str, topic: str, text: str) -> None:
    """Wait until a message reaches the connector; it may not have subscribed yet."""
    async with asyncio.timeout(30):
        while not served.readings:
            await publish(url, (topic, text))
            await asyncio.sleep(0.05)
    served.readings.clear()
    served.steps.clear()


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_messages_become_readings(broker: BrokerProcess, version: str) -> None:
    async def scenario() -> None:
        endpoint = {"address": broker.url, "version": version}
        await publish(
            broker.url, ("tele/old/SENSOR", '{"AM2301": {"Temperature": 1}}'), retain=True
        )
        async with serving(MqttConnector(), endpoint, CLIMATE) as served:
            await until(lambda: bool(served.readings))
            await publish(
                broker.url,
                ("tele/th1/SENSOR", '{"AM2301": {"Temperature": 21.5}}'),
                ("tele/th1/STATE", '{"AM2301": {"Temperature": 99}}'),
                ("tele/th2/SENSOR", "no JSON"),
                ("tele/th3/SENSOR", '{"AM2301": {"Temperature": "-3.25"}}'),
            )
            await until(lambda: len(served.readings) >= 3 and bool(served.problems))
        assert served.rows == [("old", 1.0), ("th1", 21.5), ("th3", -3.25)]
        assert [reading.sensor for reading in served.readings] == ["old", "th1", "th3"]
        assert len(served.problems) == 1, served.problems

    run(scenario)


def test_filters_whose_numbers_are_equal_are_both_subscribed_to(broker: BrokerProcess) -> None:
    """Numbers are checksums: they name a filter in every life, and two may have the same."""
    topics = ("home/ogrhiv", "home/sdcqzu")
    text = ";".join(
        f"CREATE SOURCE s{n} (topic TEXT FROM '@topic', n INTEGER) "
        f"WITH (connector = 'mqtt', endpoint = 'home', topic = '{topic}')"
        for n, topic in enumerate(topics)
    )

    async def scenario() -> None:
        async with serving(MqttConnector(), {"address": broker.url}, text) as served:
            await until(lambda: bool(served.notes))
            await publish(broker.url, *((topic, '{"n": 1}') for topic in topics))
            await until(lambda: len(served.readings) == 2)
        assert {(r.source, r.values["topic"]) for r in served.readings} == {
            ("s0", topics[0]),
            ("s1", topics[1]),
        }

    run(scenario)


OVERLAPPING = {
    "every": "a/#",
    "same": "a/#",
    "one": "a/{device}",
    "x": "+/x",
    "wide": "#",
    "first": "{room}/{device}",
}


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("without", ["nothing", "wide", "wide, every, same", "first, wide"])
def test_each_source_gets_each_message_once(
    broker: BrokerProcess, version: str, without: str
) -> None:
    """Filters that are equal, cover each other or overlap give no row twice."""
    left_out = without.split(", ")
    patterns = {name: text for name, text in OVERLAPPING.items() if name not in left_out}
    text = ";".join(
        f"CREATE SOURCE {name} (topic TEXT FROM '@topic', n INTEGER) "
        f"WITH (connector = 'mqtt', endpoint = 'home', topic = '{pattern}')"
        for name, pattern in patterns.items()
    )
    shared = (
        "CREATE SOURCE shared (topic TEXT FROM '@topic', n INTEGER) "
        "WITH (connector = 'mqtt', endpoint = 'home', topic = 'a/{device}', share = 'g')"
    )
    topics = {1: "a/x", 2: "b/x", 3: "a/b/c", 4: "a/last"}

    async def scenario() -> None:
        endpoint = {"address": broker.url, "version": version}
        async with serving(MqttConnector(), endpoint, f"{text};{shared}") as served:
            await until(lambda: bool(served.notes))
            await publish(broker.url, *((topic, f'{{"n": {n}}}') for n, topic in topics.items()))

            def last() -> set[str]:
                return {r.source for r in served.readings if r.values["n"] == 4}

            expected = {name for name, pattern in patterns.items() if pattern != "+/x"}
            await until(lambda: last() == {*expected, "shared"})
        rows = sorted((r.source, r.values["n"]) for r in served.readings)
        filters = {name: TopicPattern(pattern).filter for name, pattern in patterns.items()}
        assert rows == sorted(
            (name, n)
            for name, topic_filter in {**filters, "shared": "a/+"}.items()
            for n, topic in topics.items()
            if matches(topic_filter, topic)
        )

    run(scenario)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_subscription_of_an_earlier_life_is_ended(broker: BrokerProcess, version: str) -> None:
    """The broker keeps subscriptions with the session: a message would come once for each."""
    former, now = (
        ";".join(
            f"CREATE SOURCE {name} (n INTEGER) "
            f"WITH (connector = 'mqtt', endpoint = 'home', topic = '{topic}')"
            for name, topic in patterns.items()
        )
        for patterns in ({"s": "a/#", "t": "+/x"}, {"s": "+/x"})
    )

    async def scenario() -> None:
        endpoint = {"address": broker.url, "version": version}
        async with serving(MqttConnector(), endpoint, former) as first:
            await until(lambda: any("subscribed" in note for note in first.notes))
        memory = first.memories[-1]
        second = Served(memory=memory)
        async with serving(MqttConnector(), endpoint, now, served=second):
            await until(lambda: any("subscribed" in note for note in second.notes))
            await publish(broker.url, ("a/x", '{"n": 1}'), ("a/y", '{"n": 2}'), ("b/x", '{"n": 3}'))
            await until(lambda: ("n", 3) in {("n", r.values["n"]) for r in second.readings})
        assert second.rows == [(1,), (3,)]
        assert second.memories == [{"filters": [["+/x"]]}]

    run(scenario)


def test_nothing_is_acknowledged_before_it_is_kept(broker: BrokerProcess) -> None:
    """What was not kept comes again, to the next life of the connector."""

    async def scenario() -> None:
        endpoint = {"address": broker.url}
        async with serving(MqttConnector(), endpoint, CLIMATE) as first:
            await until(lambda: bool(first.notes))
            first.may_keep.clear()
            await publish(
                broker.url,
                *(
                    (f"tele/d{n}/SENSOR", f'{{"AM2301": {{"Temperature": {n}}}}}')
                    for n in range(50)
                ),
            )
            await until(lambda: bool(first.readings))
        async with serving(MqttConnector(), endpoint, CLIMATE) as second:
            await until(lambda: len({r.sensor for r in second.readings}) >= 50)
        assert {r.sensor for r in second.readings} == {f"d{n}" for n in range(50)}

    run(scenario)


def test_what_is_kept_while_a_connector_stops_does_not_come_again(broker: BrokerProcess) -> None:
    """As when another source of the same broker is added."""

    async def scenario() -> None:
        endpoint = {"address": broker.url}
        async with serving(MqttConnector(), endpoint, CLIMATE) as first:
            await until(lambda: bool(first.notes))
            first.may_keep.clear()
            await publish(broker.url, ("tele/d/SENSOR", '{"AM2301": {"Temperature": 1}}'))
            await until(lambda: bool(first.readings))
            asyncio.get_running_loop().call_later(0.1, first.may_keep.set)
        async with serving(MqttConnector(), endpoint, CLIMATE) as second:
            await until(lambda: bool(second.notes))
            await publish(broker.url, ("tele/d/SENSOR", '{"AM2301": {"Temperature": 2}}'))
            await until(lambda: ("d", 2.0) in second.rows)
        assert second.rows == [("d", 2.0)]

    run(scenario)


def test_a_device_that_goes_takes_its_rows_with_it(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with serving(MqttConnector(), {"address": broker.url}, DOOR) as served:
            await subscribed(served, broker.url, "zigbee2mqtt/front", '{"contact": true}')
            await publish(
                broker.url,
                ("zigbee2mqtt/front", '{"contact": false}'),
                ("zigbee2mqtt/back", '{"contact": true}'),
                ("zigbee2mqtt/front/availability", '{"state": "online"}'),
                ("zigbee2mqtt/front/availability", '{"state": "offline"}'),
                ("zigbee2mqtt/back/availability", "Offline"),
            )
            await until(lambda: sum(r.delete for r in served.readings) == 2)
        gone = [(r.values, r.matching) for r in served.readings if r.delete]
        assert gone == [({"device": "front"}, True), ({"device": "back"}, True)]

    run(scenario)


def test_a_lost_broker_ends_the_connector_in_words(broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with serving(MqttConnector(), {"address": broker.url}, CLIMATE) as served:
            await subscribed(
                served, broker.url, "tele/th0/SENSOR", '{"AM2301": {"Temperature": 0}}'
            )
            broker.stop()
            assert served.task is not None
            with pytest.raises(ConnectionError, match=r"broker mqtt://127\.0\.0\.1:\d+: "):
                await asyncio.wait_for(asyncio.shield(served.task), 30)
        async with serving(MqttConnector(), {"address": broker.url}, CLIMATE) as served:
            assert served.task is not None
            with pytest.raises(ConnectionError, match="nothing listens there"):
                await asyncio.wait_for(asyncio.shield(served.task), 30)

    run(scenario)


def test_a_flood_is_read_no_faster_than_it_is_kept(broker: BrokerProcess) -> None:
    """While nothing is kept, a bounded number of messages is taken from the broker."""

    async def scenario() -> None:
        async with serving(MqttConnector(), {"address": broker.url}, CLIMATE) as served:
            await until(lambda: bool(served.notes))
            served.may_keep.clear()
            many = [
                (f"tele/d{n % 10}/SENSOR", f'{{"AM2301": {{"Temperature": {n}}}}}')
                for n in range(4_000)
            ]
            await publish(broker.url, *many)
            await until(lambda: bool(served.readings))
            assert len(served.readings) <= 2_000
            served.may_keep.set()
            await until(lambda: len(served.readings) >= 4_000)
        assert [r.values["temperature"] for r in served.readings] == list(range(4_000))

    run(scenario)


MESH = """
CREATE SOURCE mesh (answer INTEGER)
WITH (connector = 'mqtt', endpoint = 'home', topic = 'bridge/response/networkmap',
      request = 'bridge/request/networkmap', request_payload = '{"type": "raw"}',
      request_every = '%s')
"""


def test_many_retained_messages_are_read_before_the_last_subscription_is_answered(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribed_line, "MAX_WAITING", 100)
    monkeypatch.setattr(broker_connection, "CONNECT_SECONDS", 2.0)

    async def scenario() -> None:
        rooms = [(f"zigbee2mqtt/d{n}", '{"contact": true}') for n in range(1_000)]
        await publish(broker.url, *rooms, retain=True)
        async with serving(MqttConnector(), {"address": broker.url}, DOOR) as served:
            await served.until_rows(len(rooms))
            assert {row[0] for row in served.rows} == {f"d{n}" for n in range(len(rooms))}
            await publish(broker.url, ("zigbee2mqtt/d7/availability", "offline"))
            await until(lambda: served.readings[-1].delete)
            assert (served.readings[-1].values, served.problems) == ({"device": "d7"}, [])

    run(scenario)


def test_a_device_is_asked_again_until_it_answers_and_then_at_times(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Zigbee2MQTT, which publishes its network map when asked; two requests get lost."""
    monkeypatch.setattr("gateway.connectors.mqtt.mqtt_connector.ASK_AGAIN_SECONDS", 0.05)

    async def scenario(every: str) -> tuple[Served, list[bytes]]:
        asked: list[bytes] = []
        bridge = open_client(broker.url, "bridge")

        def hear(burst: list[Message]) -> None:
            for message in burst:
                asked.append(message.payload)
                if len(asked) > 2:
                    answer = json.dumps({"answer": len(asked)}).encode()
                    bridge.publish("bridge/response/networkmap", answer)

        bridge.on_messages(hear)
        await bridge.connect()
        await bridge.subscribe("bridge/request/networkmap")
        async with serving(MqttConnector(), {"address": broker.url}, MESH % every) as served:
            await until(lambda: len(served.readings) >= (1 if every == "1 h" else 2))
        await bridge.close()
        return served, asked

    async def both() -> None:
        served, asked = await scenario("1 h")
        assert served.rows == [(3,)]
        assert asked == [b'{"type": "raw"}'] * 3
        began = time.monotonic()
        served, _ = await scenario("1 s")
        assert [n for (n,) in served.rows] == [3, 4]
        assert time.monotonic() - began > 1, "it is asked once a second when it answers"

    run(both)


def test_shared_subscriptions_divide_the_messages(broker: BrokerProcess) -> None:
    shared = CLIMATE.replace("endpoint = 'home'", "endpoint = 'home', share = 'gateways'")

    async def scenario() -> None:
        endpoint = {"address": broker.url, "session_hours": 0}
        async with contextlib.AsyncExitStack() as stack:
            both = [
                await stack.enter_async_context(
                    serving(MqttConnector(), {**endpoint, "client_id": f"c{n}"}, shared)
                )
                for n in range(2)
            ]
            async with asyncio.timeout(30):
                while not all(served.readings for served in both):
                    await publish(broker.url, ("tele/w/SENSOR", '{"AM2301": {"Temperature": -1}}'))
                    await asyncio.sleep(0.05)
            await publish(
                broker.url,
                *(
                    (f"tele/d{n}/SENSOR", f'{{"AM2301": {{"Temperature": {n}}}}}')
                    for n in range(40)
                ),
            )

            def seen() -> list[object]:
                return [r.sensor for served in both for r in served.readings if r.sensor != "w"]

            await until(lambda: len(seen()) >= 40)
        assert sorted(map(str, seen())) == sorted(f"d{n}" for n in range(40))

    run(scenario)
