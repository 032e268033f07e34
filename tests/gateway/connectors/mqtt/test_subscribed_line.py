"""Messages of a connection have turns; those that refer to each other keep their order."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.rebirth_requests import RebirthRequests
from gateway.connectors.mqtt.served_source import ServedSource
from gateway.connectors.mqtt.sparkplug_source import SparkplugSource
from gateway.connectors.mqtt.subscribed_line import MAX_WAITING, SubscribedLine
from gateway.connectors.mqtt.subscribed_source import SubscribedSource
from gateway.connectors.mqtt.subscription_plan import plan_subscriptions
from gateway.connectors.reading import Reading
from gateway.connectors.testing.source_statements import definitions_of
from host.mqtt.packet_stream import Received
from streamsql.mapping.mapper import Mapper
from tests.gateway.connectors.serving import in_loop, until
from tests.streamsql.mapping.sparkplug.written import alias, bd_seq, temp, written

SECOND = 1_000_000
TEXT = """
CREATE SOURCE machines (node TEXT, temp DOUBLE FROM 'Temp', KEY (node))
WITH (connector = 'mqtt', endpoint = 'home', format = 'sparkplug');
CREATE SOURCE births (topic TEXT FROM '@topic')
WITH (connector = 'mqtt', endpoint = 'home', topic = 'spBv1.0/+/NBIRTH/+', format = 'csv')
"""


class Quiet:
    """A connection on which nothing comes by itself."""

    def __init__(self) -> None:
        self.received: Callable[[list[Received]], None]

    async def subscribe(self, filters: Sequence[tuple[str, int]], number: int) -> list[str]:
        del filters, number
        return []

    async def run(self) -> None:
        await asyncio.Event().wait()

    def ignore(self, *_: object) -> None:
        """Do nothing."""

    acknowledge = unsubscribe = pause = resume = ignore


@in_loop
async def test_messages_of_a_sparkplug_node_keep_their_order_beside_another_source() -> None:
    """The other source reads births alone: they must not wait in a queue of their own."""
    machines, births = (
        DeclaredSource(each, Mapper(each), lambda: 1, {}, lambda _: None)
        for each in definitions_of(TEXT)
    )
    emitted: list[Reading] = []
    context = ConnectorContext("gw", "home", {}, [machines, births], lambda: 1, emitted.extend)
    quiet = Quiet()

    def connect(received: Callable[[list[Received]], None]) -> Any:
        quiet.received = received
        return quiet

    line = SubscribedLine(context, connect)
    sources: list[ServedSource] = [
        SparkplugSource(machines, RebirthRequests(), None, lambda _: 1),
        SubscribedSource(births),
    ]
    (subscriptions,) = plan_subscriptions(sources, named=True).connections
    await line.subscribe(subscriptions, ())
    running = asyncio.create_task(line.run())
    quiet.received(
        [
            message("NDATA", written(alias(1, double_value=9), seq=7)),
            message("NBIRTH", written(temp(1.0), seq=0)),
            message("NDATA", written(alias(1, double_value=2), seq=1)),
        ]
    )
    await until(lambda: len(temperatures(emitted)) == 2)
    running.cancel()
    assert temperatures(emitted) == [1.0, 2.0]


@in_loop
async def test_no_deadline_passes_while_messages_wait() -> None:
    """The birth of a device has come, and waits until those before it are kept."""
    now, kept = [1], asyncio.Event()
    machines, _ = definitions_of(TEXT)
    declared = DeclaredSource(machines, Mapper(machines), lambda: now[0], {}, lambda _: None)
    emitted: list[Reading] = []
    context = ConnectorContext("gw", "home", {}, [declared], lambda: now[0], emitted.extend)
    context.kept = kept.wait  # type: ignore[assignment]
    quiet = Quiet()

    def connect(received: Callable[[list[Received]], None]) -> Any:
        quiet.received = received
        return quiet

    line = SubscribedLine(context, connect)
    source = SparkplugSource(
        declared, RebirthRequests(), None, lambda source: line.read_until(source, now[0])
    )
    (subscriptions,) = plan_subscriptions([source], named=True).connections
    running = asyncio.create_task(line.run())
    await line.subscribe(subscriptions, ())
    for session in (0, 1):
        birth = message("NBIRTH", written(temp(1.0), bd_seq(session), seq=0))
        device = Received("spBv1.0/g/DBIRTH/n/d", written(temp(2.0), seq=1))
        quiet.received([birth])
        await until(lambda n=session: len(temperatures(emitted)) == 1 + 2 * n)  # type: ignore[misc]
        quiet.received([device])
        now[0] += 12 * SECOND
        assert line.read_until(source, now[0]) == now[0] - 12 * SECOND
        assert source.due() == []
        kept.set()
        await until(lambda n=session: len(temperatures(emitted)) == 2 + 2 * n)  # type: ignore[misc]
        kept.clear()
        assert line.read_until(source, now[0]) == now[0]
        assert source.due() == []
    running.cancel()


@in_loop
async def test_no_deadline_passes_while_the_broker_is_read_no_further() -> None:
    now, kept = [SECOND], asyncio.Event()
    machines, other = definitions_of(TEXT)
    source, births = (
        DeclaredSource(each, Mapper(each), lambda: now[0], {}, lambda _: None)
        for each in (machines, other)
    )
    context = ConnectorContext("gw", "home", {}, [source], lambda: now[0], lambda _: None)
    context.kept = kept.wait  # type: ignore[assignment]
    quiet = Quiet()

    def connect(received: Callable[[list[Received]], None]) -> Any:
        quiet.received = received
        return quiet

    line = SubscribedLine(context, connect)
    served = SparkplugSource(source, RebirthRequests(), None, lambda _: now[0])
    plan = plan_subscriptions([SubscribedSource(births)], named=True)
    running = asyncio.create_task(line.run())
    await line.subscribe(plan.connections[0], ())
    quiet.received([message("NBIRTH", b"1")] * (MAX_WAITING + 1))
    now[0] += 12 * SECOND
    assert line.read_until(served, now[0]) == SECOND
    kept.set()
    await until(lambda: line.read_until(served, now[0]) == now[0])
    running.cancel()


def temperatures(readings: list[Reading]) -> list[object]:
    return [reading.values["temp"] for reading in readings if reading.source == "machines"]


def message(kind: str, payload: bytes) -> Received:
    return Received(f"spBv1.0/g/{kind}/n", payload)
