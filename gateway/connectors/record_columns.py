"""The columns that a record connector reads: each with its address and data type at the device."""

from typing import NamedTuple

from streamsql.catalog.definitions import SourceDefinition


class RecordColumn(NamedTuple):
    """A column.

    Attributes:
        name: Of the column.
        address: The text of FROM, or the column's name without one.
        form: The text of FORMAT; empty: none.
    """

    name: str
    address: str
    form: str


def record_columns(definition: SourceDefinition) -> tuple[RecordColumn, ...]:
    """Return the columns to read.

    Left out are facts (`@…`), and the event time where it has no FROM: that is the time of arrival.
    """
    assert definition.mapping is not None  # noqa: S101  (a declared source has one)
    columns = enumerate(
        zip(definition.schema.names, definition.mapping.columns, strict=True),
    )
    return tuple(
        RecordColumn(name, column.path or name, column.format)
        for position, (name, column) in columns
        if not column.path.startswith("@") and (column.path or position != definition.time_column)
    )
