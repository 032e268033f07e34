"""Queries and alarms that RUN … ON HISTORY tries: bound, and checked for what is kept."""

from dataclasses import dataclass

from federated_optimizer.coordinator.queries.planning.inner_query import query_of
from streamsql.algebra.operators import Scan, walk_plan, walk_relation
from streamsql.binder import BoundQuery, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.catalog.system import is_site_source, is_system
from streamsql.errors import BindingError, UnsupportedError
from streamsql.syntax import CreateAlarm, RunOnHistory, parse_statement
from streamsql.syntax.statements import Name, Query

_NOT_KEPT = "of what a system source said in the past nothing is run again"


@dataclass(frozen=True, slots=True)
class TriedPast:
    """A query to be tried, and what its rows raise."""

    query: BoundQuery
    sources: tuple[SourceDefinition, ...]
    alarm: AlarmDefinition | None


def tried_past(statement: RunOnHistory, catalog: Catalog, text: str | None) -> TriedPast:
    """Return what a statement tries; `text` is that of the running query that it names.

    Raises:
        QueryError: It is wrong, or reads what may not be read.
    """
    alarm: AlarmDefinition | None = None
    inner = statement.inner
    if statement.named is not None:
        inner, alarm = _named(statement.named, catalog, text)
    elif isinstance(inner, CreateAlarm):
        found = define(inner, catalog.scratch())
        assert isinstance(found, AlarmDefinition)  # noqa: S101  (of CREATE ALARM)
        alarm, inner = found, inner.query
    assert inner is not None and not isinstance(inner, CreateAlarm)  # noqa: PT018, S101
    query = bind_query(inner, catalog)
    sources: dict[str, SourceDefinition] = {}
    for scan in scans_of(query):
        if scan.history is not None:
            raise UnsupportedError(
                f"this query reads the past of {scan.source} itself, by FOR SYSTEM_TIME",
                span=statement.span,
                hint="remove FOR SYSTEM_TIME, or run the query as it is, without RUN",
                code="no_history",
            )
        definition = catalog.find(scan.source)
        if is_site_source(scan.source) or not isinstance(definition, SourceDefinition):
            raise _no_past(scan.source, statement)
        if is_system(definition):
            raise _no_past(scan.source, statement)
        if not definition.is_table:
            sources[scan.source] = definition
    if not sources:
        raise UnsupportedError(
            "this query reads no source whose past is kept",
            span=statement.span,
            hint="it gives the same rows at any time: run it as it is",
            code="no_history",
        )
    return TriedPast(query, tuple(sources.values()), alarm)


def _no_past(source: str, statement: RunOnHistory) -> UnsupportedError:
    return UnsupportedError(
        f"a query that reads {source} cannot be run on history",
        span=statement.span,
        hint=f"{_NOT_KEPT}: leave it out",
        code="no_history",
    )


def _named(name: Name, catalog: Catalog, text: str | None) -> tuple[Query, AlarmDefinition | None]:
    found = catalog.find(name.text)
    if isinstance(found, AlarmDefinition):
        return query_of(parse_statement(found.query)), found
    if found is not None:
        quoted = name.text.replace('"', '""')
        return query_of(parse_statement(f'SELECT * FROM "{quoted}"')), None  # noqa: S608
    if text:
        return query_of(parse_statement(text)), None
    raise BindingError(
        f"there is no view, alarm or running query {name.text!r:.60}",
        span=name.span,
        hint="SHOW VIEWS, SHOW ALARMS and SHOW QUERIES list them",
        code="unknown_relation",
    )


def scans_of(query: BoundQuery) -> list[Scan]:
    """Return the scans of a query, those inside streams too."""
    nodes = (*walk_plan(query.plan), *walk_relation(query.plan))
    return list(dict.fromkeys(node for node in nodes if isinstance(node, Scan)))
