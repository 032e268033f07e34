"""SHOW and DESCRIBE: what there is, as rows."""

from federated_optimizer.coordinator.contract.coordinator_model import (
    AlarmInfo,
    QueryInfo,
    ResultKind,
    SiteInfo,
    StatementResult,
)
from federated_optimizer.coordinator.contract.refresh_text import Refreshes, refresh_facts
from federated_optimizer.coordinator.queries.planner import query_of
from streamsql.algebra.explain import duration_text
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog, is_library, kind_of
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notices import AlarmDefinition, DisplayDefinition
from streamsql.catalog.system import is_system
from streamsql.data.types import timestamp_text
from streamsql.errors import UnsupportedError
from streamsql.syntax import parse_statement

Row = tuple[str | int | bool | None, ...]
_NOTHING_TOLD = Refreshes()


def show(  # noqa: PLR0913 - what is listed
    kind: str,
    catalog: Catalog,
    queries: tuple[QueryInfo, ...],
    sites: tuple[SiteInfo, ...],
    alarms: tuple[AlarmInfo, ...] = (),
    *,
    refreshes: Refreshes = _NOTHING_TOLD,
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
                [(t.name, str(t.schema), _origin(t)) for t in catalog.tables if not t.refresh],
            )
        case "views":
            return _rows(
                ("view", "library", "query", "refreshed"),
                [
                    *(
                        (v.name, is_library(v), " ".join(v.query.split()), "")
                        for v in catalog.views
                    ),
                    *_refreshed_rows(catalog, refreshes),
                ],
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
                ("query", "name", "status", "rows", "changes", "text", "notes"),
                [
                    (
                        *(q.id, q.name, str(q.status), q.rows, q.changes),
                        " ".join(q.text.split()),
                        "; ".join(q.warnings),
                    )
                    for q in queries
                ],
            )
        case "gateways":
            return _rows(
                ("site", "role", "freshness", "sensors", "sources", "clock offset", "detail"),
                [
                    (
                        *(s.site, s.role, str(s.freshness), s.sensors, ", ".join(s.sources)),
                        clock_text(s),
                        s.detail,
                    )
                    for s in sites
                ],
            )
        case "alarms":
            return _rows(
                ("alarm", "severity", "state", "rows", "since", "for", "query"),
                [_alarm_row(info) for info in alarms],
            )
        case "displays":
            return _rows(
                ("display", "floor", "x", "y", "title", "queries"),
                [_display_row(display, queries) for display in catalog.displays],
            )
        case _:
            raise UnsupportedError(
                f"SHOW {kind.upper()} is not known",
                hint="SHOW SOURCES, TABLES, VIEWS, FUNCTIONS, QUERIES, ALARMS or DISPLAYS",
            )


def _refreshed_rows(catalog: Catalog, refreshes: Refreshes) -> list[Row]:
    return [
        (
            *(view.name, False, " ".join(view.refresh.query.split())),
            "; ".join(refresh_facts(view, refreshes)),
        )
        for view in catalog.refreshed
        if view.refresh is not None
    ]


def describe_definition(
    definition: Definition, catalog: Catalog, refreshes: Refreshes = _NOTHING_TOLD
) -> StatementResult:
    """Return the columns of a definition.

    Raises:
        QueryError: A view does not bind any more.
    """
    if isinstance(definition, SourceDefinition):
        rows: list[Row] = [
            (f.name, str(f.dtype), _column_note(definition, i))
            for i, f in enumerate(definition.schema.fields)
        ]
        rows += [("", "", fact) for fact in refresh_facts(definition, refreshes)]
        return _rows(("column", "type", "note"), rows)
    if isinstance(definition, DisplayDefinition):
        facts: list[Row] = [
            ("floor", "INTEGER", str(definition.floor)),
            ("x", "DOUBLE", f"{definition.x} m"),
            ("y", "DOUBLE", f"{definition.y} m"),
            ("title", "TEXT", definition.title or definition.name),
            ("rows", "INTEGER", f"at most {definition.rows} of each answer"),
        ]
        return _rows(("column", "type", "note"), facts)
    if isinstance(definition, FunctionDefinition):
        parameters: list[Row] = [
            (f.name, str(f.dtype), "parameter") for f in definition.parameters.fields
        ]
        result: Row = ("", str(definition.result), f"result of {definition.implementation}")
        return _rows(("column", "type", "note"), [*parameters, result])
    is_alarm = isinstance(definition, AlarmDefinition)
    text = definition.query if is_alarm else f"SUBSCRIBE TO {_quoted(definition.name)}"
    bound = bind_query(query_of(parse_statement(text)), catalog)
    view_rows: list[Row] = [(f.name, str(f.dtype), "") for f in bound.schema.fields]
    if isinstance(definition, AlarmDefinition):
        held = f", for {duration_text(definition.hold)}" if definition.hold else ""
        view_rows.append(("", "", f"alarm: {definition.severity}{held}"))
    return _rows(("column", "type", "note"), view_rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rows(columns: tuple[str, ...], rows: list[Row]) -> StatementResult:
    return StatementResult(ResultKind.ROWS, columns=columns, rows=tuple(rows))


def clock_text(site: SiteInfo) -> str:
    """Return how far a site's clock is from the coordinator's, with the bound of its error."""
    clock = site.figures.clock if site.figures is not None else None
    if clock is None or clock.offset_ms is None:
        return ""
    corrected = ", corrected" if clock.corrected_ms else ""
    known = (
        "" if site.figures_since is None else f", last known {timestamp_text(site.figures_since)}"
    )
    return f"{clock.offset_ms:.1f} ± {clock.error_ms:.1f} ms{corrected}{known}"


def _source_row(source: SourceDefinition, sites: tuple[SiteInfo, ...]) -> Row:
    name = source.name.lower()
    owners = [s.site for s in sites if name in {offered.lower() for offered in s.sources}]
    if is_system(source):
        owners = [s.site for s in sites if s.role in ("gateway", "base")]
    ttl = duration_text(source.ttl) if source.ttl is not None else ""
    return (source.name, str(source.kind), str(source.schema), ttl, ", ".join(owners))


def _alarm_row(info: AlarmInfo) -> Row:
    definition = info.definition
    since = timestamp_text(info.since) if info.since is not None else ""
    hold = duration_text(definition.hold) if definition.hold else ""
    text = " ".join(definition.query.split())
    return (definition.name, str(definition.severity), info.state, info.raised, since, hold, text)


def _display_row(display: DisplayDefinition, queries: tuple[QueryInfo, ...]) -> Row:
    shown = ", ".join(q.name for q in queries if q.display == display.name)
    place = (str(display.floor), str(display.x), str(display.y))
    return (display.name, *place, display.title, shown)


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
