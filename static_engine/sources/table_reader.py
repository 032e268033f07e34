"""Read a stored table, whatever it is, into validated batches."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from static_engine.sources.csv_file import read_csv
from static_engine.sources.databases.database_groups import read_groups
from static_engine.sources.databases.database_reader import read_database
from static_engine.sources.declared_options import TableOptions, table_options
from static_engine.sources.documents.geo_rows import read_geojson
from static_engine.sources.documents.imdf_rows import read_imdf
from static_engine.sources.json_rows import read_json
from static_engine.sources.managed_rows import read_managed
from static_engine.sources.object_stores import fetched, is_stored
from static_engine.sources.parquet_file import read_parquet
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_folders.delta_folder import read_delta
from static_engine.sources.table_folders.iceberg_folder import read_iceberg
from static_engine.sources.table_locations import (
    Locations,
    database_url,
    resolve,
    suffixes_of,
    table_files,
)
from static_engine.sources.table_parts import Narrowed
from static_engine.sources.values.unique_keys import unique_rows
from streamsql.algebra.expressions import Expression
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import TableSource
from streamsql.errors import InternalError


def read_table(
    definition: SourceDefinition, locations: Locations, part: Narrowed | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stored table in `arrow_schema` of its columns.

    Args:
        definition: The table, or the part's definition.
        locations: What may be read.
        part: That is read instead of all of the table.

    Raises:
        TableMissingError: Its file or database table is not there.
        NoGroupsError: The database does not compute the part's groups as we do.
        TableError: It cannot be read as declared; the text says what, where and why.
    """
    batches = _batches(definition, locations, part)
    return unique_rows(definition, batches) if definition.key else batches


def _batches(
    definition: SourceDefinition, locations: Locations, part: Narrowed | None
) -> Iterator[pa.RecordBatch]:
    options = table_options(definition)
    conditions = part.conditions if part is not None else ()
    match options.source:
        case TableSource.LAKE:
            yield from read_managed(definition, locations.managed, part)
        case TableSource.SQL:
            url = database_url(options.url, locations)
            if part is not None and part.groups is not None:
                yield from read_groups(part, part.groups, url, options.table)
            else:
                yield from read_database(definition, url, options.table, conditions)
        case TableSource.ICEBERG | TableSource.DELTA if is_stored(options.path):
            raise TableError(
                f"table {definition.name}: tables of {options.source} are read from folders",
                hint="copy the table into an open folder, or mount the store there",
            )
        case TableSource.ICEBERG:
            yield from read_iceberg(definition, options.path, locations, conditions)
        case TableSource.DELTA:
            yield from read_delta(definition, options.path, locations, conditions)
        case _ if is_stored(options.path):
            suffixes = suffixes_of(options.source)
            with fetched(options.path, suffixes, locations.stores, locations.secrets) as objects:
                yield from _rows_of(definition, options, objects, locations)
        case _:
            files = table_files(options, locations)
            yield from _rows_of(definition, options, files, locations, conditions)


def _rows_of(
    definition: SourceDefinition,
    options: TableOptions,
    files: tuple[Path, ...],
    locations: Locations,
    conditions: tuple[Expression, ...] = (),
) -> Iterator[pa.RecordBatch]:
    match options.source:
        case TableSource.CSV:
            yield from read_csv(definition, options, files)
        case TableSource.PARQUET:
            yield from read_parquet(definition, files, conditions)
        case TableSource.JSON:
            yield from read_json(definition, files)
        case TableSource.GEOJSON:
            yield from read_geojson(definition, files)
        case TableSource.IMDF:
            yield from read_imdf(definition, _archive(options, files, locations), options.layer)
        case TableSource.ICS:
            # Imported here: 0.06 s of a start, and few installations have a calendar.
            from static_engine.sources.documents.calendar_rows import read_calendar  # noqa: PLC0415

            yield from read_calendar(definition, files, options.interval)
        case TableSource.RDF:
            # Imported here: it takes long to load, and few installations have a model.
            from static_engine.sources.documents.rdf_rows import read_rdf  # noqa: PLC0415

            yield from read_rdf(definition, files, options.layer)
        case source:
            raise InternalError(f"tables of {source} have no files of their own")


def _archive(options: TableOptions, files: tuple[Path, ...], locations: Locations) -> Path:
    """Return the zip file or folder of a map."""
    return files[0] if is_stored(options.path) else resolve(options.path, locations)
