"""Turns of the sources of one connection, and the order of acknowledgements; no broker."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import cast

import pytest

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt import message_queues, subscribed_line
from gateway.connectors.mqtt.broker_connection import BrokerConnection
from gateway.connectors.mqtt.subscribed_line import SubscribedLine
from gateway.connectors.mqtt.subscribed_source import SubscribedSource
from gateway.connectors.mqtt.subscription_plan import plan_subscriptions
from gateway.connectors.testing.source_statements import definitions_of
from host.mqtt.packet_stream import Received
from streamsql.mapping.mapper import Mapper
from tests.gateway.connectors.serving import Served, in_loop, now, until

SOURCES = """
CREATE SOURCE many (n INTEGER) WITH (connector = 'mqtt', topic = 'many/+', rows = 'rows[*]');
CREATE SOURCE few (n INTEGER) WITH (connector = 'mqtt', topic = 'few/+')
"""


class Connection:
    """Stands for a broker: hands over messages, and keeps what was acknowledged.

    Attributes:
        hear: What it calls with messages.
    """

    def __init__(self) -> None:
        self.hear: Callable[[list[Received]], None] = print
        self.acknowledged: list[int] = []
        self.is_paused = False

    def connect(self, hear: Callable[[list[Received]], None]) -> BrokerConnection:
        self.hear = hear
        return cast("BrokerConnection", self)

    async def subscribe(self, _filters: Sequence[tuple[str, int]], _number: int) -> list[str]:
        return []

    def unsubscribe(self, _filters: Sequence[str]) -> None:
        pass

    def acknowledge(self, packet_ids: Sequence[int]) -> None:
        self.acknowledged += packet_ids

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    async def run(self) -> None:
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def line() -> AsyncIterator[tuple[Connection, Served]]:
    """Run a line; nothing is kept until the test lets it."""
    served, connection = Served(), Connection()
    sources = [
        DeclaredSource(each, Mapper(each), now, {}, served.problems.append)
        for each in definitions_of(SOURCES)
    ]
    context = ConnectorContext(
        gateway="gw",
        endpoint_name="home",
        endpoint={},
        sources=sources,
        clock=now,
        emit=served.emit,
        kept=served.kept,
    )
    running = SubscribedLine(context, connection.connect)
    (subscriptions,) = plan_subscriptions(map(SubscribedSource, sources), named=False).connections
    await running.subscribe(subscriptions, [])
    task = asyncio.create_task(running.run())
    try:
        yield connection, served
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def many(packet_id: int, rows: int) -> Received:
    payload = json.dumps({"rows": [{"n": packet_id}] * rows}).encode()
    return Received(f"many/{packet_id}", payload, 1, False, packet_id)


def few(packet_id: int) -> Received:
    return Received(f"few/{packet_id}", b'{"n": %d}' % packet_id, 1, False, packet_id)


@in_loop
async def test_sources_have_turns_and_acknowledgements_the_order_of_messages() -> None:
    async with line() as (connection, served):
        flood = [many(packet_id, 3_000) for packet_id in range(1, 6)]
        connection.hear([*flood, few(6), few(7)])
        served.may_keep.set()
        await until(lambda: len(connection.acknowledged) == 7)
    before = itertools.takewhile(lambda reading: reading.source == "many", served.readings)
    assert {reading.values["n"] for reading in before} == {1}, "others have a turn after a message"
    assert connection.acknowledged == [1, 2, 3, 4, 5, 6, 7]


@in_loop
async def test_nothing_is_acknowledged_before_it_is_kept() -> None:
    async with line() as (connection, served):
        connection.hear([few(1), many(2, 1)])
        await until(lambda: bool(served.readings))
        assert connection.acknowledged == []
        served.may_keep.set()
        await until(lambda: connection.acknowledged == [1, 2])


@in_loop
async def test_a_queue_that_is_full_pauses_the_broker_until_half_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscribed_line, "MAX_WAITING", 100)
    monkeypatch.setattr(subscribed_line, "MAX_BATCH", 10)
    async with line() as (connection, served):
        connection.hear([few(number) for number in range(1, 121)])
        assert connection.is_paused
        served.may_keep.set()
        await until(lambda: not connection.is_paused)
        await until(lambda: len(connection.acknowledged) == 120)
    assert [r.values["n"] for r in served.readings] == list(range(1, 121))


@in_loop
async def test_topics_that_are_forgotten_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_queues, "MAX_TOPICS", 3)
    async with line() as (connection, served):
        served.may_keep.set()
        connection.hear([few(number) for number in range(1, 101)])
        await until(lambda: len(connection.acknowledged) == 100)
    assert [r.values["n"] for r in served.readings] == list(range(1, 101))
