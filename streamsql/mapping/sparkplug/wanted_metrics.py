"""Which metrics a source reads."""

from streamsql.data.schema import Schema
from streamsql.mapping.row_columns import column_paths
from streamsql.mapping.source_mapping import SourceMapping


def wanted_metrics(mapping: SourceMapping, schema: Schema) -> frozenset[str]:
    """Return the names of the metrics that columns read."""
    paths = column_paths(mapping, schema)
    return frozenset(path or field.name for field, path in paths if not path.startswith("@"))
