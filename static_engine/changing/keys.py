"""The declared primary key of a table that takes new rows."""

from collections.abc import Iterable

from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row, Value

Key = tuple[Value, ...]


def keys_of(definition: SourceDefinition, rows: Iterable[Row]) -> list[Key]:
    """Return the keys of rows, in order; none where no key is declared."""
    return [tuple(row[k] for k in definition.key) for row in rows] if definition.key else []


def check_keys(definition: SourceDefinition, known: Iterable[Key], added: list[Key]) -> None:
    """Check that new rows have keys, and keys of their own.

    Args:
        definition: The table.
        known: Keys of the rows that are there.
        added: Keys of the new rows.

    Raises:
        TableError: They have not.
    """
    seen: set[Key] = set()
    for key in added:
        if None in key:
            raise missing(definition, key)
        if key in seen:
            raise duplicate(definition, key)
        seen.add(key)
    for key in known if seen else ():
        if key in seen:
            raise duplicate(definition, key)


def missing(definition: SourceDefinition, key: Key) -> TableError:
    """Return the error of a key with NULL in it."""
    return TableError(
        f"table {definition.name}: NULL in the primary key {_shown(definition, key)}",
        hint="give every column of the key a value",
        code="duplicate_key",
    )


def duplicate(definition: SourceDefinition, key: Key) -> TableError:
    """Return the error of a key that is there already."""
    return TableError(
        f"table {definition.name} already has a row with the primary key {_shown(definition, key)}",
        hint="DELETE that row first, or give this one another key",
        code="duplicate_key",
    )


def _shown(definition: SourceDefinition, key: Key) -> str:
    names = ", ".join(definition.schema.names[k] for k in definition.key)
    values = ", ".join("NULL" if part is None else repr(part) for part in key)
    return f"({names}) = ({values:.120})"
