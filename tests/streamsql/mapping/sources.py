"""Sources for tests of mappings."""

import msgspec

from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.mapping.mapper import Mapper
from streamsql.mapping.source_mapping import ColumnMapping, SourceMapping


class Source(msgspec.Struct, frozen=True):
    """What a mapper needs of a definition."""

    schema: Schema
    key: tuple[int, ...] = ()
    time_column: int | None = None
    mapping: SourceMapping | None = None


Columns = dict[str, tuple[DataType, ColumnMapping]]


def mapper(
    columns: Columns,
    mapping: SourceMapping = SourceMapping("mqtt"),  # noqa: B008 - it is frozen
    *,
    key: tuple[int, ...] = (),
    time_column: int | None = None,
    topic: str = "",
) -> Mapper:
    """Return the mapper of columns, with the other clauses of a mapping."""
    mapping = msgspec.structs.replace(
        mapping,
        columns=tuple(column for _, column in columns.values()),
        options=(("topic", topic),) if topic else (),
    )
    schema = Schema.of(*((name, dtype) for name, (dtype, _) in columns.items()))
    return Mapper(Source(schema, key, time_column, mapping))
