"""Measured values of a site: its operators, queues, channels, synopses and sources."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import Node, RemoteNode
from stream_engine.scheduling.site_work import SiteWork
from stream_engine.sharing.synopses import Synopses, SynopsisReport
from stream_engine.site.measured_values import SECOND, Measured
from stream_engine.site.site_sources import SiteSources
from streamsql.wire.site_settings import SchedulerKind

if TYPE_CHECKING:
    from stream_engine.site.installed_query import InstalledQuery


@dataclass(frozen=True, slots=True)
class RunningOperator:
    """A row of `sys_operators` without its time and site.

    Attributes:
        entity: "f1/3": number 3 in the circuit of fragment f1.
        operator: The line EXPLAIN shows.
        inputs: Its producers in the order of its ports: operators of its circuit ("f1/1 f1/2"), or
            the fragment whose rows it receives ("f2").
    """

    query: str
    entity: str
    operator: str
    inputs: str


@dataclass(frozen=True, slots=True)
class SiteParts:
    """The parts of a site, which a report only reads."""

    site: str
    queries: "Mapping[str, InstalledQuery]"
    sources: SiteSources
    steps: int
    work: SiteWork
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
    """Yield the measured values of a site at a time in microseconds since 1970 UTC."""
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
        for queue in query.queue_measures():
            counts = {"rows": queue.rows, "batches": queue.batches, "peak_rows": queue.peak_rows}
            yield Measured(name, "queue", queue.entity, gauges=counts)
    for synopsis in synopses:
        yield _synopsis(synopsis)
    for store in parts.synopses.stores():
        kept = {"rows": store.rows, "stubs": store.stubs}
        yield Measured("", "store", f"s{store.number}", gauges=kept)
    for source in parts.sources.relations:
        yield _source(parts.sources, source, now)


def channel_to(destination: str) -> str:
    """Return the entity of the channel to a site, or to the reader of the result ("").

    Examples:
        >>> channel_to("base"), channel_to("")
        ('to base', 'to result')
    """
    return f"to {destination or 'result'}"


def _site(parts: SiteParts) -> Measured:
    settings, meter, sources = parts.work.settings, parts.work.meter, parts.sources
    told = {
        "pending_events": sources.pending,
        "queries": len(parts.queries),
        "queued_rows": meter.rows,
        "queued_rows_peak": meter.peak_rows,
        "queued_rows_average": meter.average_rows,
        "scheduler": list(SchedulerKind).index(settings.scheduler),
        "queue_rows": settings.queue_rows,
        "share_synopses": int(settings.share_synopses),
        "report_seconds": settings.report_seconds,
    }
    if settings.slice_ms is not None:
        told["slice_ms"] = settings.slice_ms
    return Measured(
        "",
        "site",
        parts.site,
        counters={"events": sum(sources.taken.values())},
        totals={"steps": parts.steps},
        gauges=told,
    )


def _synopsis(synopsis: SynopsisReport) -> Measured:
    told: dict[str, float] = {"rows": synopsis.rows, "shared": int(synopsis.store is not None)}
    if synopsis.store is not None:
        told["store"] = synopsis.store
    return Measured(synopsis.query, "synopsis", synopsis.entity, gauges=told)


def _source(sources: SiteSources, source: str, now: int) -> Measured:
    relations, marks = sources.relations[source], sources.watermarks[source].values()
    gauges: dict[str, float] = {"rows": max(map(len, relations.values()))}
    reached = [mark.reached for mark in marks if mark.reached is not None]
    if reached:
        gauges["watermark_lag_s"] = (now - min(reached)) / SECOND
    return Measured(
        "",
        "source",
        source,
        counters={"events": sources.taken.get(source, 0)},
        totals={"late": max(mark.late for mark in marks)},
        gauges=gauges,
    )


def running_operators(query: str, fragment: str, circuit: Circuit) -> Iterator[RunningOperator]:
    """Yield the operators of a circuit, inputs before their consumers."""
    for number, node in enumerate(circuit.nodes):
        inputs = " ".join(f"{fragment}/{producer}" for producer in circuit.producers(number))
        if isinstance(node, RemoteNode):
            inputs = node.fragment
        yield RunningOperator(query, f"{fragment}/{number}", node.wiring.label(), inputs)


def measured_operators(
    query: str, version: int, fragment: str, circuit: Circuit, told: frozenset[str]
) -> Iterator[Measured]:
    """Yield the measured values of a circuit's operators, and of their synopses.

    Synopses of the operators in `told` are left out: they may be shared and are reported elsewhere.
    """
    for number, node in enumerate(circuit.nodes):
        entity, rows = f"{fragment}/{number}", node.state_rows()
        yield _operator(query, version, entity, node, rows)
        if rows and entity not in told:
            held = {"rows": rows, "shared": 0}
            yield Measured(query, "synopsis", entity, version, gauges=held)


def _operator(query: str, version: int, entity: str, node: Node, rows: int) -> Measured:
    wiring = node.wiring
    counters: dict[str, float] = {"rows_in": wiring.rows_in, "rows_out": wiring.rows_out}
    timed: dict[str, float] = {}
    if wiring.runs:
        counters["retractions"] = wiring.retractions
        timed = {"busy_ms": wiring.busy_ns / 1e6, "_busy_us": wiring.busy_ns / 1e3}
    return Measured(
        query,
        "operator",
        entity,
        version,
        counters=counters,
        totals=timed,
        gauges={"state_rows": rows},
        ratios={"selectivity": ("rows_out", "rows_in")},
        later_ratios={"us_per_row": ("_busy_us", "rows_in")} if timed else {},
    )
