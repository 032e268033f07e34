"""What the tests of changes share: statements as they come over the wire."""

from pathlib import Path

from static_engine.changing.change_table import change_table
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.managed_tables import ManagedTables
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_reader import read_table
from streamsql.binder import bind_delete, bind_insert, bind_merge, bind_update, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import CHANGED_SOURCES
from streamsql.data.delta import expand
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from streamsql.syntax import CreateSource, Delete, Insert, Merge, Update, parse_statement
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.stored_tables.table_changes import TableChange


def table(columns: str, options: str) -> SourceDefinition:
    """Return table `desks`."""
    statement = parse_statement(f"CREATE TABLE desks ({columns}) WITH ({options})")
    assert isinstance(statement, CreateSource)
    found = define(statement, Catalog())
    assert isinstance(found, SourceDefinition)
    return found


def change_of(definition: SourceDefinition, text: str, number: str = "c1") -> TableChange:
    """Return what the coordinator makes of a statement."""
    catalog = Catalog()
    catalog.define(definition)
    statement = parse_statement(text)
    if isinstance(statement, Insert):
        bound = bind_insert(statement, catalog)
        return TableChange(number, 1, definition, bound.rows, given=bound.given)
    if isinstance(statement, Update):
        update = bind_update(statement, catalog)
        values, predicate = update.values, update.predicate
        return TableChange(number, 1, definition, update=values, predicate=predicate)
    if isinstance(statement, Merge):
        merge = bind_merge(statement, catalog)
        rows = tuple(expand(evaluate(merge.rows, Database(), 0)))
        return TableChange(number, 1, definition, rows, merge=merge.merge)
    assert isinstance(statement, Delete)
    gone = bind_delete(statement, catalog)
    return TableChange(number, 1, definition, delete=True, predicate=gone.predicate)


def locations_of(folder: Path, changed: tuple[str, ...] = CHANGED_SOURCES) -> Locations:
    """Return a folder whose tables may be read, with a lake."""
    lake = LakeSettings(f"sqlite:///{folder / 'lake.db'}", str(folder / "lake"))
    return Locations(folder, changed=changed, managed=ManagedTables(lake))


def done(folder: Path, change: TableChange) -> int:
    """Do what came over the wire."""
    sent = decode_packed(encode_packed(change), TableChange)
    return change_table(sent, locations_of(folder))


def run(folder: Path, definition: SourceDefinition, text: str, number: str = "c1") -> int:
    """Run a statement."""
    return done(folder, change_of(definition, text, number))


def insert(folder: Path, definition: SourceDefinition, *rows: Row, number: str = "c1") -> int:
    """Insert rows."""
    return done(folder, TableChange(number, 1, definition, rows))


def rows_of(folder: Path, definition: SourceDefinition) -> list[Row]:
    """Return the rows as queries read them."""
    found: list[Row] = []
    for batch in read_table(definition, locations_of(folder)):
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found
