"""Which files of a table are changed, and whether somebody else changes them, too."""

from pathlib import Path

from static_engine.changing.refusals import failed, not_writable
from static_engine.sources.declared_options import TableOptions
from static_engine.sources.table_locations import (
    Fingerprint,
    Locations,
    files_of,
    fingerprint,
    resolve,
)
from streamsql.catalog.definitions import SourceDefinition


def is_folder(options: TableOptions, locations: Locations) -> bool:
    """Whether a table is a folder of files."""
    return resolve(options.path, locations).is_dir()


def one_file(
    definition: SourceDefinition,
    options: TableOptions,
    locations: Locations,
    suffixes: tuple[str, ...],
) -> Path:
    """Return the file of a table that is in one.

    Args:
        definition: The table.
        options: Its options.
        locations: Where it may be.
        suffixes: How the name of a file ends that is changed: a path may name anything.

    Raises:
        TableMissingError: It is not there.
        TableError: It is a folder, or no file of that kind.
    """
    if is_folder(options, locations):
        raise not_writable(
            definition,
            f"is a folder of {options.source} files: INSERT and DELETE change one file",
        )
    (file,) = files_of(options.path, locations, f".{options.source}")
    if file.suffix.lower() not in suffixes:
        raise not_writable(
            definition,
            f"is in {file.name}: INSERT and DELETE change plain files named {', '.join(suffixes)}",
        )
    return file


def check_unchanged(
    options: TableOptions, locations: Locations, before: Fingerprint | None, where: str
) -> None:
    """Check that a table's files are those that were read.

    Raises:
        TableError: Somebody else has changed them.
    """
    if fingerprint(options, locations) != before:
        raise failed(f"{where} was changed by another process in the meantime", "try again")
