"""A device that goes takes its rows with it, whatever has happened since it spoke."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from broker.broker_testing import BrokerProcess
from gateway.connectors.testing.source_statements import definitions_of
from gateway.testing import until
from host.mqtt import open_client
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from tests.gateway.declared_world import World, run

pytestmark = pytest.mark.broker

SHELLY = """
CREATE SOURCE shelly (device TEXT, channel INTEGER, power DOUBLE, KEY (device, channel))
WITH (connector = 'mqtt', endpoint = 'home', topic = '{device}/status/switch:{channel}',
      availability = '{device}/online', offline = 'false')
"""
BY_SERIAL = """
CREATE SOURCE shelly (device TEXT, serial TEXT, KEY (serial))
WITH (connector = 'mqtt', endpoint = 'home', topic = '{device}/status',
      availability = '{device}/online', offline = 'false')
"""
PROBE = ("probe/status/switch:0", '{"power": 0}')


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    folder = tmp_path / "broker"
    folder.mkdir()
    with BrokerProcess("embedded", folder) as process:
        yield process


async def publish(url: str, *messages: tuple[str, str]) -> None:
    client = open_client(url, "device")
    await client.connect()
    for ticket in [client.publish(topic, text.encode()) for topic, text in messages]:
        await ticket.wait(30)
    await client.close()


async def until_read(
    world: World, broker: BrokerProcess, message: tuple[str, str], row: Row
) -> None:
    """Send a message until its row is there: the connector may not have subscribed yet."""
    async with asyncio.timeout(30):
        while row not in world.rows():
            await publish(broker.url, message)
            await asyncio.sleep(0.05)


def start(world: World, broker: BrokerProcess) -> None:
    world.begin(endpoints={"home": {"connector": "mqtt", "address": broker.url}})


@pytest.mark.parametrize("event", ["nothing", "broker", "alter", "gateway"])
def test_offline_withdraws_the_rows_of_an_earlier_connection(
    tmp_path: Path, broker: BrokerProcess, event: str
) -> None:
    (definition,) = definitions_of(SHELLY)

    async def scenario(world: World) -> None:
        start(world, broker)
        world.order(definition)
        world.query(definition)
        await until_read(world, broker, PROBE, ("probe", 0, 0.0))
        await publish(
            broker.url,
            ("plug/status/switch:0", '{"power": 1}'),
            ("plug/status/switch:1", '{"power": 2}'),
            ("lamp/status/switch:0", '{"power": 3}'),
        )
        await until(lambda: len(world.rows()) == 4, "the rows are there")
        await happen(world, broker, event, definition)
        await publish(broker.url, ("plug/online", "true"), ("plug/online", "false"))
        left = {("probe", 0, 0.0 if event == "nothing" else 9.0), ("lamp", 0, 3.0)}
        await until(lambda: world.rows() == left, "its rows are gone, those of others are not")

    run(tmp_path, scenario)


async def happen(
    world: World, broker: BrokerProcess, event: str, definition: SourceDefinition
) -> None:
    match event:
        case "broker":
            broker.stop()
            broker.start()
        case "alter":
            assert definition.mapping is not None
            qos = msgspec.structs.replace(
                definition.mapping, options=(*definition.mapping.options, ("qos", "0"))
            )
            world.order(msgspec.structs.replace(definition, version=2, mapping=qos))
        case "gateway":
            await world.end()
            start(world, broker)
        case _:
            return
    await until_read(world, broker, ("probe/status/switch:0", '{"power": 9}'), ("probe", 0, 9.0))


def test_a_device_is_found_by_a_column_that_is_no_key(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    (definition,) = definitions_of(BY_SERIAL)

    async def scenario(world: World) -> None:
        start(world, broker)
        world.order(definition)
        world.query(definition)
        await until_read(world, broker, ("probe/status", '{"serial": "p"}'), ("probe", "p"))
        await publish(broker.url, ("a/status", '{"serial": "1"}'), ("b/status", '{"serial": "2"}'))
        await until(lambda: len(world.rows()) == 3, "the rows are there")
        await publish(broker.url, ("a/online", "false"))
        await until(lambda: world.rows() == {("probe", "p"), ("b", "2")}, "one device is gone")

    run(tmp_path, scenario)
