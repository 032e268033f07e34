"""All that a site measures of itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_engine.scheduling.measures import QueueMeasures
from stream_engine.scheduling.queue_meter import QueueMeter
from stream_engine.sharing.synopses import Synopses, SynopsisReport
from stream_engine.site.measured_values import SECOND, Measured
from stream_engine.site.operator_rows import (
    RunningOperator,
    measured_operators,
    running_operators,
)
from stream_engine.state.source_relation import SourceRelation
from stream_engine.state.watermark import Watermark
from streamsql.algebra.operators import Scan
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

if TYPE_CHECKING:
    from stream_engine.site.installed_query import InstalledQuery


@dataclass(frozen=True, slots=True)
class SiteParts:
    """The parts of a site, which are only looked at.

    Attributes:
        site: Its id.
        queries: What runs, by name.
        relations: Sources by name and scan.
        watermarks: By source and lateness.
        events: How many events came in, by source.
        waiting: How many of them wait for a step.
        steps: How often the site has stepped.
        settings: In use.
        meter: How much waits between operators.
        queues: What waits where.
        synopses: What is shared.
    """

    site: str
    queries: "Mapping[str, InstalledQuery]"
    relations: Mapping[str, Mapping[Scan, SourceRelation]]
    watermarks: Mapping[str, Mapping[int | None, Watermark]]
    events: Mapping[str, int]
    waiting: int
    steps: int
    settings: SiteSettings
    meter: QueueMeter
    queues: Sequence[QueueMeasures]
    synopses: Synopses


def operators_of(parts: SiteParts) -> list[RunningOperator]:
    """Return the operators of all queries."""
    return [
        operator
        for name, query in parts.queries.items()
        for fragment, circuit in query.parts[0].items()
        for operator in running_operators(name, fragment, circuit)
    ]


def measured_site(parts: SiteParts, now: int) -> Iterator[Measured]:
    """Yield what the parts of a site have counted.

    Args:
        parts: Of the site.
        now: Microseconds since 1970 UTC.
    """
    yield _site(parts)
    synopses = parts.synopses.synopses()
    for name, query in parts.queries.items():
        version = query.bundle.version
        circuits, inbox, outbox = query.parts
        told = frozenset(s.entity.partition(".")[0] for s in synopses if s.query == name)
        for fragment, circuit in circuits.items():
            yield from measured_operators(name, version, fragment, circuit, told)
        for sender, receiving in inbox.channels.items():
            held = {"rows_held": receiving.size}
            yield Measured(name, "channel", f"from {sender}", version, gauges=held)
        for destination, sending in outbox.channels.items():
            held = {"rows_held": sum(map(len, sending.contents.values()))}
            to = channel_to(destination)
            yield Measured(name, "channel", to, version, gauges=held)
    for synopsis in synopses:
        yield _synopsis(synopsis)
    for store in parts.synopses.stores():
        kept = {"rows": store.rows, "stubs": store.stubs}
        yield Measured("", "store", f"s{store.number}", gauges=kept)
    for queue in parts.queues:
        waits = {"rows": queue.rows, "batches": queue.batches, "peak_rows": queue.peak_rows}
        yield Measured(queue.query, "queue", queue.entity, gauges=waits)
    for source in parts.relations:
        yield _source(parts, source, now)


def channel_to(destination: str) -> str:
    """Return the entity of the channel to a site, or to whoever reads the result ("").

    Examples:
        >>> channel_to("base"), channel_to("")
        ('to base', 'to result')
    """
    return f"to {destination or 'result'}"


def _site(parts: SiteParts) -> Measured:
    settings, meter = parts.settings, parts.meter
    told = {
        "pending_events": parts.waiting,
        "queries": len(parts.queries),
        "queued_rows": meter.rows,
        "queued_rows_peak": meter.peak_rows,
        "queued_rows_average": meter.average_rows,
        "scheduler": list(SchedulerKind).index(settings.scheduler),
        "queue_rows": settings.queue_rows,
        "sharing": int(settings.sharing),
        "report_seconds": settings.report_seconds,
    }
    if settings.slice_ms is not None:
        told["slice_ms"] = settings.slice_ms
    return Measured(
        "",
        "site",
        parts.site,
        counters={"events": sum(parts.events.values())},
        totals={"steps": parts.steps},
        gauges=told,
    )


def _synopsis(synopsis: SynopsisReport) -> Measured:
    told: dict[str, float] = {"rows": synopsis.rows, "shared": int(synopsis.store is not None)}
    if synopsis.store is not None:
        told["store"] = synopsis.store
    return Measured(synopsis.query, "synopsis", synopsis.entity, gauges=told)


def _source(parts: SiteParts, source: str, now: int) -> Measured:
    relations, marks = parts.relations[source], parts.watermarks[source].values()
    gauges: dict[str, float] = {"rows": max(map(len, relations.values()))}
    reached = [mark.reached for mark in marks if mark.reached is not None]
    if reached:
        gauges["watermark_lag_s"] = (now - min(reached)) / SECOND
    return Measured(
        "",
        "source",
        source,
        counters={"events": parts.events.get(source, 0)},
        totals={"late": max(mark.late for mark in marks)},
        gauges=gauges,
    )
