"""Definitions of sinks: where the answer of a query goes, and in which form."""

import re
from enum import StrEnum

import msgspec

from streamsql.catalog.topic_template import TopicTemplate


class SinkConnector(StrEnum):
    """What carries the messages of a sink."""

    MQTT = "mqtt"
    WEBHOOK = "webhook"


class SinkMode(StrEnum):
    """Which messages a sink sends.

    UPSERT: the newest row of each key, and that a key has none any more. APPEND: each row of a
    stream once.
    """

    UPSERT = "upsert"
    APPEND = "append"


class SinkFormat(StrEnum):
    """How a row is written."""

    JSON = "json"
    SENML = "senml"


class SinkDefinition(msgspec.Struct, frozen=True):
    """A query whose answer leaves the federation.

    Attributes:
        query: Its text.
        endpoint: Name of the receiver in the settings of the console; empty: the federation's own
            broker.
        key: Columns of which each combination has at most one row; of an append sink none.
        topic: With MQTT: the pattern of its topics, see `TopicTemplate`.
        discovery: With MQTT: first level of the topics where Home Assistant looks for
            descriptions; empty: there are none.
        units: Unit of each column of the answer, in order; empty where none is known.
        batch: With a webhook: most rows of one request.
        tries: With a webhook: how often a request is sent before its rows become dead letters.
        timeout: With a webhook: microseconds that an answer may take.
        text: The CREATE statement.
    """

    name: str
    query: str
    connector: SinkConnector
    mode: SinkMode
    endpoint: str = ""
    key: tuple[str, ...] = ()
    format: SinkFormat = SinkFormat.JSON
    topic: str = ""
    discovery: str = ""
    units: tuple[str, ...] = ()
    batch: int = 100
    tries: int = 10
    timeout: int = 10_000_000
    text: str = ""

    @property
    def query_name(self) -> str:
        """The name its running query has; no query of a user can have one with a blank."""
        return f"sink {self.name}"

    @property
    def target(self) -> str:
        """Where it sends, in words."""
        place = self.endpoint or "the federation's broker"
        return f"{self.topic} at {place}" if self.topic else place

    def template(self) -> TopicTemplate:
        """Return its topics."""
        return TopicTemplate(self.topic)


_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_discovery_prefix(text: str) -> bool:
    """Whether Home Assistant may look for descriptions below this level."""
    return _PREFIX.fullmatch(text) is not None and text != "pando"
