"""Topics of a sink's rows and keys, and all that may hold something of a key."""

from collections.abc import Iterable

from federated_optimizer.coordinator.sinks.home_assistant_descriptions import Descriptions
from streamsql.catalog.sink_definitions import SinkConnector, SinkDefinition, SinkMode
from streamsql.catalog.topic_template import level_text
from streamsql.data.schema import Schema
from streamsql.data.types import Row


class Topics:
    """Topics of rows and keys."""

    def __init__(self, definition: SinkDefinition, schema: Schema) -> None:
        self._template = definition.template()
        names = self._template.names
        dtypes = schema.dtypes
        self._in_row = tuple((schema.index_of(n), dtypes[schema.index_of(n)]) for n in names)
        places = {name: place for place, name in enumerate(definition.key)}
        self._in_key = tuple((places.get(n, 0), dtypes[schema.index_of(n)]) for n in names)

    def of_row(self, row: Row) -> str:
        """Return the topic of a row.

        Raises:
            ValueError: It is longer than a topic may be.
        """
        return self._template.topic([level_text(row[p], dtype) for p, dtype in self._in_row])

    def of_key(self, key: Row) -> str:
        """Return the topic of a key.

        Raises:
            ValueError: It is longer than a topic may be.
        """
        return self._template.topic([level_text(key[p], dtype) for p, dtype in self._in_key])


def retained_topics(definition: SinkDefinition, schema: Schema, keys: Iterable[Row]) -> list[str]:
    """Return all topics at a broker that may hold something of these keys."""
    if definition.connector != SinkConnector.MQTT or definition.mode != SinkMode.UPSERT:
        return []
    topics = Topics(definition, schema)
    descriptions = Descriptions(definition, schema) if definition.discovery else None
    found = []
    for key in keys:
        try:
            topic = topics.of_key(key)
        except ValueError:
            continue  # it was never published
        found.append(topic)
        if descriptions is not None:
            found += [where for where, _ in descriptions.of(key, topic)]
    return found
