"""Iceberg tables by path: a table's folder, or one of its `…metadata.json` files (a version)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import StaticTable

from static_engine.lake.lake import rows_of_snapshot
from static_engine.sources.conditions.iceberg_conditions import iceberg_condition
from static_engine.sources.table_errors import TableError, TableMissingError
from static_engine.sources.table_folders.open_files import open_file
from static_engine.sources.table_locations import Locations, resolve
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import convert_batch
from streamsql.algebra.expressions import Expression
from streamsql.catalog.definitions import SourceDefinition

_METADATA = ".metadata.json"
_NUMBER = re.compile(r"^v?(\d+)")
_MAX_METADATA_BYTES = 64 << 20


class OpenFileIO(PyArrowFileIO):
    """Reads files of open folders only.

    Args:
        locations: What is open.
    """

    def __init__(self, locations: Locations) -> None:
        super().__init__()
        self._locations = locations

    def new_input(self, location: str) -> InputFile:  # type: ignore[override]
        """Return a file to read.

        Raises:
            TableError: It is in no open folder.
        """
        return super().new_input(str(open_file(location, self._locations)))

    def new_output(self, location: str) -> OutputFile:  # type: ignore[override]
        """Refuse: tables by path are read.

        Raises:
            TableError: Always.
        """
        raise TableError(f"{location!r:.200} is not written: the table belongs to somebody else")


def metadata_file(path: str, locations: Locations) -> Path:
    """Return the newest metadata file of a table, or the one that the path names.

    Raises:
        TableMissingError: There is none.
        TableError: The path is outside of what the operator allows.
    """
    full = resolve(path, locations)
    if full.name.endswith(_METADATA) and full.is_file():
        return _small(full)
    try:
        found = [f for f in (full / "metadata").iterdir() if f.name.endswith(_METADATA)]
    except OSError:
        found = []
    if not found:
        raise TableMissingError(
            f"{path!r:.200} has no Iceberg table (no metadata/*{_METADATA})",
            hint="name the table's folder, the one that holds metadata and data",
        )
    return _small(resolve(str(max(found, key=_version)), locations))


def _small(file: Path) -> Path:
    if file.stat().st_size > _MAX_METADATA_BYTES:
        raise TableError(f"{file.name} is larger than {_MAX_METADATA_BYTES >> 20} MB")
    return file


def _version(file: Path) -> tuple[int, int, str]:
    number = _NUMBER.match(file.name)
    return (int(number[1]) if number else -1, file.stat().st_mtime_ns, file.name)


def read_iceberg(
    definition: SourceDefinition,
    path: str,
    locations: Locations,
    conditions: tuple[Expression, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an Iceberg table in the declared types.

    Rows that fail one of the conditions may be left out, and with them whole files.

    Raises:
        TableMissingError: It is not there.
        TableError: It cannot be read, lacks a column, or names files outside of open folders.
    """
    where = f"table {definition.name}: {path}"
    try:
        table = _opened(path, locations)
        found = table.schema().fields
        places = match_columns(definition, [field.name for field in found], path)
        names = [found[p].name for p in places]
        condition = iceberg_condition(conditions, {at: found[p] for at, p in enumerate(places)})
        scan = table.scan(row_filter=condition, selected_fields=tuple(names))
        row = 1
        for batch in scan.to_arrow_batch_reader():
            columns = [batch.column(name) for name in names]
            yield convert_batch(definition, columns, row, where)
            row += batch.num_rows
    except TableError:
        raise
    except Exception as error:  # pyiceberg raises what its parts raise
        what = " ".join(str(error).split())
        raise TableError(
            f"{where} is not readable Iceberg: {type(error).__name__}: {what:.300}"
        ) from error


def rows_of_iceberg(path: str, locations: Locations) -> int | None:
    """Return about how many rows a table has by its newest snapshot; None if it does not say."""
    try:
        return rows_of_snapshot(_opened(path, locations))
    except Exception:  # noqa: BLE001 - whoever reads it says what is wrong
        return None


def _opened(path: str, locations: Locations) -> StaticTable:
    file = metadata_file(path, locations)
    io = OpenFileIO(locations)
    return StaticTable(
        identifier=("path", path),
        metadata=FromInputFile.table_metadata(io.new_input(str(file))),
        metadata_location=str(file),
        io=io,
        catalog=NoopCatalog("path"),
    )
