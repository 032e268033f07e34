"""Facts that a running federation has counted of a stream before the first query."""

from benchmarks._argus.arriving_rows import Stream
from federated_optimizer.coordinator.facts.heard_columns import HeardColumns
from federated_optimizer.coordinator.facts.planned_facts import KnownColumns, TextBytes
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from stream_engine.site.site_sources import SiteSources
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS

_SECONDS = 30 * 24 * 3_600.0
"""In which the history has arrived: the thesis' stream is of a month."""
_PART = 1_000


def counted_facts(stream: Stream, source: SourceDefinition, gateway: str, now: int) -> Statistics:
    """Return rows, changes and columns, as the gateway has counted and the coordinator heard."""
    counted = Facts()
    heard = HeardColumns(counted, lambda _name: source)
    sources = SiteSources(gateway)
    sources.declare(source.scan(), now)
    for start in range(0, len(stream.history), _PART):
        at = now + start // _PART * MICROSECONDS
        events = [SourceEvent(row, at) for row in stream.history[start : start + _PART]]
        sources.ingest(source.name, events, "")
        sources.advance(at)
        heard.hear(gateway, sources.columns.report(at))
    heard.look(now + _PART * MICROSECONDS)
    rows = float(len(stream.history))
    return Statistics(
        sources={source.name.lower(): SourceFacts(rows, rows / _SECONDS)},
        columns=KnownColumns(counted, now + _PART * MICROSECONDS),
        text_bytes=TextBytes(counted),
    )
