"""The system's tables, which the coordinator keeps: it takes part in the queries that read them.

To such a query the coordinator is a site like the static engine: it evaluates the fragments over
its tables and sends what changes over a channel, with snapshots on request. Nothing is computed
or sent for queries that read none.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import astuple

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import (
    AlarmInfo,
    SiteInfo,
)
from federated_optimizer.coordinator.facts.shown_facts import ShownFacts
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.system.changing_tables import ChangingTable
from federated_optimizer.coordinator.system.node_table import NodeTable
from federated_optimizer.coordinator.system.query_table import QueryTable
from federated_optimizer.coordinator.system.table_fragments import TableFragments
from host.mqtt import MessagingError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import (
    SYS_ALARMS,
    SYS_AUDIT,
    SYS_COSTS,
    SYS_DECISIONS,
    SYS_FACTS,
    SYS_GATEWAYS,
    SYS_LINKS,
    SYS_NODES,
    SYS_QUERIES,
    SYS_SOURCES,
    is_system,
)
from streamsql.data.types import Row
from streamsql.errors import FederationError
from streamsql.wire.codec import encode_json, encode_packed

log = logging.getLogger(__name__)

Tables = Mapping[str, Callable[[], Iterable[Row]]]
"""The rows of each table, made when asked for."""


class SortedTables:
    """The rows of each table, sorted: once only while a table gives the same tuple.

    State: what each table has given last.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._last: dict[str, tuple[Iterable[Row], tuple[Row, ...]]] = {}

    def rows(self, table: str) -> tuple[Row, ...]:
        """Return the rows of a table: the same tuple if it has given the same one."""
        given = self._tables[table]()
        last = self._last.get(table)
        if isinstance(given, tuple) and last is not None and last[0] is given:
            return last[1]
        found = tuple(sorted(given, key=repr))
        self._last[table] = (given, found)
        return found


class SystemTables:
    """Answers the fragments that read the system's tables.

    State: what was sent to each receiver, and the last result of each fragment. A query whose
    fragments cannot be evaluated fails.
    """

    def __init__(
        self,
        shared: SharedParts,
        tables: Tables,
        fail: Callable[[RunningQuery, FederationError], None],
    ) -> None:
        self._shared = shared
        self._tables = SortedTables(tables)
        self._changing = {
            name: table for name, table in tables.items() if isinstance(table, ChangingTable)
        }
        self._fail = fail
        self._parts: dict[str, TableFragments] = {}

    async def look(self, runs: SharedRuns, now: int) -> None:
        """Send what has changed since the last look, and say how far every channel is."""
        host, epoch = self._shared.settings.host, self._shared.presence.epoch
        leaders = runs.leaders(runs.reads.tables)
        concerned = {q.run: q for q in leaders if host not in q.problems}
        self._parts = {name: part for name, part in self._parts.items() if name in concerned}
        rows: dict[str, tuple[Row, ...]] = {}
        for name, query in concerned.items():
            part = self._parts.get(name)
            if part is None or part.bundle is not query.bundle:
                part = self._parts[name] = TableFragments(query.bundle, host, epoch)
            try:
                if part.follows(self._changing):
                    sending = await part.follow(self._changing, now, self._shared.beside)
                else:
                    for table in part.reads:
                        if table not in rows:
                            rows[table] = self._tables.rows(table)
                    sending = await part.evaluate(rows, now, self._shared.beside)
            except FederationError as error:
                self._fail(query, error)
                continue
            if sending and part.bundle is query.bundle:
                self._send(part, now)
            query.flows.hear(host, part.flow(), query.bundle)

    def resync(self, query: str, destination: str) -> None:
        """Send everything to a receiver again with the next look."""
        part = self._parts.get(query)
        if part is not None and destination in part.channels:
            part.owed.add(destination)

    def resync_all(self) -> None:
        """Send everything to everybody again: the broker was away."""
        for part in self._parts.values():
            part.owed.update(part.channels)

    def _send(self, part: TableFragments, now: int) -> None:
        query = part.bundle.query
        for destination, channel in part.channels.items():
            topic = self._shared.topics.exchange(query, destination, self._shared.settings.host)
            try:
                for batch in part.batches(destination, channel, now):
                    self._shared.client.publish(topic, encode_packed(batch))
            except MessagingError as error:
                log.warning("system tables of query %s: %s", query, error.message)
                part.owed.add(destination)
        part.sent()


# Only columns that stay as they are while nothing happens: one that changed because the table is
# read would never come to rest.
def rows_of_tables(api: CoordinatorApi, shared: SharedParts, queries: Queries) -> Tables:
    """Return what gives the rows of each of the system's tables."""
    facts, catalog = ShownFacts(shared.facts, shared.clock), shared.catalog
    return {
        SYS_FACTS.name: facts.facts,
        SYS_COSTS.name: facts.costs,
        SYS_DECISIONS.name: shared.decisions.rows,
        SYS_NODES.name: NodeTable(queries.runs.network),
        SYS_QUERIES.name: QueryTable(queries.all),
        SYS_GATEWAYS.name: lambda: site_rows(api.sites()),
        SYS_SOURCES.name: lambda: source_rows(
            (*catalog.sources, *catalog.tables), api.sites(), shared.settings.static
        ),
        SYS_LINKS.name: api.links,
        SYS_ALARMS.name: lambda: alarm_rows(api.alarms()),
        SYS_AUDIT.name: lambda: map(astuple, api.audit.entries()),
    }


def site_rows(sites: Iterable[SiteInfo]) -> Iterator[Row]:
    """Yield the rows of `sys_gateways`."""
    for s in sites:
        yield (
            s.site,
            str(s.role),
            s.online,
            str(s.freshness),
            s.epoch,
            s.since,
            s.sensors,
            s.detail,
        )


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
