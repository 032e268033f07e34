"""What is acknowledged was ingested, whenever the definitions of an endpoint change."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from gateway.connectors import running_connectors
from gateway.connectors.mqtt import mqtt_connector, subscribed_line
from gateway.connectors.mqtt.mqtt_connector import MqttConnector
from gateway.connectors.mqtt.mqtt_options import MqttEndpoint
from gateway.connectors.running_connectors import EndpointRunner, Runtime
from gateway.connectors.testing.observed_run import OneConnector, Recorder
from gateway.connectors.testing.source_statements import definitions_of
from host.mqtt.packet_stream import Received
from streamsql.catalog.definitions import SourceDefinition
from streamsql.mapping.mapper import Mapper
from tests.gateway.connectors.serving import in_loop, now, until

SOURCES = """
CREATE SOURCE counted (n INTEGER) WITH (connector = 'mqtt', endpoint = 'home', topic = 'n');
CREATE SOURCE other (n INTEGER) WITH (connector = 'mqtt', endpoint = 'home', topic = 'other')
"""
BACKLOG = 1_000
BATCH = 20
TURNS = 9
"""From the change of the definitions until the cancellation has reached the connector's tasks."""


class Connection:
    """Stands for a connection to a broker.

    Attributes:
        made: All of them, in order.
    """

    made: list["Connection"]
    names_subscriptions = True

    def __init__(
        self,
        _endpoint: MqttEndpoint,
        _client_id: str,
        _version: str,
        received: Callable[[list[Received]], None],
    ) -> None:
        self.received = received
        self.numbers: list[int] = []
        self.acknowledged: list[int] = []
        self.is_closed = False
        self.made.append(self)

    async def open(self) -> None:
        """At once."""

    async def subscribe(self, _filters: Sequence[tuple[str, int]], number: int) -> list[str]:
        self.numbers.append(number)
        return []

    async def run(self) -> None:
        await asyncio.Event().wait()

    def acknowledge(self, packet_ids: Sequence[int]) -> None:
        self.acknowledged += packet_ids

    def close(self) -> None:
        self.is_closed = True

    def ignore(self, *_: object) -> None:
        """Do nothing."""

    unsubscribe = publish = pause = resume = ignore


async def at_once() -> None:
    """Nothing is pending: all is on disk."""
    await asyncio.sleep(0)


@pytest.mark.parametrize("change", ["alter", "stop"])
@pytest.mark.parametrize("turns", range(TURNS))
@in_loop
async def test_what_is_acknowledged_was_emitted_whenever_the_sources_change(
    change: str, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Connection.made = []
    monkeypatch.setattr(running_connectors, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(subscribed_line, "MAX_BATCH", BATCH)
    monkeypatch.setattr(mqtt_connector, "BrokerConnection", Connection)
    recorder = Recorder()
    runtime = Runtime(
        gateway="gw",
        clock=now,
        registry=OneConnector(MqttConnector, []),
        open_port=lambda *_of: recorder,
        close_port=lambda *_of: None,
        kept=at_once,
        make_mapper=Mapper,
    )
    settings = {"connector": "mqtt", "address": "mqtt://127.0.0.1"}
    runner = EndpointRunner("home", settings, runtime)
    counted, other = definitions_of(SOURCES)
    runner.serve([counted])
    former = await subscribed(1)
    former.received(backlog())
    for _ in range(turns):
        await asyncio.sleep(0)
    assert len(former.acknowledged) < BACKLOG, "the change comes under load"
    await happen(change, runner, (counted, other))
    await until(lambda: former.is_closed)
    emitted = {reading.values["n"] for reading in recorder.readings}
    assert set(former.acknowledged) <= emitted
    if change == "alter":
        follower = await subscribed(2)
        follower.received(backlog()[len(former.acknowledged) :])
        await until(lambda: BACKLOG in follower.acknowledged)
        assert {reading.values["n"] for reading in recorder.readings} == set(range(1, BACKLOG + 1))
        assert runner.problem == ""
        await runner.stop()


async def happen(change: str, runner: EndpointRunner, both: Sequence[SourceDefinition]) -> None:
    if change == "alter":
        runner.serve(both)
    else:
        assert await runner.stop()


async def subscribed(life: int) -> Connection:
    await until(lambda: len(Connection.made) == life and bool(Connection.made[-1].numbers))
    return Connection.made[-1]


def backlog() -> list[Received]:
    return [Received("n", b'{"n": %d}' % n, 1, False, n) for n in range(1, BACKLOG + 1)]
