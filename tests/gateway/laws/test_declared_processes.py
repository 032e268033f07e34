"""Sources declared in SQL, on real brokers: gateways learn, replace, drop and keep them."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path

import httpx
import pytest

from broker.broker_testing import BrokerProcess
from broker.free_ports import free_port
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.coordinator_service import Coordinator, open_coordinator
from gateway.gateway_settings import GatewaySettings
from gateway.testing import until
from host.clocks import wall_clock
from host.mqtt import MessageClient, Will, open_client
from streamsql.data.types import Row
from tests.gateway.processes import GatewayProcess, base

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

CLIMATE = """
CREATE OR REPLACE SOURCE climate (
  device TEXT,
  celsius DOUBLE FROM 'AM2301.Temperature' UNIT 'Cel',
  KEY (device)
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{device}/SENSOR')
"""
WIDER = """
CREATE OR REPLACE SOURCE climate (
  device TEXT,
  humidity DOUBLE FROM 'AM2301.Humidity',
  celsius DOUBLE FROM 'AM2301.Temperature' UNIT 'Cel',
  KEY (device)
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{device}/SENSOR')
"""
CELLAR = """
CREATE SOURCE damp (device TEXT, wet BOOLEAN, KEY (device))
WITH (connector = 'mqtt', endpoint = 'cellar', topic = 'damp/{device}', gateways = 'gw-1')
"""
PASSAGE = """
CREATE SOURCE passage (number INTEGER)
WITH (connector = 'http_push', endpoint = 'door', ttl = '1 h')
"""
TOKEN = "token-of-the-door"
LIVES = 3
READINGS = 150


class World:
    """A broker with devices on it, a coordinator, a base site and a gateway."""

    def __init__(self, broker: BrokerProcess, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.port = free_port()
        self.devices = open_client(broker.url, "devices")
        self.processes: list[GatewayProcess] = []
        self.coordinator: Coordinator | None = None

    async def begin(self) -> GatewayProcess:
        """Start everything; return the gateway."""
        await self.devices.connect()
        for settings in (base(self.folder, self.broker.url), self.gateway()):
            self.processes.append(GatewayProcess(self.folder, settings).start())
        await self.coordinate()
        return self.processes[-1]

    def gateway(self) -> GatewaySettings:
        """Return settings of a gateway that knows the endpoints `home` and `door`."""
        return GatewaySettings(
            "demo",
            "gw-1",
            self.broker.url,
            str(self.folder / "gw-1"),
            endpoints={
                "home": {"connector": "mqtt", "address": self.broker.url},
                "door": {"connector": "http_push", "port": self.port, "token": TOKEN},
            },
            grace_seconds=1.0,
            keepalive=2,
        )

    async def coordinate(self) -> Coordinator:
        """Start the coordinator, and wait for the sites."""
        database = f"sqlite:///{self.folder}/catalog.db"
        settings = CoordinatorSettings(database=database, regroup=0.1, grace=1.0, switch=2.0)

        def client(will: Will) -> MessageClient:
            return open_client(self.broker.url, settings.host, will=will, keepalive=2)

        made = self.coordinator = await open_coordinator(settings, client, wall_clock)
        await until(lambda: self.online() >= {"base", "gw-1"}, "the sites are there")
        return made

    @property
    def console(self) -> Coordinator:
        assert self.coordinator is not None
        return self.coordinator

    def online(self) -> set[str]:
        return {site.site for site in self.console.sites() if site.online}

    async def run(self, text: str) -> tuple[str, ...]:
        """Execute a statement; return its warnings."""
        results = await self.console.execute(text)
        return tuple(warning for result in results for warning in result.warnings)

    async def query(self, text: str) -> str:
        (result,) = await self.console.execute(text)
        assert result.query is not None
        return result.query.id

    def measure(self, device: str, celsius: float, humidity: float) -> None:
        """Let a device publish."""
        payload = f'{{"AM2301": {{"Temperature": {celsius}, "Humidity": {humidity}}}}}'
        self.devices.publish(f"tele/{device}/SENSOR", payload.encode())

    async def until_rows(self, query: str, rows: Iterable[Row], what: str) -> None:
        wanted = set(rows)
        await until(lambda: set(self.console.relation(query)) == wanted, what)

    async def until_settled(self, query: str) -> None:
        await until(lambda: self.console.query(query).settled, "it is settled")

    async def until_served(self, source: str, version: int) -> None:
        """Wait until the gateway's state says that it serves a version."""

        def is_served() -> bool:
            states = [site.state for site in self.console.sites() if site.site == "gw-1"]
            told = [each for state in states if state is not None for each in state.declared]
            notes = [w.note for state in states if state is not None for w in state.connectors]
            return any("subscribed to 1" in note for note in notes) and any(
                (each.name, each.version, each.problem) == (source, version, "") for each in told
            )

        await until(is_served, f"{source} {version} is served")

    async def end(self) -> None:
        """Stop everything."""
        if self.coordinator is not None:
            await self.coordinator.close()
        await self.devices.close()
        for process in self.processes:
            process.stop()


def run(
    broker: BrokerProcess, folder: Path, scenario: Callable[[World], Coroutine[None, None, None]]
) -> None:
    async def whole() -> None:
        world = World(broker, folder)
        try:
            await scenario(world)
        finally:
            await world.end()

    asyncio.run(whole())


def test_a_source_is_declared_widened_and_dropped_while_its_gateway_runs(
    real_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        gateway = await world.begin()
        assert await world.run(CLIMATE) == ()
        query = await world.query("SELECT * FROM climate")
        await world.until_served("climate", 1)
        world.measure("k1", 21.5, 40)
        await world.until_rows(query, {("k1", 21.5)}, "the first row")

        await world.run(WIDER)
        wider = await world.query("SELECT * FROM climate")
        await world.until_rows(wider, {("k1", None, 21.5)}, "the row is carried over")
        await world.until_served("climate", 2)
        world.measure("k2", 20, 45)
        await world.until_rows(wider, {("k1", None, 21.5), ("k2", 45.0, 20.0)}, "a wider row")
        await world.until_rows(query, {("k1", 21.5), ("k2", 20.0)}, "who read before goes on")
        for each in (query, wider):
            await world.until_settled(each)
            assert world.console.query(each).warnings == ()
            assert world.console.query(each).error == ""

        await world.run(f"DROP QUERY {wider}")
        await world.run(f"DROP QUERY {query}")
        await world.run("DROP SOURCE climate")
        await until(lambda: _sources(world) == (), "the gateway offers it no more")
        assert not gateway.ended()
        assert "Traceback" not in gateway.log()

    run(real_broker, tmp_path, scenario)


def test_what_a_gateway_cannot_serve_is_said_by_the_query(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        warnings = await world.run(CELLAR)
        assert warnings == (
            "gateway gw-1 cannot serve it: endpoint 'cellar' is unknown here; "
            "there are: door, home",
        )
        query = await world.query("SELECT * FROM damp")
        missing = "rows of source damp from gw-1 are missing: endpoint 'cellar' is unknown here"
        await until(
            lambda: any(missing in each for each in world.console.query(query).warnings),
            "the query says whose rows are missing",
        )

    run(embedded_broker, tmp_path, scenario)


def test_a_gateway_goes_on_without_the_coordinator(
    real_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        gateway = await world.begin()
        await world.run(CLIMATE)
        query = await world.query("SELECT * FROM climate")
        await world.until_served("climate", 1)
        world.measure("k1", 21.5, 40)
        await world.until_rows(query, {("k1", 21.5)}, "the first row")
        await world.console.close()
        world.coordinator = None
        gateway.kill()
        gateway.start()
        await until(lambda: gateway.log().count("subscribed to 1 topic filters") == 2, "it reads")
        world.measure("k2", 20, 45)
        await world.coordinate()
        await world.until_rows(query, {("k1", 21.5), ("k2", 20.0)}, "nothing is missing")

    run(real_broker, tmp_path, scenario)


def test_a_source_that_was_dropped_while_its_gateway_was_away_is_gone_when_it_returns(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        gateway = await world.begin()
        await world.run(CLIMATE)
        await world.until_served("climate", 1)
        assert gateway.stop() == 0
        await until(lambda: "gw-1" not in world.online(), "it is away")
        await world.run("DROP SOURCE climate")
        gateway.start()
        await until(lambda: _sources(world) == (), "it has learned of it")

    run(embedded_broker, tmp_path, scenario)


def test_nothing_that_was_acknowledged_is_lost_when_a_gateway_is_killed(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        gateway = await world.begin()
        await world.run(PASSAGE)
        query = await world.query("SELECT number FROM passage")
        counted = await world.query("SELECT COUNT(*) FROM passage [ROWS 100000]")
        acknowledged: set[int] = set()
        url = f"http://127.0.0.1:{world.port}/passage"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        number = 0
        async with httpx.AsyncClient(trust_env=False, headers=headers) as client:

            async def send(number: int) -> None:
                with contextlib.suppress(httpx.HTTPError):
                    answer = await client.post(url, json={"number": number})
                    if answer.status_code == 202:
                        acknowledged.add(number)

            for _life in range(LIVES):
                before = len(acknowledged)
                while len(acknowledged) < before + READINGS:
                    await asyncio.gather(*(send(number + each) for each in range(5)))
                    number += 5
                last = asyncio.gather(*(send(number + each) for each in range(20)))
                number += 20
                await asyncio.sleep(0)
                gateway.kill()
                await last
                gateway.start()
        await until(
            lambda: {row[0] for row in world.console.relation(query)} >= acknowledged,
            "every reading that was acknowledged is there",
        )
        await until(lambda: _number(world, counted) >= len(acknowledged), "and was observed")

    run(embedded_broker, tmp_path, scenario)


def _number(world: World, query: str) -> int:
    found = [row[0] for row in world.console.relation(query)]
    return found[0] if found and isinstance(found[0], int) else 0


def _sources(world: World) -> tuple[str, ...] | None:
    found = [site for site in world.console.sites() if site.site == "gw-1" and site.online]
    return found[0].sources if found else None
