"""EXPLAIN: of a statement before it runs, and of a query while it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.contract.refresh_text import WHOLE
from federated_optimizer.coordinator.explaining.alternatives_text import (
    alternatives_data,
    alternatives_text,
)
from federated_optimizer.coordinator.explaining.sharing_notes import Sharing
from federated_optimizer.coordinator.queries.planner import Planned
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.cutting.bundle_explain import (
    bundle_data,
    bundle_dot,
    explain_bundle,
    fragment_lines,
    recursion_lines,
)
from federated_optimizer.search.choosing import Alternatives
from streamsql.algebra.explain import explain_plan
from streamsql.algebra.operators import Plan
from streamsql.algebra.plan_graph import plan_dot
from streamsql.binder import BoundQuery, Creating, define
from streamsql.binder.statements.nullable import left_out
from streamsql.binder.statements.validate import validation_report
from streamsql.catalog.catalog import Catalog
from streamsql.errors import UnsupportedError
from streamsql.syntax import (
    CreateAlarm,
    CreateView,
    Explain,
    ExplainFormat,
    ExplainType,
    Query,
    Subscribe,
)
from streamsql.syntax.statements import Statement
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import RecursionReport, TrafficReport


class QueryPlanner(Protocol):
    """Plans queries: for the sites of a federation, or for those that a local session simulates."""

    def bind(self, statement: Statement, catalog: Catalog | None = None) -> BoundQuery:
        """Return the bound query of a SELECT or SUBSCRIBE."""

    def place(self, bound: BoundQuery, *, query: str, text: str) -> FragmentBundle:
        """Return the fragments of a bound query."""

    def alternatives(self, bound: BoundQuery, text: str) -> Alternatives:
        """Return the plans of a bound query, with their costs; one of that text may run."""

    def past_notes(self, plan: Plan, started: int = 0) -> tuple[str, ...]:
        """Return how much a plan reads of the past, a sentence per scan."""

    def fill_notes(self, plan: Plan, fills: tuple[str, ...]) -> tuple[str, ...]:
        """Return with how much of the past windows begin, a sentence per source."""


def explained(
    statement: Explain,
    catalog: Catalog,
    planner: QueryPlanner,
    running: Sequence[RunningQuery],
    sharing: Sharing | None = None,
) -> StatementResult:
    """Return the answer to EXPLAIN.

    ANALYZE is answered from the last running query with its text.

    Args:
        statement: What is to be explained.
        catalog: As whoever asks may read it.
        planner: Binds and places the query.
        running: The queries that may be seen.
        sharing: Who shares what; None: nothing else runs.

    Raises:
        QueryError: The statement is wrong, or of a kind that has no plan.
    """
    _refuse_graph(statement)
    if statement.analyze:
        return _analyzed(statement, running, sharing)
    inner = statement.inner
    notes = _notes_on(inner)
    if isinstance(inner, Creating):
        define(inner, catalog)  # it must be right by itself before its query is explained
        if isinstance(inner, CreateView | CreateAlarm):
            inner = inner.query
    if not isinstance(inner, Query | Subscribe):
        return _without_plan(statement, inner)
    bound = planner.bind(inner, catalog)
    data: Any
    as_graph = statement.format == ExplainFormat.DOT
    match statement.type:
        case ExplainType.VALIDATE:
            report = validation_report(bound)
            text, data = report.text, report.data
        case ExplainType.LOGICAL:
            text = plan_dot(bound.plan) if as_graph else explain_plan(bound.plan)
            if not as_graph:
                text = "\n".join((text, *planner.past_notes(bound.plan)))
            data = {"plan": text.splitlines()}
        case ExplainType.ALTERNATIVES:
            found = planner.alternatives(bound, inner.text)
            text, data = alternatives_text(found), alternatives_data(found)
        case _:
            bundle = _noted(planner.place(bound, query="explain", text=inner.text), planner)
            text = bundle_dot(bundle) if as_graph else explain_bundle(bundle)
            data = bundle_data(bundle)
            if sharing is not None and not as_graph:
                note = sharing.of_plan(Planned.of(bound, bundle))
                text, data["shared"] = f"{text}\n{note}", note.data()
    warnings = (*bound.warnings, *left_out(bound.plan), *notes)
    if statement.format == ExplainFormat.JSON:
        return StatementResult(ResultKind.TEXT, data=data, warnings=warnings)
    return StatementResult(ResultKind.TEXT, text=text, warnings=warnings)


def _noted(bundle: FragmentBundle, planner: QueryPlanner) -> FragmentBundle:
    """Return a bundle with notes on how much its fragments read of the past."""
    fragments = tuple(
        msgspec.structs.replace(
            part,
            notes=(
                *part.notes,
                *planner.past_notes(part.plan, bundle.started),
                *planner.fill_notes(part.plan, bundle.fills),
            ),
        )
        for part in bundle.fragments
    )
    return msgspec.structs.replace(bundle, fragments=fragments)


def _notes_on(statement: Statement) -> tuple[str, ...]:
    """Return what its plan does not show of a statement."""
    is_refreshed = isinstance(statement, CreateView) and statement.refresh is not None
    return (WHOLE,) if is_refreshed else ()


def _refuse_graph(statement: Explain) -> None:
    if statement.format == ExplainFormat.DOT and (
        statement.analyze or statement.type in (ExplainType.VALIDATE, ExplainType.ALTERNATIVES)
    ):
        what = "ANALYZE" if statement.analyze else f"TYPE {statement.type.upper()}"
        raise UnsupportedError(
            f"{what} has no graph",
            span=statement.span,
            hint="write FORMAT TEXT or FORMAT JSON; only TYPE LOGICAL and TYPE FEDERATED have "
            "FORMAT DOT",
            code="misplaced_explain",
        )


def _analyzed(
    statement: Explain, running: Sequence[RunningQuery], sharing: Sharing | None
) -> StatementResult:
    wanted = statement.inner.text.split()
    for query in reversed(running):
        if query.text.split() == wanted:
            result = explain_running(query, sharing)
            return replace(result, data=None) if statement.format != ExplainFormat.JSON else result
    raise UnsupportedError(
        "EXPLAIN ANALYZE needs a running query, but no query with this text runs",
        span=statement.span,
        hint="run it first; `pando query explain ID` or Plan in the console shows a query by "
        "its id",
    )


def _without_plan(statement: Explain, inner: Statement) -> StatementResult:
    if statement.type != ExplainType.VALIDATE:
        raise UnsupportedError(
            "only queries and views have a plan",
            span=inner.span,
            hint="EXPLAIN (TYPE VALIDATE) checks any statement",
            code="misplaced_explain",
        )
    if statement.format == ExplainFormat.JSON:
        return StatementResult(ResultKind.TEXT, data={"valid": True, "columns": []})
    return StatementResult(ResultKind.TEXT, text="valid")


def explain_running(query: RunningQuery, sharing: Sharing | None) -> StatementResult:
    """Return the fragments of a running query with what has come of them so far."""
    rows = sum(dict(query.result.view).values())
    head = (
        f"Query {query.name} version {query.bundle.version}: {rows} rows, "
        f"{query.result.changes} changes"
    )
    feeds = query.bundle.feeds
    fed = [f"fragment {feed.fragment} as {feed.source} of run {feed.run}" for feed in feeds]
    lines = [head, "; ".join((f"Run {query.run}", *fed))]
    for fragment in query.bundle.fragments:
        lines.extend(fragment_lines(fragment))
        counts = [
            f"{site} {query.flows.batches(site)[0]} sent / {query.flows.batches(site)[1]} received"
            for site in fragment.sites
            if site in query.flows.heard_from()
        ]
        if counts:
            lines.append("  batches: " + ", ".join(counts))
    data = bundle_data(query.bundle) | {"run": query.run}
    data["fed"] = {f.fragment: {"run": f.run, "fragment": f.source} for f in feeds}
    work = _running_recursions(query)
    for plan, described in zip(query.bundle.recursions, data["recursions"], strict=True):
        told = plan.name in work  # the sites say themselves how they keep it
        lines.extend(recursion_lines(msgspec.structs.replace(plan, kept="") if told else plan))
        described["sites_work"] = work.get(plan.name, {})
        lines.extend(_work_lines(work.get(plan.name, {})))
    lines.extend(_traffic_lines(query.flows.traffic()))
    if sharing is not None:
        note = sharing.of_running(query)
        lines.append(str(note))
        data["shared"] = note.data()
    data["rows"], data["changes"] = rows, query.result.changes
    data["batches"] = {
        site: dict(zip(("sent", "received"), query.flows.batches(site), strict=True))
        for site in sorted(query.flows.heard_from())
    }
    data["traffic"] = {
        site: msgspec.structs.asdict(traffic) for site, traffic in query.flows.traffic().items()
    }
    return StatementResult(
        ResultKind.TEXT, text="\n".join(lines), data=data, warnings=query.warnings
    )


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
