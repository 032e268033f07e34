"""Kind of data from a connector, payloads or values by address: set by its class or the source."""

import msgspec

from streamsql.catalog.definitions import SourceDefinition
from streamsql.mapping.source_mapping import PayloadFormat


def as_handed_over(definition: SourceDefinition, connector: object) -> SourceDefinition:
    """Return a definition as its rows are to be made.

    Args:
        definition: With a mapping.
        connector: Its class, or an instance. Who declares a source knows no plug-ins, so the
            format of one that `hands_over_records` is still the one for payloads.
    """
    mapping = definition.mapping
    is_by_address = getattr(connector, "hands_over_records", False) is True
    if mapping is None or not is_by_address or mapping.format != PayloadFormat.JSON:
        return definition
    fields = msgspec.structs.replace(mapping, format=PayloadFormat.FIELDS)
    return msgspec.structs.replace(definition, mapping=fields)
