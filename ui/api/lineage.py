"""Lineage: which views, alarms, sinks and queries rest on a source or table."""

from collections.abc import Iterable

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import Origin, Wanted
from federated_optimizer.coordinator.statements.definition_drops import names_used
from streamsql.catalog.catalog import Catalog, kind_of
from streamsql.catalog.definitions import SourceDefinition, ViewDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.catalog.sink_definitions import SinkDefinition

Readers = dict[str, list[dict[str, str]]]

MOST_QUERIES = 20
"""Queries that are named of a source, the newest."""

MORE = {"kind": "more", "name": "queries"}
"""Stands for those that are not named."""


def readers_by_source(coordinator: CoordinatorApi, names: Iterable[str]) -> Readers:
    """Return what reads sources and tables that one may see, directly or through views.

    `names` are those of sources and tables, in any case; others are left out.
    """
    known = coordinator.definitions()
    catalog = Catalog()
    for definition in known:
        catalog.define(definition)
    there = {each.name.lower() for each in known if isinstance(each, SourceDefinition)}
    sources = there & {name.lower() for name in names}
    found: Readers = {}
    for each in known:
        if not isinstance(each, ViewDefinition | AlarmDefinition | SinkDefinition):
            continue
        if getattr(each, "library", False):
            continue
        for source in sorted(names_used(each.query, catalog) & sources):
            found.setdefault(source, []).append({"kind": kind_of(each), "name": each.name})
    for source in sorted(sources):
        queries = coordinator.queries(Origin.USER, Wanted(reads=source, most=MOST_QUERIES + 1))
        named = [{"kind": "query", "name": query.name} for query in queries[-MOST_QUERIES:]]
        if named:
            more = [MORE] if len(queries) > MOST_QUERIES else []
            found.setdefault(source, []).extend((*named, *more))
    return found
