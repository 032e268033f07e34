"""SHOW and DESCRIBE: what there is, as rows."""

from dataclasses import replace

from federated_optimizer.coordinator.contract.coordinator_model import (
    AlarmInfo,
    QueryInfo,
    ResultKind,
    SiteInfo,
    StatementResult,
)
from federated_optimizer.coordinator.contract.network_model import Network, NetworkNode
from federated_optimizer.coordinator.contract.refresh_text import Refreshes, refresh_facts
from federated_optimizer.coordinator.contract.sink_model import SinkInfo
from federated_optimizer.coordinator.queries.planning.inner_query import query_of
from federated_optimizer.coordinator.statements.source_listings import (
    DECLARED_COLUMNS,
    SOURCE_COLUMNS,
    Row,
    column_notes,
    declared_rows,
    source_row,
)
from streamsql.binder import bind_query
from streamsql.binder.relations.system_times import is_managed
from streamsql.catalog.catalog import Catalog, is_library, kind_of
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.catalog.system import is_system
from streamsql.data.durations import duration_text
from streamsql.data.types import timestamp_text
from streamsql.errors import UnsupportedError
from streamsql.syntax import parse_statement

_NOTHING_TOLD = Refreshes()
_NO_NETWORK = Network(())

SHOWS_QUERIES = frozenset({"queries", "displays"})
"""Kinds of which an answer needs the queries."""

_COLUMNS = {
    "sources": SOURCE_COLUMNS,
    "tables": ("table", "columns", "read from"),
    "views": ("view", "library", "query", "refreshed"),
    "functions": ("function", "kind", "implementation", "nulls"),
    "queries": ("query", "name", "status", "rows", "changes", "text", "notes"),
    "gateways": ("site", "role", "freshness", "sensors", "sources", "clock offset", "detail"),
    "alarms": ("alarm", "severity", "state", "rows", "since", "for", "query"),
    "sinks": (
        "sink",
        "connector",
        "to",
        "mode",
        "status",
        "delivered",
        "waiting",
        "dead letters",
        "dropped",
        "problem",
    ),
    "displays": ("display", "floor", "x", "y", "title", "queries"),
    "network": (
        "node",
        "kind",
        "computes",
        "sites",
        "reads",
        "read by",
        "queries",
        "in all",
        "owner",
        "since",
        "rows",
        "messages/s",
        "bytes/s",
    ),
}


def show(  # noqa: PLR0913 - what is listed
    kind: str,
    catalog: Catalog,
    queries: tuple[QueryInfo, ...],
    sites: tuple[SiteInfo, ...],
    alarms: tuple[AlarmInfo, ...] = (),
    *,
    sinks: tuple[SinkInfo, ...] = (),
    refreshes: Refreshes = _NOTHING_TOLD,
    network: Network = _NO_NETWORK,
) -> StatementResult:
    """Return the answer to SHOW.

    Raises:
        UnsupportedError: Nothing of that kind is listed.
    """
    rows: list[Row]
    match kind:
        case "sources":
            rows = [source_row(source, sites) for source in catalog.sources]
        case "tables":
            rows = [(t.name, str(t.schema), _origin(t)) for t in catalog.tables if not t.refresh]
        case "views":
            rows = [(v.name, is_library(v), " ".join(v.query.split()), "") for v in catalog.views]
            rows += _refreshed_rows(catalog, refreshes)
        case "functions":
            rows = [_function_row(function) for function in catalog.functions]
        case "queries":
            rows = [_query_row(query) for query in queries]
        case "gateways":
            rows = [_site_row(site) for site in sites]
        case "alarms":
            rows = [_alarm_row(info) for info in alarms]
        case "sinks":
            rows = [_sink_row(info) for info in sinks]
        case "displays":
            rows = [_display_row(display, queries) for display in catalog.displays]
        case "network":
            found = _rows(_COLUMNS[kind], [_node_row(node) for node in network.nodes])
            return replace(found, message=left_out_words(network))
        case _:
            raise UnsupportedError(
                f"SHOW {kind.upper()} is not known",
                hint="SHOW SOURCES, TABLES, VIEWS, FUNCTIONS, QUERIES, ALARMS, DISPLAYS, SINKS or "
                "NETWORK",
            )
    return _rows(_COLUMNS[kind], rows)


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
    if isinstance(definition, SourceDefinition) and definition.mapping is not None:
        return _rows(DECLARED_COLUMNS, declared_rows(definition, definition.mapping))
    if isinstance(definition, SourceDefinition):
        rows: list[Row] = [
            (f.name, str(f.dtype), ", ".join(column_notes(definition, i)))
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
        merged = f", merged by {definition.merge_name}" if definition.merge_name else ""
        words = f"result of {definition.code}{merged}"
        result: Row = ("", str(definition.result), words)
        return _rows(("column", "type", "note"), [*parameters, result])
    is_query = isinstance(definition, AlarmDefinition | SinkDefinition)
    text = definition.query if is_query else f"SUBSCRIBE TO {_quoted(definition.name)}"
    bound = bind_query(query_of(parse_statement(text)), catalog)
    view_rows: list[Row] = [(f.name, str(f.dtype), "") for f in bound.schema.fields]
    if isinstance(definition, AlarmDefinition):
        held = f", for {duration_text(definition.hold)}" if definition.hold else ""
        view_rows.append(("", "", f"alarm: {definition.severity}{held}"))
    if isinstance(definition, SinkDefinition):
        view_rows = _sink_columns(definition, view_rows)
    return _rows(("column", "type", "note"), view_rows)


def _sink_columns(definition: SinkDefinition, columns: list[Row]) -> list[Row]:
    """Return the columns of a sink with what is known of them, and where it sends."""
    units = (*definition.units, *("" for _ in range(len(columns) - len(definition.units))))
    rows: list[Row] = []
    for (name, dtype, _), unit in zip(columns, units, strict=True):
        notes = ("key" if name in definition.key else "", unit)
        rows.append((name, dtype, ", ".join(filter(None, notes))))
    target = f"{definition.connector}, {definition.mode} to {definition.target}"
    return [*rows, ("", "", f"{target}, as {definition.format}")]


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


def _function_row(function: FunctionDefinition) -> Row:
    nulls = "called" if function.on_null else "skipped"
    return (function.usage, kind_of(function), function.code, nulls)


def _query_row(query: QueryInfo) -> Row:
    text, notes = " ".join(query.text.split()), "; ".join(query.warnings)
    return (query.id, query.name, str(query.status), query.rows, query.changes, text, notes)


def _site_row(site: SiteInfo) -> Row:
    sources, clock = ", ".join(site.sources), clock_text(site)
    freshness = str(site.freshness)
    return (site.site, str(site.role), freshness, site.sensors, sources, clock, site.detail)


def _alarm_row(info: AlarmInfo) -> Row:
    definition = info.definition
    since = timestamp_text(info.since) if info.since is not None else ""
    hold = duration_text(definition.hold) if definition.hold else ""
    text = " ".join(definition.query.split())
    return (definition.name, str(definition.severity), info.state, info.raised, since, hold, text)


def _sink_row(info: SinkInfo) -> Row:
    definition = info.definition
    counts = (info.delivered, info.waiting, len(info.dead), info.dropped)
    place = (str(definition.connector), definition.target, str(definition.mode))
    return (definition.name, *place, str(info.status), *counts, info.problem)


def _display_row(display: DisplayDefinition, queries: tuple[QueryInfo, ...]) -> Row:
    shown = ", ".join(q.name for q in queries if q.display == display.name)
    place = (str(display.floor), str(display.x), str(display.y))
    return (display.name, *place, display.title, shown)


def _node_row(node: NetworkNode) -> Row:
    reads = ", ".join((*node.sources, *(f"node {name}" for name in node.reads)))
    counts = (len(node.readers) + node.more_readers, node.direct, node.resting)
    owner = "kept for others" if node.kept else node.owner
    measured = (node.rows, _tenths(node.messages), _tenths(node.bytes))
    about = (node.name, str(node.kind), node.computes, ", ".join(node.sites), reads)
    return (*about, *counts, owner, timestamp_text(node.since), *measured)


def _tenths(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)


def left_out_words(network: Network) -> str:
    """Return how many nodes are not listed, and why; empty: all are."""
    said = []
    if network.unlisted:
        said.append(f"{network.unlisted} more nodes on which fewer queries rest")
    if network.hidden:
        said.append(f"{network.hidden} nodes of queries that you may not read")
    return f"not listed: {' and '.join(said)}" if said else ""


def _origin(table: SourceDefinition) -> str:
    if is_system(table):
        return "the coordinator"
    if is_managed(table):
        return "the lake"
    parts = [table.option("source"), table.option("path") or table.option("table")]
    return " ".join(part for part in parts if part)
