"""The rows of the system's tables, from what the coordinator knows.

Only what stays as it is while nothing happens: a column that changed because the table is read
would never come to rest.
"""

from collections.abc import Iterable, Iterator

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import (
    AlarmInfo,
    QueryInfo,
    SiteInfo,
)
from federated_optimizer.coordinator.system.system_tables import Tables
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import (
    SYS_ALARMS,
    SYS_GATEWAYS,
    SYS_LINKS,
    SYS_QUERIES,
    SYS_SOURCES,
    is_system,
)
from streamsql.data.types import Row
from streamsql.wire.codec import encode_json


def rows_of_tables(api: CoordinatorApi, catalog: Catalog, static: str) -> Tables:
    """Return what gives the rows of each of the system's tables."""
    return {
        SYS_QUERIES.name: lambda: query_rows(api.queries()),
        SYS_GATEWAYS.name: lambda: site_rows(api.sites()),
        SYS_SOURCES.name: lambda: source_rows(
            (*catalog.sources, *catalog.tables), api.sites(), static
        ),
        SYS_LINKS.name: api.links,
        SYS_ALARMS.name: lambda: alarm_rows(api.alarms()),
    }


def query_rows(queries: Iterable[QueryInfo]) -> Iterator[Row]:
    """Yield the rows of `sys_queries`."""
    for q in queries:
        yield (q.id, q.name, str(q.status), q.origin, q.version, q.created, q.rows, q.text)


def site_rows(sites: Iterable[SiteInfo]) -> Iterator[Row]:
    """Yield the rows of `sys_gateways`."""
    for s in sites:
        yield (s.site, s.role, s.online, str(s.freshness), s.epoch, s.since, s.sensors, s.detail)


def alarm_rows(alarms: Iterable[AlarmInfo]) -> Iterator[Row]:
    """Yield the rows of `sys_alarms`."""
    for alarm in alarms:
        for r in alarm.rows:
            shown = encode_json(dict(alarm.schema.to_object(r.row))).decode()
            times = (r.since, r.raised, r.unknown, r.acknowledged, r.cleared)
            severity = str(alarm.definition.severity)
            yield (r.id, r.alarm, severity, str(r.state), *times, shown)


def source_rows(
    sources: Iterable[SourceDefinition], sites: Iterable[SiteInfo], static: str
) -> Iterator[Row]:
    """Yield the rows of `sys_sources`: one per site that has a source, or one without site."""
    offered = {site.site: {name.lower() for name in site.sources} for site in sites}
    for source in sources:
        if is_system(source):
            continue
        name = source.name.lower()
        owners = [static] if source.is_table else sorted(s for s in offered if name in offered[s])
        for owner in owners or [""]:
            yield (name, owner, str(source.kind), str(source.schema))
