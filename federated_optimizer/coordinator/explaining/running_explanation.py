"""EXPLAIN of a query while it runs: its fragments, what they send, and what recursions do."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.explaining.fragment_table import (
    estimate_data,
    measured_data,
    measured_table,
    rate_words,
)
from federated_optimizer.coordinator.explaining.measured_fragments import (
    measured_fragments,
    own_batches,
    own_traffic,
)
from federated_optimizer.coordinator.explaining.seen_texts import without_words
from federated_optimizer.coordinator.explaining.sharing_notes import Sharing
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.costs.fragment_estimates import FragmentEstimate
from federated_optimizer.cutting.bundle_explain import (
    bundle_data,
    bundle_dot,
    fed_lines,
    fragment_lines,
    recursion_lines,
)
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import RecursionReport, TrafficReport

TRAFFIC = (
    "batches",
    "bytes",
    "snapshots",
    "snapshot_bytes",
    "resyncs",
    "resync_milliseconds",
    "longest_resync",
    "rows",
)
"""Counts of a site's traffic in data."""


class Estimator(Protocol):
    """Estimates what the fragments of a bundle send."""

    def estimates(self, bundle: FragmentBundle) -> Mapping[str, FragmentEstimate]:
        """Return what each fragment of a bundle is expected to send, by id."""


def explain_running(
    query: RunningQuery, planner: Estimator, sharing: Sharing | None
) -> StatementResult:
    """Return the fragments of a running query with what has come of them so far."""
    rows = query.result.answer.rows
    head = (
        f"Query {query.name} version {query.bundle.version}: {rows} rows, "
        f"{query.result.changes} changes"
    )
    bundle = query.bundle if sharing is None else sharing.texts.bundle(query.bundle)
    feeds = bundle.feeds
    fed = [f"fragment {feed.fragment} as {feed.source} of run {feed.run}" for feed in feeds]
    lines = [head, "; ".join((f"Run {query.run}", *fed))]
    batches, traffic = own_batches(query), own_traffic(query)
    for fragment in bundle.own:
        lines.extend(fragment_lines(fragment, bundle))
        counts = [
            "{} {} sent / {} received".format(site, *batches[site])
            for site in fragment.sites
            if site in batches
        ]
        if counts:
            lines.append("  batches: " + ", ".join(counts))
    for fragment in bundle.fed:
        lines.extend(fed_lines(fragment, bundle))
    estimates, measured = planner.estimates(query.bundle), measured_fragments(query)
    if bundle is not query.bundle:
        estimates = without_words(estimates)
    lines.extend(measured_table(bundle, estimates, measured))
    data = bundle_data(bundle) | {"run": query.run}
    for described in data["fragments"]:
        estimate = estimates[described["id"]]
        described["estimated"] = estimate_data(estimate)
        described["measured"] = measured_data(estimate, measured.get(described["id"]))
    data["fed"] = {f.fragment: {"run": f.run, "fragment": f.source} for f in feeds}
    work = _running_recursions(query)
    for plan, described in zip(bundle.recursions, data["recursions"], strict=True):
        told = plan.name in work  # the sites say themselves how they keep it
        lines.extend(recursion_lines(msgspec.structs.replace(plan, kept="") if told else plan))
        described["sites_work"] = work.get(plan.name, {})
        lines.extend(_work_lines(work.get(plan.name, {})))
    lines.extend(_traffic_lines(traffic))
    if sharing is not None:
        note = sharing.of_running(query)
        lines.append(str(note))
        data["shared"] = note.data()
    data["rows"], data["changes"] = rows, query.result.changes
    data["batches"] = {
        site: dict(zip(("sent", "received"), counts, strict=True))
        for site, counts in batches.items()
    }
    data["traffic"] = {
        site: {name: getattr(report, name) for name in TRAFFIC} for site, report in traffic.items()
    }
    text = "\n".join(lines)
    data["text"] = text.splitlines()
    return StatementResult(ResultKind.TEXT, text=text, data=data, warnings=query.warnings)


def running_dot(query: RunningQuery, planner: Estimator, sharing: Sharing | None) -> str:
    """Return the fragments of a running query as a graph in DOT, with what was measured."""
    bundle = query.bundle if sharing is None else sharing.texts.bundle(query.bundle)
    rates = rate_words(query.bundle, planner.estimates(query.bundle), measured_fragments(query))
    return bundle_dot(bundle, rates)


def _running_recursions(query: RunningQuery) -> dict[str, dict[str, Any]]:
    """Return, by recursion and site, what was counted, as plain data with a mean of rounds."""
    found: dict[str, dict[str, Any]] = {}
    for plan in query.bundle.recursions:
        for site, report in query.flows.recursions(plan.name):
            data = msgspec.structs.asdict(report)
            data["rounds_per_change"] = round(report.rounds / max(report.settles, 1), 2)
            found.setdefault(plan.name, {})[site] = data
    return found


def _work_lines(sites: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the text of one recursion's work: a line per site."""
    return [f"  at {site}: {_work(data)}" for site, data in sites.items()]


def _work(data: Mapping[str, Any]) -> str:
    report = RecursionReport(**{k: v for k, v in data.items() if k != "rounds_per_change"})
    parts = [
        report.description or "not started",
        f"{report.view_rows} rows ({report.view_changes} changes) from {report.leaf_rows} here "
        f"({report.leaf_changes} changes)",
        f"{report.derivations} derivations",
    ]
    if report.most_rounds:  # a kernel has none
        rounds = f"{data['rounds_per_change']:g} rounds per change (max {report.most_rounds})"
        parts.insert(2, rounds)
    if report.trace:
        shown = ", ".join(_round_text(*round_) for round_ in report.trace)
        parts.append(
            f"last change by round: {shown}; in all {report.derived} derived, "
            f"{report.deleted} deleted"
        )
    if report.recomputed:
        parts.append(f"recomputed {report.recomputed} times")
    if report.rederived:
        parts.append(f"{report.rederived} rows rederived")
    if report.sent_rows or report.received_rows or report.sent_kills:
        parts.append(
            f"{report.sent_rows} rows and {report.sent_kills} deletions sent, "
            f"{report.received_rows} rows received"
        )
    if report.lives > 1:
        parts.append(f"incarnation {report.lives}")
    return "; ".join(parts)


def _round_text(derived: int, deleted: int) -> str:
    if not deleted:
        return f"+{derived}"
    return f"+{derived} -{deleted}" if derived else f"-{deleted}"


def _traffic_lines(traffic: Mapping[str, TrafficReport]) -> list[str]:
    """Return the text of what the channels have cost: a line per site, with all in the first."""
    if not traffic:
        return []
    batches = sum(report.batches for report in traffic.values())
    size = sum(report.bytes for report in traffic.values())
    lines = [f"Traffic: {batches} batches, {size} bytes sent by {len(traffic)} sites"]
    for site, report in traffic.items():
        line = f"  {site}: {report.batches} batches, {report.bytes} bytes"
        if report.snapshots:
            line += f"; snapshots {report.snapshots} batches, {report.snapshot_bytes} bytes"
        if report.resyncs:
            line += (
                f"; resynchronised {report.resyncs} times in {report.resync_milliseconds} ms "
                f"(longest {report.longest_resync} ms)"
            )
        lines.append(line)
    return lines
