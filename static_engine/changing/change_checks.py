"""Checks of a change: its primary key; and how a change is refused."""

from collections.abc import Iterable, Iterator

from static_engine.sources.table_errors import TableError
from streamsql.algebra.row_changes import MergeError, RowChange, merged_rows, updated_rows
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row, Value
from streamsql.wire.stored_tables.table_changes import TableChange

Key = tuple[Value, ...]


def failed(message: str, hint: str = "") -> TableError:
    """Return the error of a change that did not come about; the table is as it was."""
    return TableError(message, hint=hint, code="change_failed")


def not_writable(definition: SourceDefinition, why: str, hint: str = "") -> TableError:
    """Return the error of a table that is never changed from here.

    Args:
        definition: The table.
        why: What follows its name.
        hint: What to do instead.
    """
    return TableError(
        f"table {definition.name} {why}",
        hint=hint or "change it where it is stored; Pando reads the change",
        code="not_writable",
    )


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


def row_changes(change: TableChange, rows: Iterable[Row]) -> Iterator[RowChange]:
    """Yield what an UPDATE, a MERGE or a DELETE makes of rows, each before the next is taken.

    Raises:
        TableError: A MERGE is ambiguous, or would take too long; nothing has changed.
    """
    try:
        if change.merge is not None:
            yield from merged_rows(rows, change.rows, change.merge)
        elif change.update:
            yield from updated_rows(rows, change.predicate, change.update)
        elif change.delete:
            goes = None if change.predicate is None else compile_predicate(change.predicate)
            yield from ((row, None) for row in rows if goes is None or goes(row))
    except MergeError as error:
        raise failed(
            f"table {change.definition.name}: {error}; nothing has changed",
            "let ON and WHEN meet each row of the table at most once, by an equation of keys",
        ) from error


def assigned_places(change: TableChange) -> tuple[int, ...]:
    """Return the positions of the columns that an UPDATE or a MERGE gives new values."""
    actions = () if change.merge is None else change.merge.actions
    values = [change.update, *(action.values for action in actions if action.matched)]
    return tuple(sorted({position for each in values for position, _ in each}))


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
