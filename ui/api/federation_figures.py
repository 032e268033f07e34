"""Figures of a federation for Prometheus: sites, queries, alarms, sinks.

A site that is away keeps the figures that it sent last, with their age.
"""

from collections import Counter
from collections.abc import Iterator

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import SiteInfo
from host.clocks import wall_clock
from host.metrics.families import Sample, counter, gauge
from streamsql.catalog.catalog import kind_of
from streamsql.data.types import MICROSECONDS

UP = gauge("pando_site_up", "Whether a site is online and has reported since the broker was away.")
AGE = gauge(
    "pando_site_figures_age_seconds", "Age of the figures of a site that is away; 0 while it is up."
)
RESTARTS = gauge("pando_site_epoch", "Epoch of a site: it grows with each start.")
READINGS = counter("pando_site_readings_total", "Readings of a site since its start.")
ERRORS = counter("pando_site_errors_total", "Readings and polls of a site that failed.")
BAD = counter("pando_site_bad_payloads_total", "Messages that a site could not use.")
DEFECTS = counter("pando_site_step_defects_total", "Steps of a site that ended with a defect.")
BUFFERED = gauge("pando_site_buffer_bytes", "Bytes of a gateway's buffer on disk.")
WAITING = gauge("pando_site_buffer_waiting_packs", "Packs that a gateway could not send yet.")
DROPPED = counter("pando_site_buffer_dropped_total", "Readings that a gateway's buffer dropped.")
OFFSET = gauge("pando_site_clock_offset_seconds", "Time by which our clock is ahead of a site's.")
QUERIES = gauge("pando_queries", "Queries by status and by whom they are for.")
ROWS = gauge("pando_query_rows", "Rows of a query's result.")
CHANGES = counter("pando_query_changes_total", "Changes of a query's result.")
DEFINITIONS = gauge("pando_definitions", "Definitions in the catalog, by kind.")
ALARMS = gauge("pando_alarms", "Alarms by state.")
DELIVERED = counter("pando_sink_delivered_total", "Messages that a sink's receiver has taken.")
SINK_WAITING = gauge("pando_sink_waiting", "Messages of a sink that are to be sent.")
SINK_DEAD = gauge("pando_sink_dead", "Messages of a sink that were given up and are kept.")
LINKS = gauge("pando_links", "Links that gateways have published.")

_COUNTED = {
    "readings": READINGS,
    "errors": ERRORS,
    "bad_payloads": BAD,
    "step_defects": DEFECTS,
}


def federation_figures(coordinator: CoordinatorApi) -> Iterator[Sample]:
    """Yield the figures of coordinator, broker, sites, queries, alarms and sinks."""
    yield from coordinator.figures.samples()
    for site in coordinator.sites():
        yield from _site(site)
    yield from _queries(coordinator)
    kinds = Counter(kind_of(definition) for definition in coordinator.definitions())
    for kind, number in sorted(kinds.items()):
        yield DEFINITIONS.at(number, kind=kind)
    states = Counter(alarm.state for alarm in coordinator.alarms())
    for state in ("raised", "unknown", "waiting", "clear"):
        yield ALARMS.at(states[state], state=state)
    for sink in coordinator.sinks.infos():
        name = sink.definition.name
        yield DELIVERED.at(sink.delivered, sink=name)
        yield SINK_WAITING.at(sink.waiting, sink=name)
        yield SINK_DEAD.at(len(sink.dead), sink=name)
    yield LINKS.at(len(coordinator.links()))


def _queries(coordinator: CoordinatorApi) -> Iterator[Sample]:
    queries = coordinator.queries()
    numbers = Counter((str(query.status), str(query.origin)) for query in queries)
    for (status, origin), number in sorted(numbers.items()):
        yield QUERIES.at(number, status=status, origin=origin)
    for query in queries:
        labels = {"query": query.id, "name": query.name}
        yield ROWS.at(query.rows, **labels)
        yield CHANGES.at(query.changes, **labels)


def _site(info: SiteInfo) -> Iterator[Sample]:
    site = info.site
    yield UP.at(info.freshness == "live", site=site, role=str(info.role))
    yield RESTARTS.at(info.epoch, site=site)
    state = info.figures
    if state is None:
        return
    since = info.figures_since
    age = 0.0 if since is None else max(wall_clock() - since, 0) / MICROSECONDS
    yield AGE.at(age, site=site)
    for name, family in _COUNTED.items():
        if name in state.counters:
            yield family.at(state.counters[name], site=site)
    yield BUFFERED.at(state.buffer.bytes, site=site)
    yield WAITING.at(state.buffer.waiting, site=site)
    yield DROPPED.at(state.buffer.dropped, site=site)
    if state.clock.offset_ms is not None:
        yield OFFSET.at(state.clock.offset_ms / 1_000, site=site)
