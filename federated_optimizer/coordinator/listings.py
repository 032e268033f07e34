"""SHOW and DESCRIBE: what there is, as rows."""

from federated_optimizer.coordinator.model import QueryInfo, ResultKind, SiteInfo, StatementResult
from federated_optimizer.coordinator.planner import query_of
from streamsql.algebra.explain import duration_text
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog, is_library, kind_of
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.system import is_system
from streamsql.errors import UnsupportedError
from streamsql.syntax import parse_statement

Row = tuple[str | int | bool | None, ...]


def show(
    kind: str, catalog: Catalog, queries: tuple[QueryInfo, ...], sites: tuple[SiteInfo, ...]
) -> StatementResult:
    """Return the answer to SHOW.

    Raises:
        UnsupportedError: Nothing of that kind is listed.
    """
    match kind:
        case "sources":
            return _rows(
                ("source", "kind", "columns", "ttl", "gateways"),
                [_source_row(source, sites) for source in catalog.sources],
            )
        case "tables":
            return _rows(
                ("table", "columns", "read from"),
                [(t.name, str(t.schema), _origin(t)) for t in catalog.tables],
            )
        case "views":
            return _rows(
                ("view", "library", "query"),
                [(v.name, is_library(v), " ".join(v.query.split())) for v in catalog.views],
            )
        case "functions":
            return _rows(
                ("function", "kind", "implementation", "nulls"),
                [
                    (f.usage, kind_of(f), f.implementation, "called" if f.on_null else "skipped")
                    for f in catalog.functions
                ],
            )
        case "queries":
            return _rows(
                ("query", "name", "status", "rows", "changes", "text"),
                [
                    (q.id, q.name, str(q.status), q.rows, q.changes, " ".join(q.text.split()))
                    for q in queries
                ],
            )
        case "gateways":
            return _rows(
                ("site", "role", "freshness", "sensors", "sources", "detail"),
                [
                    (s.site, s.role, s.freshness, s.sensors, ", ".join(s.sources), s.detail)
                    for s in sites
                ],
            )
        case _:
            raise UnsupportedError(
                f"SHOW {kind.upper()} is not known",
                hint="SHOW SOURCES, TABLES, VIEWS, FUNCTIONS, QUERIES or GATEWAYS",
            )


def describe_definition(definition: Definition, catalog: Catalog) -> StatementResult:
    """Return the columns of a definition.

    Raises:
        QueryError: A view does not bind any more.
    """
    if isinstance(definition, SourceDefinition):
        rows: list[Row] = [
            (f.name, str(f.dtype), _column_note(definition, i))
            for i, f in enumerate(definition.schema.fields)
        ]
        return _rows(("column", "type", "note"), rows)
    if isinstance(definition, FunctionDefinition):
        parameters: list[Row] = [
            (f.name, str(f.dtype), "parameter") for f in definition.parameters.fields
        ]
        result: Row = ("", str(definition.result), f"result of {definition.implementation}")
        return _rows(("column", "type", "note"), [*parameters, result])
    statement = parse_statement(f"SUBSCRIBE TO {_quoted(definition.name)}")
    bound = bind_query(query_of(statement), catalog)
    view_rows: list[Row] = [(f.name, str(f.dtype), "") for f in bound.schema.fields]
    return _rows(("column", "type", "note"), view_rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rows(columns: tuple[str, ...], rows: list[Row]) -> StatementResult:
    return StatementResult(ResultKind.ROWS, columns=columns, rows=tuple(rows))


def _source_row(source: SourceDefinition, sites: tuple[SiteInfo, ...]) -> Row:
    name = source.name.lower()
    owners = [s.site for s in sites if name in {offered.lower() for offered in s.sources}]
    if is_system(source):
        owners = [s.site for s in sites if s.role in ("gateway", "base")]
    ttl = duration_text(source.ttl) if source.ttl is not None else ""
    return (source.name, str(source.kind), str(source.schema), ttl, ", ".join(owners))


def _origin(table: SourceDefinition) -> str:
    if is_system(table):
        return "the coordinator"
    parts = [table.option("source"), table.option("path") or table.option("table")]
    return " ".join(part for part in parts if part)


def _column_note(definition: SourceDefinition, position: int) -> str:
    notes = []
    if position in definition.key:
        notes.append("key")
    if position == definition.time_column:
        notes.append("event time")
    return ", ".join(notes)
