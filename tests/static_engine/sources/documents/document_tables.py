"""Tables over documents of a folder, and their rows."""

from pathlib import Path

import pytest

from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_reader import read_table
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from streamsql.syntax import CreateSource, parse_statement


def table(columns: str, **options: str) -> SourceDefinition:
    """Return table `t`."""
    written = ", ".join(f"{name} = '{value}'" for name, value in options.items())
    statement = parse_statement(f"CREATE TABLE t ({columns}) WITH ({written})")
    assert isinstance(statement, CreateSource)
    found = define(statement, Catalog())
    assert isinstance(found, SourceDefinition)
    return found


def rows(folder: Path, columns: str, **options: str) -> list[Row]:
    """Return the rows of a table over a document of a folder."""
    found: list[Row] = []
    for batch in read_table(table(columns, **options), Locations(folder)):
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def refused(folder: Path, columns: str, **options: str) -> str:
    """Return the text of the error that reading a table gives."""
    with pytest.raises(TableError) as refusal:
        rows(folder, columns, **options)
    return str(refusal.value)
