"""Publish the links a gateway owns as retained messages, and clear those that are gone."""

import logging
from collections.abc import Iterable
from math import isclose

from host.mqtt import MessageClient, QueueFull
from host.mqtt.publishing import publish_or_warn
from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row, Value, display, text_of
from streamsql.errors import WireError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import LinkMessage
from streamsql.wire.topics import Topics, level_of

log = logging.getLogger(__name__)

MAX_FOUND = 100_000
"""Retained links of an earlier life that are remembered until they are cleared."""
MAX_REFUSED = 100
REPEAT_SECONDS = 600.0
"""After which all links are published again: a broker may have dropped one for a slow reader."""
NEAR = 0.1
"""Share of a number by which it may differ from the published one until all are published again."""

Levels = tuple[str, ...]
"""What follows the gateway in a link's topic: relation, source, target and the rest of its key."""


class LinkPublisher:
    """Keeps the broker's retained links of one source equal to the engine's rows.

    Columns are read by role: the key's first two columns are source and target, a number called
    `cost` is the cost, the rest are properties. A later time alone is no change: a link that is
    heard again as it was is not published again. A link whose key is too long for a topic is left
    out and reported once.
    """

    def __init__(
        self,
        gateway: str,
        definition: SourceDefinition,
        engine: SiteEngine,
        client: MessageClient,
        topics: Topics,
    ) -> None:
        self.gateway = gateway
        self.definition = definition
        self.engine = engine
        self.client = client
        self.topics = topics
        self._relation = level_of(definition.name)
        self._published: dict[Levels, Row | None] = {}
        self._refused: set[str] = set()

    def redefine(self, definition: SourceDefinition) -> None:
        """Publish the links of another definition from now on; others of the source are cleared."""
        self.definition = definition
        self.forget()

    @property
    def is_clear(self) -> bool:
        """Whether no link of the source is retained, as far as it is known."""
        return not self._published

    def forget(self) -> None:
        """Publish everything again, because the broker may have lost its memory.

        What was published and is gone by now is still cleared.
        """
        self._published = dict.fromkeys(self._published)

    def found(self, levels: Levels) -> bool:
        """Note a link that is retained on the broker, perhaps since an earlier life.

        Returns:
            Whether it is one of this source's.
        """
        ours = len(levels) == 1 + len(self.definition.key) and levels[0] == self._relation
        if ours and len(self._published) < MAX_FOUND:
            self._published.setdefault(levels, None)
        return ours

    def publish_changes(self) -> None:
        """Send what changed since the last call; stops early when the queue is full."""
        if not self.client.connected:
            return
        current = self._current()
        try:
            for levels in sorted(self._published.keys() - current.keys()):
                self.client.publish(self.topics.link(self.gateway, *levels), b"", retain=True)
                del self._published[levels]
            for levels, row in current.items():
                facts = self._facts(row)
                if not _is_near(self._published.get(levels), facts):
                    payload = encode_json(self._message(row))
                    topic = self.topics.link(self.gateway, *levels)
                    self.client.publish(topic, payload, retain=True)
                    self._published[levels] = facts
        except QueueFull:
            return

    def _facts(self, row: Row) -> Row:
        time = self.definition.time_column
        return row if time is None else row[:time] + row[time + 1 :]

    def _current(self) -> dict[Levels, Row]:
        key = self.definition.key
        current: dict[Levels, Row] = {}
        for row in self.engine.source_rows(self.definition.name):
            try:
                levels = tuple(level_of(text_of(row[position])) for position in key)
            except WireError as error:
                self._refuse(error)
            else:
                current[self._relation, *levels] = row
        return current

    def _refuse(self, error: WireError) -> None:
        if error.message not in self._refused and len(self._refused) < MAX_REFUSED:
            self._refused.add(error.message)
            log.warning("a link of %s is not published: %s", self.definition.name, error)

    def _message(self, row: Row) -> LinkMessage:
        fields = self.definition.schema.fields
        source, target = (text_of(row[position]) for position in self.definition.key[:2])
        values: dict[str, Value] = {
            field.name: display(value, field.dtype)
            for position, (field, value) in enumerate(zip(fields, row, strict=True))
            if position not in self.definition.key[:2]
        }
        cost = values.get("cost")
        if isinstance(cost, str | bool):
            return LinkMessage(source, target, None, values)
        values.pop("cost", None)
        return LinkMessage(source, target, None if cost is None else float(cost), values)


def _is_near(published: Row | None, facts: Row) -> bool:
    """Whether a link is as it was published, but for numbers that have changed a little."""
    if published is None or len(published) != len(facts):
        return False
    return all(
        before == after
        or (
            isinstance(before, float)
            and isinstance(after, float)
            and isclose(before, after, rel_tol=NEAR)
        )
        for before, after in zip(published, facts, strict=True)
    )


class LinkPublishers:
    """The link sources of a gateway."""

    def __init__(
        self, gateway: str, engine: SiteEngine, client: MessageClient, topics: Topics
    ) -> None:
        self._gateway = gateway
        self._engine = engine
        self._client = client
        self._topics = topics
        self._publishers: dict[str, LinkPublisher] = {}
        self._leaving: dict[str, LinkPublisher] = {}
        self._repeat_at: float | None = None

    def define(self, definitions: Iterable[SourceDefinition]) -> None:
        """Publish the links of these sources; the links of others are cleared."""
        wanted = {d.name: d for d in definitions if d.kind == SourceKind.LINK}
        for name in self._publishers.keys() - wanted.keys():
            self._leaving[name] = self._publishers.pop(name)
        for name, definition in wanted.items():
            publisher = self._publishers.get(name) or self._leaving.pop(name, None)
            if publisher is None:
                publisher = LinkPublisher(
                    self._gateway, definition, self._engine, self._client, self._topics
                )
            elif publisher.definition != definition:
                publisher.redefine(definition)
            self._publishers[name] = publisher

    def publish_changes(self, now: float) -> None:
        """Send what changed since the last call, and now and then everything.

        Args:
            now: Seconds of a clock that only goes forward.
        """
        if self._repeat_at is not None and now >= self._repeat_at:
            self.forget()
            self._repeat_at = None
        if self._repeat_at is None:
            self._repeat_at = now + REPEAT_SECONDS
        for publisher in (*self._publishers.values(), *self._leaving.values()):
            publisher.publish_changes()
        self._leaving = {name: each for name, each in self._leaving.items() if not each.is_clear}

    def forget(self) -> None:
        """Publish everything again, because the broker may have lost its memory."""
        for publisher in self._publishers.values():
            publisher.forget()

    def found(self, levels: Levels) -> None:
        """Note a link that is retained under our id; one of no source of ours is cleared."""
        if not any(publisher.found(levels) for publisher in self._publishers.values()):
            clear_unknown(levels, self._gateway, self._client, self._topics)


def clear_unknown(levels: Levels, gateway: str, client: MessageClient, topics: Topics) -> None:
    """Clear a retained link of no source of ours: of one that is gone, or of an earlier version.

    Until version 0.1 topics named the ends only, so links of two sources overwrote each other.
    """
    topic, later = topics.link(gateway, *levels), "an old link will be cleared later"
    publish_or_warn(client, topic, b"", retain=True, otherwise=later)
