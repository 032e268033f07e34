"""A Sparkplug node that sends aliases only, a real broker, a whole gateway, the rows of a query."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from gateway.connectors.testing.source_statements import definitions_of
from gateway.testing import until
from streamsql.data.types import Row
from streamsql.mapping.sparkplug import sparkplug_session
from tests.gateway.connectors.mqtt.sparkplug_node import SparkplugNode
from tests.gateway.declared_world import World, run
from tests.streamsql.mapping.sparkplug.written import NOON

pytestmark = pytest.mark.broker

MACHINES = """
CREATE SOURCE machines (
  node TEXT, device TEXT,
  temp DOUBLE FROM 'Temp', level INTEGER FROM 'Level', speed INTEGER FROM 'Motor/Speed',
  KEY (node, device)
) WITH (connector = 'mqtt', endpoint = 'home', format = 'sparkplug')
"""
DATED = """
CREATE SOURCE machines (device TEXT, temp DOUBLE FROM 'Temp', ts TIMESTAMP, KEY (device))
WITH (connector = 'mqtt', endpoint = 'home', topic = 'spBv1.0/plant/#', format = 'sparkplug')
"""
NODE: Row = ("line1", "", None, None, 1480)
PRESS: Row = ("line1", "press", 21.5, -2, None)


@pytest.fixture(params=["embedded", "mosquitto"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    kind = cast("Preference", request.param)
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    folder = tmp_path / "broker"
    folder.mkdir()
    with BrokerProcess(kind, folder) as process:
        yield process


async def until_rows(world: World, *rows: Row) -> None:
    await until(lambda: world.rows() == set(rows), f"{rows}, not {world.rows()}")


async def begun(world: World, broker: BrokerProcess, text: str = MACHINES) -> SparkplugNode:
    """Start a gateway with a source and a query, and a node that waits to be born."""
    (definition,) = definitions_of(text)
    world.order(definition)
    world.begin(endpoints={"home": {"connector": "mqtt", "address": broker.url}})
    world.query(definition)
    node = SparkplugNode(broker.url)
    await node.start()
    return node


async def until_reborn(node: SparkplugNode, does: Callable[[], None]) -> None:
    """Let a node send data until it is told to be born again: nobody may listen yet."""
    commands = node.commands
    async with asyncio.timeout(30):
        while node.commands == commands:
            does()
            await asyncio.sleep(0.05)


def test_data_of_aliases_is_read_after_births_that_the_gateway_asks_for(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        node = await begun(world, broker)
        await until_reborn(node, lambda: node.turn(1480))
        await until_rows(world, NODE, PRESS)
        node.warm(22.25)
        await until_rows(world, NODE, ("line1", "press", 22.25, -2, None))
        node.fill(-9)
        node.turn(1500)
        await until_rows(
            world, ("line1", "", None, None, 1500), ("line1", "press", 22.25, -9, None)
        )
        assert node.commands == 1
        await node.close()

    run(tmp_path, scenario)


def test_deaths_withdraw_rows_and_late_ones_do_not(broker: BrokerProcess, tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        node = await begun(world, broker)
        await until_reborn(node, lambda: node.turn(1480))
        await until_rows(world, NODE, PRESS)
        node.lose_device()
        await until_rows(world, NODE)
        node.bear_device()
        await until_rows(world, NODE, PRESS)
        node.die()
        await until_rows(world)
        node.session = 1
        node.be_born()
        await until_rows(world, NODE, PRESS)
        node.die(session=0)
        node.warm(30.0)
        await until_rows(world, NODE, ("line1", "press", 30.0, -2, None))
        assert node.commands == 1
        node.die()
        await until_rows(world)
        await node.close()

    run(tmp_path, scenario)


def test_after_a_lost_message_the_node_says_all_again(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        node = await begun(world, broker)
        await until_reborn(node, lambda: node.turn(1480))
        await until_rows(world, NODE, PRESS)
        node.lose_a_message(77.0)
        node.fill(5)
        await until(lambda: node.commands == 2, "it is told to be born again")
        await until_rows(world, NODE, ("line1", "press", 77.0, 5, None))
        await node.close()

    run(tmp_path, scenario)


def test_a_gateway_that_was_restarted_goes_on(
    broker: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for births by itself; a row of a device that died meanwhile goes."""
    monkeypatch.setattr(sparkplug_session, "BIRTH_SECONDS", 1)

    async def scenario(world: World) -> None:
        node = await begun(world, broker)
        await until_reborn(node, lambda: node.turn(1480))
        await until_rows(world, NODE, PRESS)
        await world.end()
        node.has_device = False
        world.begin(endpoints={"home": {"connector": "mqtt", "address": broker.url}})
        await until(lambda: node.commands == 2, "it is told to be born again")
        await until_rows(world, NODE)
        node.turn(1600)
        await until_rows(world, ("line1", "", None, None, 1600))
        await node.close()

    run(tmp_path, scenario)


def test_the_event_time_is_that_of_the_payload(broker: BrokerProcess, tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        node = await begun(world, broker, DATED)
        await until_reborn(node, lambda: node.turn(1480))
        await until(lambda: len(world.rows()) == 1, "the device has its row")
        node.warm(25.0)
        await until_rows(world, ("press", 25.0, node.milliseconds * 1_000))
        assert node.milliseconds > NOON
        await node.close()

    run(tmp_path, scenario)
