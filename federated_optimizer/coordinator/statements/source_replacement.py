"""CREATE OR REPLACE SOURCE: what reads the source, and whether it could go on reading it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from federated_optimizer.coordinator.queries.planning.inner_query import query_of
from federated_optimizer.coordinator.statements.definition_drops import Reader, readers_of
from streamsql.binder import BoundQuery, bind_query, with_columns
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Field, Schema
from streamsql.errors import BindingError, QueryError
from streamsql.syntax import parse_statement
from streamsql.syntax.statements import Name

MAX_NAMED = 5
"""Readers and columns that a refusal names."""
_HIDDEN = "\0"
"""Begins the name of a column that no statement can write."""


class BrokenReader(NamedTuple):
    """A reader that could not go on, and why."""

    reader: Reader
    reason: str


def changed_columns(old: SourceDefinition, new: SourceDefinition) -> dict[str, str]:
    """Return what would become of the columns that are gone or have another type, by name."""
    types = {field.name: field.dtype for field in new.schema.fields}
    changed = {}
    for field in old.schema.fields:
        dtype = types.get(field.name)
        if dtype is None:
            changed[field.name] = "would be gone"
        elif dtype != field.dtype:
            changed[field.name] = f"would be {dtype} instead of {field.dtype}"
    return changed


def broken_readers(
    old: SourceDefinition, new: SourceDefinition, catalog: Catalog, readers: Iterable[Reader]
) -> list[BrokenReader]:
    """Return what could not go on if a source were defined anew.

    Args:
        old: The definition in the catalog.
        new: The one to take its place.
        catalog: All definitions.
        readers: The running queries; views are found in the catalog.
    """
    changed = changed_columns(old, new)
    after = _with(catalog, new)
    found = []
    for reader in readers_of(old, catalog, readers):
        wanted = _columns(reader, catalog)
        if wanted is None:
            continue
        read = _changes_read(reader, wanted, catalog, new, changed)
        reason = ", ".join(read[:MAX_NAMED]) or _failure(reader, after, wanted)
        if reason:
            found.append(BrokenReader(reader, reason))
    return found


def _changes_read(
    reader: Reader,
    wanted: Schema,
    catalog: Catalog,
    new: SourceDefinition,
    changed: Mapping[str, str],
) -> list[str]:
    """Return what would become of the changed columns that a reader reads."""
    without_all = _with(catalog, _without(new, changed))
    if not changed or not _failure(reader, without_all, wanted):
        return []
    return [
        f"reads {name}, which {what}"
        for name, what in changed.items()
        if _failure(reader, _with(catalog, _without(new, [name])), wanted)
    ]


def refuse_broken(name: Name, broken: list[BrokenReader]) -> None:
    """Refuse to replace a source that something could not read any more.

    Raises:
        BindingError: `broken` names one.
    """
    if not broken:
        return
    told = [f"{b.reader.kind} {b.reader.name} {b.reason}" for b in broken[:MAX_NAMED]]
    if len(broken) > MAX_NAMED:
        told.append(f"and {len(broken) - MAX_NAMED} more")
    first = broken[0].reader
    raise BindingError(
        f"source {name.text!r} cannot be replaced: {'; '.join(told)}",
        span=name.span,
        hint=f'keep these columns with their types, or DROP {first.kind.upper()} "{first.name}" '
        "first",
        code="in_use",
    )


def _with(catalog: Catalog, definition: SourceDefinition) -> Catalog:
    changed = Catalog(tuple(catalog))
    changed.define(definition, replace=True)
    return changed


def _without(definition: SourceDefinition, names: Iterable[str]) -> SourceDefinition:
    """Return a definition whose columns of these names cannot be named; all keep their places."""
    hidden = set(names)
    fields = tuple(
        Field(_HIDDEN + field.name, field.dtype) if field.name in hidden else field
        for field in definition.schema.fields
    )
    return msgspec.structs.replace(definition, schema=Schema(fields))


def _columns(reader: Reader, catalog: Catalog) -> Schema | None:
    """Return the columns that a reader has now; None where it cannot be bound by itself."""
    if reader.columns is not None:
        return reader.columns
    try:
        return _bound(reader, catalog).schema
    except QueryError:
        return None  # a recursive view that ends only within the queries that read it


def _failure(reader: Reader, catalog: Catalog, wanted: Schema) -> str:
    """Return why a reader could not go on with these definitions; empty: it could."""
    try:
        bound = _bound(reader, catalog)
    except QueryError as error:
        return f"would fail: {error.message}"
    if with_columns(bound, wanted) is None:
        return f"would have the columns {bound.schema} instead of {wanted}"
    return ""


def _bound(reader: Reader, catalog: Catalog) -> BoundQuery:
    text = reader.text if reader.columns is not None else _whole_view(reader.name)
    return bind_query(query_of(parse_statement(text)), catalog)


def _whole_view(name: str) -> str:
    return 'SUBSCRIBE TO "' + name.replace('"', '""') + '"'
