"""The MQTT connector: messages of a broker to readings, acknowledged once they are kept."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

import msgspec

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.broker_connection import BrokerConnection, UnsupportedVersionError
from gateway.connectors.mqtt.mqtt_options import MqttEndpoint, MqttSource
from gateway.connectors.mqtt.served_source import ServedSource
from gateway.connectors.mqtt.subscribed_line import SubscribedLine
from gateway.connectors.mqtt.subscribed_source import SubscribedSource
from gateway.connectors.mqtt.subscription_plan import MAX_CONNECTIONS, Plan, plan_subscriptions
from gateway.connectors.reading import Memory, Reading
from host.mqtt.packet_stream import Received
from streamsql.mapping.source_mapping import PayloadFormat

if TYPE_CHECKING:
    from gateway.connectors.mqtt.sparkplug_nodes import SparkplugNodes

ASK_AGAIN_SECONDS = 5.0
"""After a request that nobody has answered; the pause doubles up to `request_every`."""
_FILTERS = "filters"
"""In the connector's memory: the filters of each connection, which the broker may have kept."""
_SPARKPLUG = "sparkplug"
"""There, too: the nodes and devices that have rows, by source."""


class MqttConnector:
    """Serves one broker with all sources that name it.

    A broker that does not name subscriptions gets a further connection for filters that overlap.
    """

    kind = "mqtt"
    endpoint_options = MqttEndpoint
    source_options = MqttSource

    def __init__(self) -> None:
        self._context: ConnectorContext
        self._endpoint: MqttEndpoint
        self._client_id = ""
        self._version = "5"
        self._lines: list[SubscribedLine] = []
        self._filters: list[list[str]] = []
        self._nodes: SparkplugNodes | None = None

    async def run(self, context: ConnectorContext) -> None:
        """Read the broker until a connection is lost.

        Raises:
            ConnectionError: It was lost, or could not be made.
        """
        self._context = context = replace(context, emit=partial(self._emit, context))
        self._endpoint = endpoint = context.endpoint_as(MqttEndpoint)
        self._version = endpoint.version
        if any(_is_sparkplug(source) for source in context.sources):
            # Imported here: 23 modules, 0.8 MB, that other sources do not need.
            from gateway.connectors.mqtt.sparkplug_nodes import SparkplugNodes  # noqa: PLC0415

            memory = (context.memory or {}).get(_SPARKPLUG)
            self._nodes = SparkplugNodes(context, memory, self._read_until)
        sources = [self._served(source) for source in context.sources]
        self._client_id = endpoint.client_id or f"pando-{context.gateway}-{context.endpoint_name}"
        if context.is_trial:
            # The broker keeps one connection of a name, and no session of this one.
            self._client_id = f"pando-try-{os.urandom(6).hex()}"
            self._endpoint = msgspec.structs.replace(endpoint, session_hours=0.0)
        lost: BaseException | None = None
        try:
            await self._open_first()
            named = self._lines[0].connection.names_subscriptions
            plan = plan_subscriptions(sources, named=named)
            async with asyncio.TaskGroup() as group:
                await self._subscribe(plan, group)
                self._note(plan, len(sources))
                if self._nodes is not None:
                    group.create_task(self._nodes.run(self._lines[0].connection.publish))
                for source in sources:
                    if source.options.request:
                        group.create_task(self._ask(source))
        except* ConnectionError as errors:
            lost = _first(errors)
        finally:
            for line in self._lines:
                line.connection.close()
            if self._nodes is not None and self._nodes.is_changed:
                self._remember(context)
                context.emit(())
        if lost is not None:
            raise lost from None

    def _served(self, source: DeclaredSource) -> ServedSource:
        if self._nodes is not None and _is_sparkplug(source):
            return self._nodes.served(source)
        return SubscribedSource(source, is_trial=self._context.is_trial)

    def _emit(self, context: ConnectorContext, readings: Sequence[Reading]) -> None:
        if self._nodes is not None and self._nodes.is_to_remember:
            self._remember(context)
        context.emit(readings)

    def _read_until(self, source: ServedSource) -> int:
        now = self._context.clock()
        return min((line.read_until(source, now) for line in self._lines), default=now)

    def _remember(self, context: ConnectorContext) -> None:
        nodes = self._nodes.to_remember() if self._nodes is not None else {}
        context.remember({_FILTERS: self._filters, **({_SPARKPLUG: nodes} if nodes else {})})

    async def _open_first(self) -> None:
        try:
            await self._open()
        except UnsupportedVersionError:
            self._lines.pop().connection.close()
            self._context.note("the broker speaks MQTT 3.1.1 only")
            self._version = "3.1.1"
            await self._open()

    async def _open(self) -> SubscribedLine:
        number = len(self._lines) + 1
        name = self._client_id if number == 1 else f"{self._client_id}-{number}"

        def connect(received: Callable[[list[Received]], None]) -> BrokerConnection:
            return BrokerConnection(self._endpoint, name, self._version, received)

        line = SubscribedLine(self._context, connect)
        self._lines.append(line)
        await line.connection.open()
        return line

    async def _subscribe(self, plan: Plan, group: asyncio.TaskGroup) -> None:
        """Subscribe over as many connections as the plan has, and read them from then on."""
        former = _former(self._context.memory)
        wanted = [[each.topic_filter for each in own] for own in plan.connections]
        # What is read meanwhile is emitted with this: the broker may have all of these.
        self._filters = _joined(wanted, former)
        # A connection of an earlier life that is not needed any more has to end its subscriptions.
        for number in range(max(len(plan.connections), len(former))):
            line = self._lines[number] if number < len(self._lines) else await self._open()
            group.create_task(line.run())
            subscriptions = plan.connections[number] if number < len(plan.connections) else []
            await line.subscribe(subscriptions, former[number] if number < len(former) else [])
        for subscription in plan.left_out:
            for source, _ in subscription.readers:
                source.source.problem(
                    f"{subscription.topic_filter!r:.100} overlaps with filters of other sources, "
                    "and the broker does not report the subscription of a message; more than "
                    f"{MAX_CONNECTIONS} connections would be needed: use a broker with MQTT 5, or "
                    "topics that do not overlap"
                )
        self._filters = wanted
        if self._filters != former:
            self._remember(self._context)

    def _note(self, plan: Plan, sources: int) -> None:
        filters = sum(map(len, plan.connections))
        over = f" over {len(self._lines)} connections" if len(self._lines) > 1 else ""
        self._context.note(f"subscribed to {filters} topic filters of {sources} sources{over}")

    async def _ask(self, served: ServedSource) -> None:
        """Ask devices that speak only when asked, for ever; until something comes, more often.

        The request or its answer may get lost, and devices may start later than we do.
        """
        options, source = served.options, served.source
        pause = ASK_AGAIN_SECONDS
        while True:
            before = source.payloads
            self._lines[0].connection.publish(options.request, options.request_payload.encode())
            await asyncio.sleep(min(pause, options.request_every))
            if source.payloads > before:
                await asyncio.sleep(max(options.request_every - pause, 0))
                pause = ASK_AGAIN_SECONDS
            else:
                pause = min(pause * 2, options.request_every)


def _is_sparkplug(source: DeclaredSource) -> bool:
    mapping = source.definition.mapping
    return mapping is not None and mapping.format == PayloadFormat.SPARKPLUG


def _former(memory: Memory | None) -> list[list[str]]:
    """Return the filters of each connection that the broker may have kept."""
    found = (memory or {}).get(_FILTERS)
    if not isinstance(found, list):
        return []
    lists = [each for each in found if isinstance(each, list)][:MAX_CONNECTIONS]
    return [[text for text in each if isinstance(text, str)] for each in lists]


def _joined(one: list[list[str]], other: list[list[str]]) -> list[list[str]]:
    """Return the filters of both for each connection, each once."""
    none: list[str] = []
    pairs = zip_longest(one, other, fillvalue=none)
    return [list(dict.fromkeys([*filters, *others])) for filters, others in pairs]


def _first(errors: BaseExceptionGroup[ConnectionError]) -> ConnectionError:
    """Return the first fault: each connection has a group of its own."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
