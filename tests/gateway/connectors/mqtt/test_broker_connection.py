"""Versions, logins, certificates and qualities of service, against real brokers."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from broker.broker_launch import Preference
from broker.broker_testing import BrokerProcess
from gateway.connectors.mqtt.mqtt_connector import MqttConnector
from host.mqtt import open_client
from tests.gateway.connectors.mqtt.secured_broker import (
    PASSWORD,
    USER,
    SecuredBroker,
    mosquitto_folder,
    without_version_5,
)
from tests.gateway.connectors.serving import Served, in_loop, serving, until

pytestmark = pytest.mark.broker

COUNTED = """
CREATE SOURCE counted (device TEXT, n INTEGER)
WITH (connector = 'mqtt', endpoint = 'home', topic = 'count/{device}'%s)
"""


def counted(more: str = "") -> str:
    return COUNTED % more


async def publish(address: str, *messages: tuple[str, str], retain: bool = False) -> None:
    client = open_client(address, "device")
    await client.connect()
    for ticket in [client.publish(topic, text.encode(), retain=retain) for topic, text in messages]:
        await ticket.wait(30)
    await client.close()


async def until_subscribed(served: Served) -> None:
    await until(lambda: any("subscribed" in note for note in served.notes))


async def fault(endpoint: Mapping[str, object]) -> str:
    """Return what a connector says that is not let in."""
    async with serving(MqttConnector(), endpoint, counted()) as served:
        assert served.task is not None
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(asyncio.shield(served.task), 30)
            pytest.fail("it was let in")
        return str(served.task.exception())


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(b"\x20\x02\x00\x01", id="as 3.1.1 says it"),
        pytest.param(b"\x20\x03\x00\x84\x00", id="as 5 says it"),
    ],
)
@in_loop
async def test_a_broker_without_version_5_is_asked_in_3_1_1(tmp_path: Path, refusal: bytes) -> None:
    with BrokerProcess("embedded", tmp_path) as broker:
        async with without_version_5(broker.port, refusal) as address:
            async with serving(MqttConnector(), {"address": address}, counted()) as served:
                await until_subscribed(served)
                await publish(broker.url, ("count/d", '{"n": 1}'))
                assert await served.until_rows(1) == [("d", 1)]
            assert served.notes[0] == "the broker speaks MQTT 3.1.1 only"


@pytest.mark.parametrize(
    ("kind", "version", "connections"),
    [("mosquitto", "5", 1), ("mosquitto", "3.1.1", 2), ("embedded", "5", 2)],
)
@in_loop
async def test_a_broker_that_names_no_subscriptions_gets_more_connections(
    tmp_path: Path, kind: Preference, version: str, connections: int
) -> None:
    """The embedded one speaks MQTT 5 without subscription identifiers."""
    other = counted().replace("counted", "every").replace("count/{device}", "{room}/d")
    if kind == "mosquitto":
        mosquitto_folder(tmp_path)
    with BrokerProcess(kind, tmp_path) as broker:
        endpoint = {"address": broker.url, "version": version}
        async with serving(MqttConnector(), endpoint, f"{counted()};{other}") as served:
            await until_subscribed(served)
            await publish(broker.url, ("count/d", '{"n": 1}'), ("count/end", '{"n": 2}'))
            await served.until_rows(3)
        assert sorted((r.source, r.values["n"]) for r in served.readings) == [
            ("counted", 1),
            ("counted", 2),
            ("every", 1),
        ]
        over = "" if connections == 1 else f" over {connections} connections"
        assert served.notes == [f"subscribed to 2 topic filters of 2 sources{over}"]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@in_loop
async def test_a_password_lets_in_and_a_wrong_one_is_told_without_it(
    tmp_path: Path, version: str
) -> None:
    broker = SecuredBroker(tmp_path)
    with broker:
        endpoint = {"address": broker.address, "version": version, "username": USER}
        right = {**endpoint, "password": PASSWORD}
        async with serving(MqttConnector(), right, counted()) as served:
            await until_subscribed(served)
        for wrong in ({**endpoint, "password": "wrong-7"}, endpoint):
            said = await fault(wrong)
            assert f"broker mqtt://127.0.0.1:{broker.port}: " in said
            assert "not authori" in said.lower(), said
            assert "wrong-7" not in said


@in_loop
async def test_tls_with_an_authority_of_our_own_and_a_certificate_of_the_client(
    tmp_path: Path,
) -> None:
    broker = SecuredBroker(tmp_path, tls=True)
    with broker:
        certificate = broker.certificate("gw-1")
        endpoint = {"address": broker.address, **certificate}
        async with serving(MqttConnector(), endpoint, counted()) as served:
            await until_subscribed(served)
            async with serving(
                MqttConnector(), {**endpoint, "client_id": "two"}, counted()
            ) as other:
                await until_subscribed(other)
        assert "certificate" in await fault({"address": broker.address})
        only_ca = {"address": broker.address, "ca": certificate["ca"]}
        assert f"broker {broker.address}: " in await fault(only_ca)


@in_loop
async def test_retained_messages_are_ignored_where_a_source_says_so(tmp_path: Path) -> None:
    both = (counted(", retained = 'ignore'"), counted().replace("counted", "every"))
    with BrokerProcess("embedded", tmp_path) as broker:
        await publish(broker.url, ("count/old", '{"n": 1}'), retain=True)
        async with serving(MqttConnector(), {"address": broker.url}, ";".join(both)) as served:
            await served.until_rows(1)
            await publish(broker.url, ("count/new", '{"n": 2}'), retain=True)
            await served.until_rows(3)
        assert sorted((r.source, r.values["device"]) for r in served.readings) == [
            ("counted", "new"),
            ("every", "new"),
            ("every", "old"),
        ]


@pytest.mark.parametrize(("qos", "again"), [(0, 0), (1, 20)])
@in_loop
async def test_what_was_not_kept_comes_again_with_qos_1_only(
    tmp_path: Path, qos: int, again: int
) -> None:
    with BrokerProcess("mosquitto", mosquitto_folder(tmp_path)) as broker:
        endpoint = {"address": broker.url}
        text = counted(f", qos = {qos}")
        async with serving(MqttConnector(), endpoint, text) as first:
            await until_subscribed(first)
            first.may_keep.clear()
            await publish(broker.url, *((f"count/d{n}", f'{{"n": {n}}}') for n in range(20)))
            await until(lambda: bool(first.readings))
        async with serving(MqttConnector(), endpoint, text) as second:
            await until_subscribed(second)
            await publish(broker.url, ("count/last", '{"n": -1}'))
            await until(lambda: any(r.values["n"] == -1 for r in second.readings))
        assert len([r for r in second.readings if r.values["n"] != -1]) == again
