"""Counts of what the fragments of a running query send: a second, and since the query began."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from federated_optimizer.coordinator.explaining.run_fragments import run_fragments
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.statistics.default_facts import TOPIC_BYTES
from host.clocks import monotonic_clock
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import Fragment, FragmentBundle
from streamsql.wire.messages import FlowReport, PartTraffic, TrafficReport

LEAST_SECONDS = 1.0
"""A site that has been counted for less has no rates yet."""


@dataclass(frozen=True, slots=True)
class MeasuredFragment:
    """Counts of what all sites of a fragment send to other sites; None where nobody knows.

    Attributes:
        rows: A second that come or go.
        messages: A second.
        bytes: A second, with what MQTT's headers and topics take, as estimates have it.
        milliseconds: From a reading until rows that it changes are sent, on average.
        seconds: For which the rates were counted.
        sent_rows: Since the query began to read the fragment.
        sent_messages: Likewise.
        sent_bytes: Likewise, of payloads alone.
        run: The run of another query for which the sites send; empty: this query's own.
    """

    rows: float | None = None
    messages: float | None = None
    bytes: float | None = None
    milliseconds: float | None = None
    seconds: float = 0.0
    sent_rows: int = 0
    sent_messages: int = 0
    sent_bytes: int = 0
    run: str = ""


@dataclass(frozen=True, slots=True)
class _Site:
    """The counts of a fragment at one site: now, when marked for rates, and of others before."""

    now: PartTraffic
    marked: PartTraffic | None
    before: PartTraffic
    seconds: float


def measured_fragments(query: RunningQuery) -> dict[str, MeasuredFragment]:
    """Return, by fragment, what the sites of a query have counted; of some nothing is known."""

    def bundle_of(run: str) -> FragmentBundle | None:
        leader = query.leader_of(run)
        return None if leader is None else leader.bundle

    computed = run_fragments(query.bundle, bundle_of)
    found = {}
    for fragment in query.bundle.fragments:
        run, name = computed.get(fragment.id, ("", ""))
        feeder = query if run == query.run else query.leader_of(run)
        if feeder is None:
            continue
        if run != query.run and not any(_is_sent(fragment, site) for site in fragment.sites):
            continue  # that run publishes these rows as its result; here they stay at the site
        sites = [_site(query, feeder, name, site) for site in fragment.sites]
        measured = _together([site for site in sites if site is not None], feeder.run, query)
        if measured is not None:
            found[fragment.id] = measured
    return found


def _site(query: RunningQuery, feeder: RunningQuery, name: str, site: str) -> _Site | None:
    flows, bundle = feeder.flows, feeder.bundle
    report = flows.reports().get(site)
    now = None if report is None else _part(report, bundle, site, name)
    if report is None or now is None:
        return None
    before = query.since(flows, feeder.run, site)
    began = _part(before, bundle, site, name) if _is_earlier(before, report) else None
    moment, mark = flows.marked(site) or (0, None)
    seconds = (monotonic_clock() - moment) / MICROSECONDS
    marked = _part(mark, bundle, site, name) if _is_earlier(mark, report) else None
    return _Site(now, marked, began or PartTraffic(name), seconds)


def _is_earlier(before: FlowReport | None, after: FlowReport) -> bool:
    return before is not None and before.epoch == after.epoch


def _part(
    report: FlowReport | None, bundle: FragmentBundle, site: str, name: str
) -> PartTraffic | None:
    """Return the counts of one fragment; None: the site does not tell them apart."""
    if report is None:
        return None
    traffic = report.traffic
    if traffic.parts:
        return next((p for p in traffic.parts if p.fragment == name), PartTraffic(name))
    if not any(_is_sent(f, site) and f.id == name for f in bundle.own):
        return PartTraffic(name)
    if not traffic.batches:  # the coordinator sends rows of its tables and does not count bytes
        return None if any(n > report.first for n in report.sent.values()) else PartTraffic(name)
    if sum(_is_sent(f, site) for f in bundle.own) > 1:
        return None
    return PartTraffic(
        name,
        traffic.batches,
        traffic.bytes,
        traffic.snapshots,
        traffic.snapshot_bytes,
        traffic.rows,
        traffic.timed,
        traffic.milliseconds,
    )


def _is_sent(fragment: Fragment, site: str) -> bool:
    """Whether a site sends rows of a fragment to another one, or as the result."""
    return site in fragment.sites and (
        not fragment.consumer or any(to != site for to in fragment.destinations)
    )


def _together(sites: Sequence[_Site], run: str, query: RunningQuery) -> MeasuredFragment | None:
    if not sites:
        return None
    rated = [site for site in sites if site.marked is not None and site.seconds >= LEAST_SECONDS]
    timed = sum(_moved(site, "timed") for site in rated)
    spent = sum(_moved(site, "milliseconds") for site in rated)
    messages = _rate(rated, sites, "batches", "snapshots")
    payloads = _rate(rated, sites, "bytes", "snapshot_bytes")
    around = None if messages is None else messages * TOPIC_BYTES.value
    return MeasuredFragment(
        rows=_rate(rated, sites, "rows"),
        messages=messages,
        bytes=None if payloads is None or around is None else payloads + around,
        milliseconds=spent / timed if timed else None,
        seconds=max((site.seconds for site in rated), default=0.0),
        sent_rows=_since(sites, "rows"),
        sent_messages=_since(sites, "batches"),
        sent_bytes=_since(sites, "bytes"),
        run="" if run == query.id else run,
    )


def _rate(
    rated: Sequence[_Site], sites: Sequence[_Site], count: str, less: str = ""
) -> float | None:
    """Return a count a second of all sites, without what snapshots repeated."""
    if len(rated) < len(sites):
        return None
    return sum(
        max(_moved(site, count) - (_moved(site, less) if less else 0), 0) / site.seconds
        for site in rated
    )


def _moved(site: _Site, count: str) -> int:
    moved: int = getattr(site.now, count) - getattr(site.marked, count)
    return moved


def _since(sites: Iterable[_Site], count: str) -> int:
    return sum(max(getattr(s.now, count) - getattr(s.before, count), 0) for s in sites)


def own_batches(query: RunningQuery) -> dict[str, tuple[int, int]]:
    """Return the batches that the sites of a run have sent and received for a query, by site."""
    flows, run = query.flows, query.run
    return {
        site: flows.batches(site, query.since(flows, run, site))
        for site in sorted(flows.heard_from())
    }


def own_traffic(query: RunningQuery) -> dict[str, TrafficReport]:
    """Return what the channels of a run have cost since a query began to read it, by site."""
    found = {}
    for site, traffic in query.flows.traffic().items():
        report = query.flows.reports()[site]
        before = query.since(query.flows, query.run, site)
        counts_before = before is not None and _is_earlier(before, report)
        found[site] = _less(traffic, before.traffic) if before and counts_before else traffic
    return found


def _less(traffic: TrafficReport, before: TrafficReport) -> TrafficReport:
    """Return the counts that came since a report; the longest wait stays that of all."""
    counts = {
        name: max(getattr(traffic, name) - getattr(before, name), 0)
        for name in ("batches", "bytes", "snapshots", "snapshot_bytes", "resyncs", "rows")
    }
    waited = max(traffic.resync_milliseconds - before.resync_milliseconds, 0)
    return replace(traffic, **counts, resync_milliseconds=waited, parts=())
