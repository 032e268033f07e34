"""A table of rooms, in a CSV file and in the lake, and the topics of the federation that has it."""

from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
SCHEMA = Schema.of(("room", DataType.TEXT), ("seats", DataType.INTEGER))
ROOMS = SourceDefinition(
    "rooms", SourceKind.TABLE, SCHEMA, options=(("source", "csv"), ("path", "rooms.csv"))
)
MANAGED = SourceDefinition("rooms", SourceKind.TABLE, SCHEMA)
"""The same as a managed table of the lake."""
