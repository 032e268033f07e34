"""CREATE statements to definitions of the catalog."""

from dataclasses import replace

from streamsql.algebra.operators import SourceKind
from streamsql.binder.names.dependences import refers_to_name
from streamsql.binder.statements.bind import bind_query, bind_view, statement_environment
from streamsql.binder.statements.defined_functions import define_function, named_columns
from streamsql.binder.statements.displays_and_alarms import define_alarm, define_display
from streamsql.binder.statements.options.source_mappings import check_compiles, source_mapping
from streamsql.binder.statements.options.source_options import check_table_options, stream_ttl
from streamsql.binder.statements.refreshed_views import define_refreshed
from streamsql.binder.statements.sink_statements import define_sink
from streamsql.catalog.catalog import Catalog, check_not_system, is_library, kind_of
from streamsql.catalog.definitions import Definition, SourceDefinition, ViewDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import BindingError
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.statements import (
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSink,
    CreateSource,
    CreateView,
    Name,
)

Creating = CreateSource | CreateView | CreateFunction | CreateDisplay | CreateAlarm | CreateSink
"""Statements that put something into the catalog."""


def define(statement: Creating, catalog: Catalog) -> Definition:
    """Check a CREATE statement and return what to put into the catalog.

    A definition may take the name of a library view, and OR REPLACE that of a source.

    A view whose recursion ends only under a MIN or MAX above it is accepted; the query that reads
    it is checked.

    Raises:
        BindingError: A name is taken, a column or option is wrong, or the view does not bind.
        UnsupportedError: The view uses something that is refused.
    """
    check_not_system(statement.name.text, statement.name.span)
    existing = catalog.find(statement.name.text)
    if existing is not None and not _gives_way(existing, statement):
        kind = kind_of(existing)
        raise BindingError(
            f"{kind} {existing.name!r} already exists",
            span=statement.name.span,
            hint=_way_out(existing, statement),
            code="already_exists",
        )
    if isinstance(statement, CreateFunction):
        return define_function(statement, catalog)
    if isinstance(statement, CreateDisplay):
        return define_display(statement)
    if isinstance(statement, CreateAlarm):
        return define_alarm(statement, bind_query(statement.query, catalog))
    if isinstance(statement, CreateSink):
        return define_sink(statement, bind_query(statement.query, catalog), catalog)
    if isinstance(statement, CreateView):
        return _view(statement, catalog)
    return _source(statement, existing.version if isinstance(existing, SourceDefinition) else 0)


def _gives_way(existing: Definition, statement: Creating) -> bool:
    if is_library(existing):
        return True
    return isinstance(statement, CreateSource) and statement.replace and _is_source(existing)


def _is_source(definition: Definition) -> bool:
    return isinstance(definition, SourceDefinition) and not definition.is_table


def _way_out(existing: Definition, statement: Creating) -> str:
    drop = f"DROP {kind_of(existing).upper()} {existing.name} first"
    if isinstance(statement, CreateSource) and _is_source(existing):
        return f"{drop}, or CREATE OR REPLACE SOURCE, which keeps what reads it"
    return drop


def _source(statement: CreateSource, version: int) -> SourceDefinition:
    """Return the definition of a source or table; `version` is that of the one it replaces."""
    schema = _schema(statement)
    kind = statement.kind
    ttl = None
    if kind == SourceKind.TABLE:
        _check_table(statement)
    else:
        ttl = stream_ttl(statement, schema)
    time_column = _time_column(statement, schema)
    mapping = None if kind == SourceKind.TABLE else source_mapping(statement)
    definition = SourceDefinition(
        name=statement.name.text,
        kind=kind,
        schema=schema,
        key=_key(statement, schema, kind),
        time_column=None if kind == SourceKind.TABLE else time_column,
        ttl=ttl,
        lateness=statement.watermark.lateness if statement.watermark else None,
        options=tuple((option.name, option.value) for option in statement.options),
        text=statement.text,
        mapping=mapping,
        version=0 if mapping is None else version + 1,
    )
    check_compiles(statement, definition)
    return definition


def _schema(statement: CreateSource) -> Schema:
    if not statement.columns:
        raise BindingError(
            f"{statement.name.text!r} has no columns",
            span=statement.name.span,
            hint="CREATE SOURCE name (column TYPE, …)",
            code="missing_columns",
        )
    return named_columns(statement.columns, "column")


def _position(name: Name, schema: Schema) -> int:
    try:
        return schema.index_of(name.text)
    except KeyError:
        raise BindingError(
            f"there is no column {name.text!r}",
            span=name.span,
            hint=did_you_mean(name.text, schema.names, f"columns: {', '.join(schema.names)}"),
            code="unknown_column",
        ) from None


def _key(statement: CreateSource, schema: Schema, kind: SourceKind) -> tuple[int, ...]:
    positions = tuple(_position(name, schema) for name in statement.key)
    if len(set(positions)) != len(positions):
        raise BindingError(
            "a column appears twice in the key",
            span=statement.key[0].span,
            hint="name it once",
            code="duplicate_name",
        )
    if kind != SourceKind.LINK or positions:
        return positions
    if len(schema) < 2:
        raise BindingError(
            "a link source needs a source and a destination column",
            span=statement.name.span,
            hint="CREATE LINK SOURCE link (src TEXT, dst TEXT, …)",
            code="missing_columns",
        )
    return (0, 1)


def _time_column(statement: CreateSource, schema: Schema) -> int | None:
    if statement.watermark is not None:
        name = statement.watermark.column
        position = _position(name, schema)
        if schema.dtypes[position] != DataType.TIMESTAMP:
            raise BindingError(
                f"the watermark column {name.text!r} is {schema.dtypes[position]}",
                span=name.span,
                hint=f"declare it {name.text} TIMESTAMP",
                code="bad_watermark",
            )
        return position
    for position, field in enumerate(schema.fields):
        if field.name == "ts" and field.dtype == DataType.TIMESTAMP:
            return position
    return None


def _check_table(statement: CreateSource) -> None:
    check_table_options(statement)
    if statement.watermark is not None:
        raise BindingError(
            "a table has no watermark",
            span=statement.watermark.column.span,
            hint="leave it out, or use SOURCE",
            code="bad_watermark",
        )


def _view(statement: CreateView, catalog: Catalog) -> ViewDefinition | SourceDefinition:
    name = statement.name.text
    recursive = refers_to_name(statement.query.tree, name)
    if recursive and not statement.recursive:
        raise BindingError(
            f"view {name!r} reads itself",
            span=statement.name.span,
            hint=f"CREATE RECURSIVE VIEW {name}(columns) AS base UNION step",
            code="circular_view",
        )
    if statement.refresh is not None:
        return define_refreshed(statement, statement.refresh, catalog)
    definition = ViewDefinition(
        name=name,
        query=statement.query.text,
        columns=tuple(column.text for column in statement.columns),
        recursive=statement.recursive,
        text=statement.text,
    )
    whole = statement_environment(catalog.scratch(name), statement.script)
    environment = replace(whole, expanding=(name,))
    bind_view(definition, statement.query, environment)
    return definition
