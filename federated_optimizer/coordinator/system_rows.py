"""The rows of the system's tables, from what the coordinator knows.

Only what stays as it is while nothing happens: a column that changed because the table is read
would never come to rest.
"""

from collections.abc import Iterable, Iterator

from federated_optimizer.coordinator.model import AlarmInfo, QueryInfo, SiteInfo
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import is_system
from streamsql.data.types import Row
from streamsql.wire.codec import encode_json


def query_rows(queries: Iterable[QueryInfo]) -> Iterator[Row]:
    """Yield the rows of `sys_queries`."""
    for q in queries:
        yield (q.id, q.name, str(q.status), q.origin, q.version, q.created, q.rows, q.text)


def site_rows(sites: Iterable[SiteInfo]) -> Iterator[Row]:
    """Yield the rows of `sys_gateways`."""
    for s in sites:
        yield (s.site, s.role, s.online, s.freshness, s.epoch, s.since, s.sensors, s.detail)


def alarm_rows(alarms: Iterable[AlarmInfo]) -> Iterator[Row]:
    """Yield the rows of `sys_alarms`."""
    for alarm in alarms:
        for r in alarm.rows:
            shown = encode_json(dict(alarm.schema.to_object(r.row))).decode()
            times = (r.since, r.raised, r.acknowledged, r.cleared)
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
