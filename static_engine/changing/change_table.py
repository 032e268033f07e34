"""Rows added to a stored table, or taken from it, wherever the table is kept.

One thread does that, the one that also reads tables: so changes of a table come one after the
other, and no reading sees half of one.
"""

from static_engine.changing.change_checks import not_writable
from static_engine.changing.csv_table import change_csv
from static_engine.changing.database_table import change_database
from static_engine.changing.json_table import change_json
from static_engine.changing.parquet_table import change_parquet
from static_engine.sources.declared_options import table_options
from static_engine.sources.table_locations import Locations
from streamsql.catalog.table_options import TableSource
from streamsql.wire.table_changes import TableChange


def change_table(change: TableChange, locations: Locations) -> int:
    """Add rows to a table or take rows from it; return how many.

    Raises:
        TableError: It cannot be done; the table is as it was. Only with code `no_answer` nobody
            knows: a database has gone away before it confirmed.
    """
    options = table_options(change.definition)
    if options.source not in locations.changed:
        raise not_writable(
            change.definition,
            f"is read from {options.source}, which INSERT and DELETE may not change",
            "change it where it is stored, or allow it with the setting changed_sources",
        )
    match options.source:
        case TableSource.CSV:
            return change_csv(change, options, locations)
        case TableSource.PARQUET:
            return change_parquet(change, options, locations)
        case TableSource.JSON:
            return change_json(change, options, locations)
        case TableSource.SQL:
            return change_database(change, options, locations)
