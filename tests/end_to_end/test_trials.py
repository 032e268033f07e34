"""A source is tried while another one of the same broker runs, proposed, created, and has rows."""

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from broker.broker_testing import BrokerProcess
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.coordinator_service import Coordinator, open_coordinator
from gateway.__main__ import serve
from gateway.testing import settings_for, until
from host.mqtt import MessageClient, Will, open_client
from host.mqtt.in_memory import InMemoryBroker, InMemoryClient
from streamsql.data.types import Row
from streamsql.wire.site_messages import SiteRole
from tests.gateway.connectors.bacnet.devices import Thermostat, bacnet, local
from tests.gateway.connectors.mqtt.sparkplug_node import SparkplugNode
from tests.gateway.connectors.opcua.machines import machine
from tests.gateway.connectors.snmp.agents import agent

pytestmark = pytest.mark.broker

PLUG = (
    "CREATE SOURCE plug (device TEXT, power DOUBLE, KEY (device)) "
    "WITH (connector = 'mqtt', endpoint = 'home', topic = 'plug/{device}')"
)


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


class World:
    """A coordinator and a gateway on a broker in memory, and devices on another one."""

    def __init__(self, coordinator: Coordinator, devices: MessageClient) -> None:
        self.coordinator = coordinator
        self.devices = devices

    async def query(self, text: str) -> str:
        (result,) = await self.coordinator.execute(text)
        assert result.query is not None
        return result.query.id

    async def publish_until_rows(
        self, query: str, rows: set[Row], *messages: tuple[str, object]
    ) -> None:
        """Publish again and again: the gateway may not have subscribed yet."""

        async def publish() -> None:
            while True:
                self.publish(*messages)
                await asyncio.sleep(0.1)

        publishing = asyncio.create_task(publish())
        await until(lambda: set(self.coordinator.relation(query)) == rows, f"{rows} are there")
        publishing.cancel()

    def publish(self, *messages: tuple[str, object]) -> None:
        for topic, body in messages:
            self.devices.publish(topic, json.dumps(body).encode())


@contextlib.asynccontextmanager
async def world(folder: Path, address: str, **more: dict[str, object]) -> AsyncIterator[World]:
    broker = InMemoryBroker()

    def client(name: str) -> Callable[[Will], InMemoryClient]:
        return lambda will: broker.client(name, will=will)

    endpoints = {"home": {"connector": "mqtt", "address": address}, **more}
    gateway = settings_for(folder / "gw-1", sources=(), endpoints=endpoints)
    base = settings_for(folder / "base", "base", sources=(), role=SiteRole.BASE)
    database = CoordinatorSettings(database=f"sqlite:///{folder}/catalog.db")
    coordinator = await open_coordinator(database, client("coordinator"), now)
    sites = [
        asyncio.create_task(serve(gateway, client("gw-1"))),
        asyncio.create_task(serve(base, client("base"))),
    ]
    devices = open_client(address, "devices")
    await devices.connect()
    try:
        await until(lambda: sum(s.online for s in coordinator.sites()) == 2, "sites are there")
        yield World(coordinator, devices)
    finally:
        for site in sites:
            site.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await site
        await coordinator.close()
        await devices.close()


def test_what_is_tried_becomes_a_source_and_disturbs_nothing(tmp_path: Path) -> None:
    async def scenario(address: str) -> None:
        async with asyncio.timeout(60), world(tmp_path, address) as house:
            coordinator = house.coordinator
            await coordinator.execute(PLUG)
            query = await house.query("SELECT device, power FROM plug")
            await house.publish_until_rows(query, {("k", 1.0)}, ("plug/k", {"power": 1}))

            trial = coordinator.trials.listen("gw-1", "home", {"topic": "air/#"}, seconds=20).id

            async def hear() -> None:
                while len(coordinator.trials.info(trial).samples) < 4:
                    house.publish(("air/hall", {"celsius": 20.5}), ("air/attic", {"celsius": 18}))
                    house.publish(("plug/k", {"power": 2}))
                    await asyncio.sleep(0.1)

            await hear()
            await until(lambda: coordinator.relation(query) == (("k", 2.0),), "plug is read still")
            coordinator.trials.stop(trial)
            await until(lambda: coordinator.trials.info(trial).done, "the trial has ended")
            assert coordinator.trials.info(trial).problem == ""
            names = {definition.name for definition in coordinator.definitions()}
            assert "air" not in names

            (proposal,) = await coordinator.trials.propose(trial)
            assert "topic = 'air/{device}'" in proposal.text
            await coordinator.execute(proposal.text)
            rows = await house.query(f"SELECT device, celsius FROM {proposal.name}")
            await house.publish_until_rows(
                rows, {("hall", 21.5), ("attic", 18.0)},
                ("air/hall", {"celsius": 21.5}), ("air/attic", {"celsius": 18}),
            )  # fmt: skip

    with BrokerProcess("embedded", tmp_path) as devices:
        asyncio.run(scenario(devices.url))


def test_sparkplug_nodes_are_told_to_be_born_and_adopted_with_data_of_aliases(
    tmp_path: Path,
) -> None:
    async def scenario(address: str) -> None:
        async with asyncio.timeout(60), world(tmp_path, address) as house:
            trials = house.coordinator.trials
            node = SparkplugNode(address)
            await node.start()

            trial = trials.listen("", "home", {"topic": "spBv1.0/#"}, seconds=30.0).id
            while not trials.info(trial).samples:
                node.warm(20.0)
                await asyncio.sleep(0.1)
            trials.stop(trial)
            await until(lambda: trials.info(trial).done, "it has listened")
            assert node.commands == 0, "who only listens tells nodes nothing"

            trial = trials.discover("", "home", seconds=30.0).id
            while not any("DBIRTH" in str(s.facts["topic"]) for s in trials.info(trial).samples):
                node.warm(20.0)
                await asyncio.sleep(0.1)
            trials.stop(trial)
            await until(lambda: trials.info(trial).done, "it has looked")
            assert node.commands == 1
            topics = {str(sample.facts["topic"]) for sample in trials.info(trial).samples}
            assert topics == {"spBv1.0/plant/NBIRTH/line1", "spBv1.0/plant/DBIRTH/line1/press"}
            found = {proposal.topics[0]: proposal for proposal in await trials.propose(trial)}
            assert set(found) == {"plant/line1", "plant/line1/press"}

            press = found["plant/line1/press"]
            mapped = await trials.map(trial, press.text)
            assert [s.ignored for s in mapped.samples] == [True, False]
            await house.coordinator.execute(press.text)
            rows = await house.query(f"SELECT node, device, temp, level FROM {press.name}")
            relation = house.coordinator.relation
            while set(relation(rows)) != {("line1", "press", 33.5, -2)}:
                node.warm(33.5)
                await asyncio.sleep(0.1)
            await node.close()

    with BrokerProcess("embedded", tmp_path) as devices:
        asyncio.run(scenario(devices.url))


def test_retained_announcements_are_found_and_adopted(tmp_path: Path) -> None:
    exposes = [{"type": "numeric", "property": "temperature", "unit": "°C", "access": 1}]
    listed = [
        {"friendly_name": name, "definition": {"model": "T1", "exposes": exposes}}
        for name in ("front door", "attic")
    ]
    # Larger than what is shown of a payload: it has to come whole.
    listed += [{"friendly_name": f"d{n}", "definition": {"exposes": "x" * 90}} for n in range(400)]

    async def scenario(address: str) -> None:
        async with asyncio.timeout(60), world(tmp_path, address) as house:
            topic, payload = "zigbee2mqtt/bridge/devices", json.dumps(listed).encode()
            await house.devices.publish(topic, payload, retain=True).wait(10)
            trial = house.coordinator.trials.discover("", "home", seconds=1.5).id
            await until(lambda: house.coordinator.trials.info(trial).done, "it has looked")
            (proposal,) = await house.coordinator.trials.propose(trial)
            assert proposal.topics == ("front door", "attic")
            await house.coordinator.execute(proposal.text)
            rows = await house.query(f"SELECT device, temperature FROM {proposal.name}")
            await house.publish_until_rows(
                rows, {("front door", 20.5)}, ("zigbee2mqtt/front door", {"temperature": 20.5})
            )

    with BrokerProcess("embedded", tmp_path) as devices:
        asyncio.run(scenario(devices.url))


async def offered(house: World, endpoint: str, record: str, **options: str) -> str:
    """Browse an endpoint; create what is proposed for a record; return the source's name."""
    trials = house.coordinator.trials
    trial = trials.listen("gw-1", endpoint, options, seconds=20).id
    await until(lambda: trials.info(trial).done, "it has been browsed")
    assert trials.info(trial).problem == ""
    found = {proposal.title: proposal for proposal in await trials.propose(trial)}
    mapped = await trials.map(trial, found[record].text)
    (rows,) = [sample.rows for sample in mapped.samples if sample.rows]
    assert len(rows) == 1, "the rows are shown before anything is created"
    text = found[record].text.replace("endpoint =", "interval = '0.2 s', endpoint =")
    await house.coordinator.execute(text)
    return found[record].name


def test_what_devices_offer_becomes_sources_with_rows(tmp_path: Path) -> None:
    """A database, a machine, a thermostat and an agent, browsed through a running gateway."""
    file = tmp_path / "plant.db"
    with contextlib.closing(sqlite3.connect(file)) as base, base:
        base.execute("CREATE TABLE meter (id INTEGER PRIMARY KEY, kwh REAL)")
        base.execute("INSERT INTO meter VALUES (1, 12.5)")

    async def scenario(address: str) -> None:
        async with contextlib.AsyncExitStack() as devices:
            press = await devices.enter_async_context(machine({"Heat": 180.5, "Jobs": 12}))
            room = devices.enter_context(bacnet(Thermostat()))
            port = devices.enter_context(agent(tmp_path, "1.3.6.1.4.1.318.7.1.0|2|12"))
            more: dict[str, dict[str, object]] = {
                "plant": {"connector": "sql", "url": f"sqlite:///{file}"},
                "press": {"connector": "opcua", "url": press.url},
                "room": {"connector": "bacnet", **local(room)},
                "pdu": {
                    "connector": "snmp", "host": "127.0.0.1", "port": port, "community": "pdu",
                },
            }  # fmt: skip
            house = await devices.enter_async_context(world(tmp_path, address, **more))
            expected = {
                await offered(house, "plant", "meter"): 12.5,
                await offered(house, "press", "Objects"): 180.5,
                await offered(house, "room", "thermostat"): 22.0,
                await offered(house, "pdu", "agent", below="1.3.6.1.4.1.318"): 12,
            }
            queries = {
                await house.query(f"SELECT * FROM {source} [RANGE 1 HOUR]"): value
                for source, value in expected.items()
            }

            def missing() -> set[float]:
                relation = house.coordinator.relation
                return {v for q, v in queries.items() if not any(v in row for row in relation(q))}

            # Rows that came before a query was there are not its.
            jobs = 12
            while missing():
                jobs += 1
                await press.set("Jobs", jobs)
                with contextlib.closing(sqlite3.connect(file, timeout=10)) as base, base:
                    base.execute("INSERT INTO meter (kwh) VALUES (12.5)")
                await asyncio.sleep(0.2)

    with BrokerProcess("embedded", tmp_path) as devices:
        asyncio.run(asyncio.wait_for(scenario(devices.url), 120))
