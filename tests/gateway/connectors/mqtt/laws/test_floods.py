"""A source that is flooded with the worst payloads keeps neither others nor the gateway waiting."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.broker_testing import BrokerProcess
from gateway.connectors.testing.source_statements import definitions_of
from gateway.testing import until
from host.mqtt import MessageClient, open_client
from tests.gateway.declared_world import World, run

pytestmark = [pytest.mark.broker, pytest.mark.timeout(120)]

SOURCES = """
CREATE SOURCE many (n INTEGER)
WITH (connector = 'mqtt', endpoint = 'home', topic = 'many', rows = 'rows[*]');
CREATE SOURCE page (n INTEGER)
WITH (connector = 'mqtt', endpoint = 'home', topic = 'page', format = 'html', rows = 'div');
CREATE SOURCE list (n INTEGER)
WITH (connector = 'mqtt', endpoint = 'home', topic = 'list', format = 'xml', rows = 'a');
CREATE SOURCE steady (n INTEGER)
WITH (connector = 'mqtt', endpoint = 'home', topic = 'steady');
"""
MANY = json.dumps({"rows": [{"n": n} for n in range(10_000)]}, separators=(",", ":")).encode()
PAGE = b"<div>" * 200 + b"<i></i>" * 100_000
LIST = b"<r>" + b"<a><n>x</n></a>" * 60_000 + b"</r>"
TIMES = 4
LAG = 0.15
"""Seconds of CPU of the event loop from one of its turns to the next, at most, `TIMES` times. It is
0.02 s; where large payloads are read on the loop it is 0.32 s."""
DELAY = 3.0
"""Seconds of its CPU until a row of another source is there: turns of the flooded ones are before
it. CPU, since other processes may have the machine; the test's own is counted, too."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    folder = tmp_path / "broker"
    folder.mkdir()
    with BrokerProcess("embedded", folder) as process:
        yield process


class Lag:
    """Measures how long the thread of the event loop works until the loop comes round."""

    def __init__(self) -> None:
        self._gaps: list[float] = []
        self._last = time.thread_time()

    def note(self) -> None:
        now = time.thread_time()
        self._gaps.append(now - self._last)
        self._last = now

    def repeated(self) -> float:
        """Return the longest gap that came `TIMES` times: each payload of a kind makes one.

        A single one may be due to another process: it takes the caches of the processor, too.
        """
        return sorted(self._gaps, reverse=True)[TIMES - 1]


async def until_row(world: World, device: MessageClient, number: int, lag: Lag) -> float:
    """Send a row of the steady source; return the CPU until it is there."""
    began = time.thread_time()
    device.publish("steady", json.dumps({"n": number}).encode())

    def is_there() -> bool:
        lag.note()
        return (number,) in world.rows()

    await until(is_there, f"row {number} of the source that is not flooded")
    return time.thread_time() - began


def test_a_flood_delays_others_by_a_turn(tmp_path: Path, broker: BrokerProcess) -> None:
    definitions = {each.name: each for each in definitions_of(SOURCES)}

    async def scenario(world: World) -> None:
        world.begin(endpoints={"home": {"connector": "mqtt", "address": broker.url}})
        for definition in definitions.values():
            world.order(definition)
        world.query(definitions["steady"])
        device = open_client(broker.url, "device", max_pending=1_000)
        await device.connect()
        lag = Lag()

        def is_subscribed() -> bool:
            device.publish("steady", b'{"n": -1}')
            return (-1,) in world.rows()

        await until(is_subscribed, "the connector has subscribed")
        for _ in range(TIMES):
            for topic, payload in (("many", MANY), ("page", PAGE), ("list", LIST)):
                device.publish(topic, payload)
        lag.note()
        delays = [await until_row(world, device, 0, lag)]

        def is_over() -> bool:
            lag.note()
            told = [world.told(name) for name in ("many", "list", "page")]
            read = [(each.rows, each.bad > 0) for each in told if each is not None]
            return read == [(TIMES * 10_000, False), (TIMES * 10_000, True), (0, True)]

        during = not is_over()
        delays += [await until_row(world, device, number, lag) for number in range(1, 4)]
        await until(is_over, "the flood is read")
        await device.close()
        assert during, "the first row came while the flood was read"
        assert max(delays) < DELAY, delays
        assert lag.repeated() < LAG, lag.repeated()

    run(tmp_path, scenario)
