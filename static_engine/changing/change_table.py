"""Changes of stored tables: those of the lake, and those of databases.

One thread does that, the one that also reads tables: so changes of a table come one after the
other, and no reading sees half of one.
"""

from static_engine.changing.change_checks import not_writable
from static_engine.changing.database_table import change_database
from static_engine.changing.managed_table import change_managed
from static_engine.sources.declared_options import table_options
from static_engine.sources.managed_rows import lake_of
from static_engine.sources.table_locations import Locations
from streamsql.catalog.table_options import CHANGED_SOURCES, TableSource
from streamsql.wire.stored_tables.table_changes import TableChange


def change_table(change: TableChange, locations: Locations) -> int:
    """Add, change or take rows of a table; return how many.

    Raises:
        TableError: It cannot be done; the table is as it was. Only with code `no_answer` nobody
            knows: a database has gone away before it confirmed.
    """
    definition = change.definition
    options = table_options(definition)
    if options.source not in CHANGED_SOURCES:
        raise not_writable(
            definition,
            f"is read from {options.source}, and Pando does not write into files",
            "CREATE TABLE without a source makes a table that Pando keeps; or use a database, or "
            "change the file yourself",
        )
    if options.source not in locations.changed:
        raise not_writable(
            definition,
            f"is read from {options.source}, which statements may not change here",
            "change it where it is stored, or allow it with the setting changed_sources",
        )
    if options.source == TableSource.LAKE:
        return change_managed(change, lake_of(definition, locations.managed))
    return change_database(change, options, locations)
