"""Definitions of declared sources on their way from the catalog to gateways."""

import msgspec

from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import WireError
from streamsql.mapping.source_mapping import SourceMapping
from streamsql.wire.bounds import Count, Name, Names
from streamsql.wire.codec import decode_json, encode_json

MAX_ORDER_BYTES = 256_000
MAX_COLUMNS = 1_000
MAX_SOURCES = 1_000
"""Declared sources of a federation; more are refused."""


class SourceOrder(msgspec.Struct, frozen=True):
    """A declared source as gateways are to serve it.

    Attributes:
        version: Of the definition.
        definition: With its mapping.
    """

    version: int
    definition: SourceDefinition

    def __post_init__(self) -> None:
        """Check that parts fit each other.

        Raises:
            ValueError: They do not.
        """
        definition, mapping = self.definition, self.definition.mapping
        if mapping is None or definition.is_table:
            raise ValueError(f"{definition.name!r:.80} is no declared source")
        if self.version < 1 or self.version != definition.version:
            raise ValueError(f"version {self.version} of a definition {definition.version}")
        width = len(definition.schema)
        if not 0 < width <= MAX_COLUMNS or len(mapping.columns) != width:
            raise ValueError(f"{len(mapping.columns)} mappings of {width} columns")
        if definition.kind == SourceKind.LINK and len(definition.key) < 2:
            raise ValueError("a link source needs a key of source and target")
        positions = [*definition.key, definition.time_column or 0]
        if not all(0 <= position < width for position in positions):
            raise ValueError("a key or the event time is no column")


class _ForWhom(msgspec.Struct, frozen=True):
    """What every release says of who is to serve a source."""

    connector: Name
    endpoint: Name = ""
    gateways: Names = ()


class _UnreadDefinition(msgspec.Struct, frozen=True):
    mapping: _ForWhom


class _UnreadOrder(msgspec.Struct, frozen=True):
    version: Count
    definition: _UnreadDefinition


def encode_order(definition: SourceDefinition) -> bytes:
    """Return the payload of a definition.

    Raises:
        WireError: It is too large for a gateway to take.
    """
    payload = encode_json(SourceOrder(definition.version, definition))
    if len(payload) > MAX_ORDER_BYTES:
        raise WireError(
            f"the definition of {definition.name} takes {len(payload)} bytes; the max is "
            f"{MAX_ORDER_BYTES}",
            hint="divide it into several sources",
        )
    return payload


def decode_order(name: str, payload: bytes) -> SourceDefinition:
    """Return the definition in a payload on the topic of a source.

    Raises:
        WireError: It is no legal definition, or of another name.
    """
    order = decode_json(payload, SourceOrder, limit=MAX_ORDER_BYTES)
    if order.definition.name != name:
        raise WireError(
            f"a definition of {order.definition.name!r:.80} on the topic of {name!r:.80}"
        )
    return order.definition


def addressees_of(payload: bytes) -> tuple[int, SourceMapping]:
    """Return version and addressees of a definition the rest of which cannot be read here.

    Raises:
        WireError: Not even these can be read.
    """
    order = decode_json(payload, _UnreadOrder, limit=MAX_ORDER_BYTES)
    whom = order.definition.mapping
    return order.version, SourceMapping(whom.connector, whom.endpoint, whom.gateways)
