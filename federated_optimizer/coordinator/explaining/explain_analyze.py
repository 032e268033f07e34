"""EXPLAIN ANALYZE: what recursions and channels of a running query have done, per site."""

from collections.abc import Mapping
from typing import Any

import msgspec

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from streamsql.wire.messages import RecursionReport, TrafficReport


def running_recursions(query: RunningQuery) -> dict[str, dict[str, Any]]:
    """Return, by recursion and site, what was counted, as plain data with a mean of rounds."""
    found: dict[str, dict[str, Any]] = {}
    for plan in query.bundle.recursions:
        for site, report in query.flows.recursions(plan.name):
            data = msgspec.to_builtins(report)
            data["rounds_per_change"] = round(report.rounds / max(report.settles, 1), 2)
            found.setdefault(plan.name, {})[site] = data
    return found


def work_lines(sites: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the text of one recursion's work: a line per site."""
    return [f"  at {site}: {_work(data)}" for site, data in sites.items()]


def _work(data: Mapping[str, Any]) -> str:
    report = msgspec.convert(
        {k: v for k, v in data.items() if k != "rounds_per_change"}, RecursionReport
    )
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


def traffic_lines(traffic: Mapping[str, TrafficReport]) -> list[str]:
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
