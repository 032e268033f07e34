"""Lineage: which views, alarms, sinks and queries rest on a source or table."""

from collections.abc import Iterable

from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryInfo
from federated_optimizer.coordinator.statements.definition_drops import names_used
from streamsql.catalog.catalog import Catalog, kind_of
from streamsql.catalog.definitions import Definition, SourceDefinition, ViewDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.catalog.sink_definitions import SinkDefinition

Readers = dict[str, list[dict[str, str]]]


def readers_by_source(definitions: Iterable[Definition], queries: Iterable[QueryInfo]) -> Readers:
    """Return what reads each source and table, directly or through views.

    Args:
        definitions: Those that who asks may see.
        queries: Likewise; those of pages are left out.
    """
    known = list(definitions)
    catalog = Catalog()
    for definition in known:
        catalog.define(definition)
    sources = {each.name.lower() for each in known if isinstance(each, SourceDefinition)}
    texts = [
        (kind_of(each), each.name, each.query)
        for each in known
        if isinstance(each, ViewDefinition | AlarmDefinition | SinkDefinition)
        and not getattr(each, "library", False)
    ]
    texts += [("query", each.name, each.text) for each in queries if each.origin == Origin.USER]
    found: Readers = {}
    for kind, name, text in texts:
        for source in sorted(names_used(text, catalog) & sources):
            found.setdefault(source, []).append({"kind": kind, "name": name})
    return found
