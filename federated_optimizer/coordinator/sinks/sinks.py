"""All sinks of a federation: their queries, their receivers, and what the catalog knows of them."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from typing_extensions import override

from federated_optimizer.coordinator.contract.sink_endpoints import (
    MqttSinkEndpoint,
    SinkEndpoint,
    WebhookEndpoint,
)
from federated_optimizer.coordinator.contract.sink_model import SinkApi, SinkInfo
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sinks.mqtt_sender import BrokerTarget, MqttSender
from federated_optimizer.coordinator.sinks.outgoing import Outgoing, Refusal, Sender
from federated_optimizer.coordinator.sinks.sink import Sink, SinkParts, UpsertSink, make_sink
from federated_optimizer.coordinator.sinks.sink_memory import SinkMemory
from federated_optimizer.coordinator.sinks.sink_topics import retained_topics
from federated_optimizer.coordinator.sinks.webhook_sender import WebhookSender
from federated_optimizer.coordinator.store.catalog_store import SinkEntries
from host.mqtt import MessageClient, open_client
from streamsql.catalog.sink_definitions import SinkConnector, SinkDefinition
from streamsql.data.schema import Schema
from streamsql.errors import BindingError, DeploymentError, FederationError

log = logging.getLogger(__name__)

OpenClient = Callable[[MqttSinkEndpoint, str], MessageClient]
"""Makes the client of a broker, not yet connected, under a client id."""

CLEARING_SECONDS = 2.0
"""How long DROP SINK waits for a broker to say whether it empties the topics."""
_NO_ENDPOINT = (
    "with `pando up`: pando endpoint add console NAME …; else add it to `endpoints` in the "
    "settings of the console, and restart the console"
)


class Sinks(SinkApi):
    """All sinks. Each sends in a task of its own: none waits for another's receiver."""

    def __init__(
        self,
        shared: SharedParts,
        queries: Queries,
        found: SinkEntries,
        open_broker: OpenClient | None = None,
    ) -> None:
        self._shared = shared
        self._queries = queries
        self._memory = SinkMemory(shared.store, found)
        self._open_broker = open_broker or _opened
        self._sinks: dict[str, Sink] = {}
        self._targets: dict[str, BrokerTarget] = {}

    async def begin(self, definitions: Iterable[SinkDefinition]) -> None:
        """Go on with what ran before: empty topics of dropped sinks, then send."""
        # Our own broker, too, may have lost what it had retained when it is there again.
        self._shared.client.on_connection(lambda up: self._tell_all_again("") if up else None)
        for endpoint, topics in self._memory.topics_to_clear().items():
            try:
                target = await self._target(endpoint)
            except FederationError as error:
                log.warning("topics at %s are not emptied: %s", endpoint, error.message)
            else:
                target.clear(topics)
        for definition in definitions:
            query = self._queries.find(definition.query_name)
            if query is not None:
                await self.follow(definition, query)

    def check(self, definition: SinkDefinition) -> None:
        """Refuse a sink whose receiver nobody knows.

        Raises:
            BindingError: The settings do not have its endpoint.
        """
        try:
            self._endpoint(definition.endpoint, definition.connector)
        except DeploymentError as error:
            raise BindingError(error.message, hint=error.hint, code="unknown_endpoint") from None

    async def follow(self, definition: SinkDefinition, query: RunningQuery) -> None:
        """Send the answer of a query that has been started."""
        schema = query.bundle.schema
        known = self._memory.of(definition.name)
        may_send = lambda: not self._shared.presence.taken_over  # noqa: E731
        try:
            sender = await self._sender(definition, schema)
            if known.unreadable:
                raise _unreadable(definition.name, known.unreadable)
        except FederationError as error:
            sender = _NoSender(error)
            log.warning("sink %s sends nothing: %s", definition.name, error.message)
            may_send = lambda: False  # noqa: E731
        parts = SinkParts(
            definition, query, sender, self._memory, known, self._shared.clock, may_send
        )
        sink = make_sink(parts)
        self._sinks[definition.name] = sink
        sink.start()

    async def forget(self, definition: SinkDefinition) -> tuple[str, ...]:
        """Stop a sink, discard what is known of it, and empty what it has retained.

        Returns:
            What is still to be emptied and why, or cannot be, in sentences.

        Raises:
            DeploymentError: The catalog cannot be written.
        """
        said: list[str] = []
        topics: list[str] = []
        sink = self._sinks.pop(definition.name, None)
        if sink is not None:
            await sink.stop()
            if sink.unreadable:
                said.append(_left(sink.unreadable))
            if isinstance(sink, UpsertSink):
                topics = retained_topics(definition, sink.query.bundle.schema, sink.book.known)
        elif definition.topic:
            said.append("its query does not run, so its retained messages stay on the broker")
        for topic in topics:
            self._memory.note_clearing(definition.endpoint, topic, due=True)
        await self._memory.write()
        await self._memory.forget(definition.name)
        if topics:
            said += await self._clear(definition.endpoint, topics)
        return tuple(said)

    async def _clear(self, endpoint: str, topics: Sequence[str]) -> list[str]:
        """Empty topics that are noted as due; return what keeps it from happening now."""
        count = f"{len(topics)} retained {'topic is' if len(topics) == 1 else 'topics are'}"
        try:
            target = await self._target(endpoint)
        except FederationError as error:
            return [
                f"{count} not emptied: {error.message}; once the settings have endpoint "
                f"{endpoint} again, a restart of the console empties them"
            ]
        target.clear(topics)
        if target.problem:
            return [f"{count} emptied once the broker is back: {target.problem}"]
        try:
            async with asyncio.timeout(CLEARING_SECONDS):
                await target.until_clear()
        except TimeoutError:
            return [f"{count} being emptied; the broker has not answered for all of them yet"]
        return [target.uncleared] if target.uncleared else []

    async def keep(self) -> None:
        """Decide what is in doubt, and write what has changed to the catalog.

        Raises:
            DeploymentError: It cannot be written; it is tried again with the next call.
        """
        for sink in self._sinks.values():
            sink.look()
            sink.note_counters()
        await self._memory.write()

    async def end(self, *, in_charge: bool) -> None:
        """Stop all; write what has changed since the last look, if the catalog is still ours."""
        for sink in self._sinks.values():
            await sink.stop()
        for target in self._targets.values():
            await target.close()
        if not in_charge:
            return
        for sink in self._sinks.values():
            sink.note_counters()
        try:
            await self._memory.write()
        except FederationError as error:
            log.warning("the last changes of sinks are not saved: %s", error.message)

    @override
    def infos(self) -> tuple[SinkInfo, ...]:
        return tuple(sink.info() for sink in self._sinks.values())

    @override
    def retry(self, name: str) -> int:
        return self._sinks[name].retry()

    @override
    def discard(self, name: str) -> int:
        return self._sinks[name].discard()

    def _tell_all_again(self, endpoint: str) -> None:
        for sink in self._sinks.values():
            if sink.definition.endpoint == endpoint and isinstance(sink.sender, MqttSender):
                sink.sender.tell_all_again()
                if isinstance(sink, UpsertSink):
                    sink.tell_all_again()

    async def _sender(self, definition: SinkDefinition, schema: Schema) -> Sender:
        endpoint = self._endpoint(definition.endpoint, definition.connector)
        if isinstance(endpoint, WebhookEndpoint):
            return WebhookSender(definition, schema, endpoint, self._shared.clock)
        return MqttSender(definition, schema, await self._target(definition.endpoint))

    def _endpoint(self, name: str, connector: SinkConnector) -> SinkEndpoint | None:
        """Return an endpoint; None: our own broker."""
        if not name:
            return None
        found = self._shared.settings.endpoints.get(name)
        if found is None:
            raise DeploymentError(f"there is no endpoint {name!r}", hint=_NO_ENDPOINT)
        wanted = WebhookEndpoint if connector == SinkConnector.WEBHOOK else MqttSinkEndpoint
        if not isinstance(found, wanted):
            raise DeploymentError(f"endpoint {name!r} is not of connector {connector}")
        return found

    async def _target(self, name: str) -> BrokerTarget:
        """Return the broker of an endpoint; empty is our own."""
        found = self._targets.get(name)
        if found is not None:
            return found
        endpoint = self._endpoint(name, SinkConnector.MQTT)
        client = self._shared.client
        if isinstance(endpoint, MqttSinkEndpoint):
            client_id = endpoint.client_id or f"pando-{self._shared.settings.site}-{name}"
            client = self._open_broker(endpoint, client_id)
            client.on_connection(lambda up: self._tell_all_again(name) if up else None)
            await client.connect(timeout=None)
        target = BrokerTarget(
            f"the broker of endpoint {name}" if name else "the federation's broker",
            client,
            lambda topic: self._memory.note_clearing(name, topic, due=False),
            owns_client=bool(name),
        )
        self._targets[name] = target
        return target


class _NoSender(Sender):
    """Stands for a receiver that cannot be used as the settings are."""

    max_batch = 1

    def __init__(self, error: FederationError) -> None:
        self._error = error

    @property
    @override
    def problem(self) -> str:
        return ": ".join(filter(None, (self._error.message, self._error.hint)))

    @override
    async def send(self, batch: Sequence[Outgoing]) -> list[Refusal]:
        raise self._error

    @override
    async def close(self) -> None:
        """Nothing."""


def _unreadable(sink: str, wrong: Sequence[str]) -> DeploymentError:
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return DeploymentError(
        f"the saved state of sink {sink} cannot be read ({wrong[0]:.200}{more}): it sends nothing",
        hint="another release has written it, or the catalog's file is damaged; run that release, "
        "restore a backup, or DROP SINK",
    )


def _left(wrong: Sequence[str]) -> str:
    """Return what DROP SINK leaves of entries that cannot be read."""
    count = "1 entry" if len(wrong) == 1 else f"{len(wrong)} entries"
    return f"{count} of its saved state could not be read; retained messages stay on the broker"


def _opened(endpoint: MqttSinkEndpoint, client_id: str) -> MessageClient:
    try:
        return open_client(
            endpoint.url,
            client_id,
            keepalive=endpoint.keepalive,
            ca=endpoint.ca,
            cert=endpoint.cert,
            key=endpoint.key,
            prefers_5=True,
        )
    except ValueError as error:
        # Without the address: it may hold a password.
        raise DeploymentError(f"settings: endpoint of sinks: {error}") from error
