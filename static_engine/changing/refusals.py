"""Why a table is not changed."""

from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition


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
