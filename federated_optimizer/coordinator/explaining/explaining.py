"""EXPLAIN: of a statement before it runs, and of a query while it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import (
    ACTING,
    ResultKind,
    StatementResult,
)
from federated_optimizer.coordinator.contract.refresh_text import WHOLE
from federated_optimizer.coordinator.explaining.alternatives_text import (
    alternatives_data,
    alternatives_text,
    rejected_lines,
)
from federated_optimizer.coordinator.explaining.fragment_table import (
    estimate_data,
    estimates_table,
    rate_words,
)
from federated_optimizer.coordinator.explaining.running_explanation import (
    explain_running,
    running_dot,
)
from federated_optimizer.coordinator.explaining.seen_texts import without_words
from federated_optimizer.coordinator.explaining.sharing_notes import Sharing
from federated_optimizer.coordinator.queries.planned_queries import Planned, PlannedNode
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.costs.fragment_estimates import FragmentEstimate
from federated_optimizer.cutting.bundle_explain import (
    bundle_data,
    bundle_dot,
    explain_bundle,
)
from federated_optimizer.search.choosing import Alternatives
from federated_optimizer.search.turning_facts import Turn
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
    CreateSink,
    CreateView,
    Explain,
    ExplainFormat,
    ExplainType,
    Query,
    Subscribe,
)
from streamsql.syntax.statements import Statement
from streamsql.wire.fragments import Engine, FragmentBundle


class QueryPlanner(Protocol):
    """Plans queries: for the sites of a federation, or for those that a local session simulates."""

    def bind(self, statement: Statement, catalog: Catalog | None = None) -> BoundQuery:
        """Return the bound query of a SELECT or SUBSCRIBE."""

    def would_run(
        self, bound: BoundQuery, text: str
    ) -> tuple[FragmentBundle, tuple[PlannedNode, ...]]:
        """Return the fragments of a bound query, and the nodes that would be made for it."""

    def alternatives(self, bound: BoundQuery, text: str) -> tuple[Alternatives, tuple[Turn, ...]]:
        """Return the plans of a bound query, and the facts that would turn the choice."""

    def estimates(self, bundle: FragmentBundle) -> Mapping[str, FragmentEstimate]:
        """Return what each fragment of a bundle is expected to send, by id."""

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
        return _analyzed(statement, catalog, planner, running, sharing)
    inner = statement.inner
    notes = _notes_on(inner)
    if isinstance(inner, Creating):
        define(inner, catalog)  # it must be right by itself before its query is explained
        if isinstance(inner, CreateView | CreateAlarm | CreateSink):
            inner = inner.query
    if not isinstance(inner, Query | Subscribe):
        return _without_plan(statement, inner)
    acts = isinstance(statement.inner, CreateAlarm | CreateSink)
    bound = replace(planner.bind(inner, catalog), whole_changes=acts)
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
            found, turns = planner.alternatives(bound, inner.text)
            text, data = alternatives_text(found, turns), alternatives_data(found, turns)
        case _:
            text, data = _federated(bound, inner.text, planner, sharing, as_graph=as_graph)
    warnings = (*bound.warnings, *left_out(bound.plan), *notes)
    if statement.format == ExplainFormat.JSON:
        return StatementResult(ResultKind.TEXT, data=data, warnings=warnings)
    return StatementResult(ResultKind.TEXT, text=text, warnings=warnings)


def _federated(
    bound: BoundQuery, text: str, planner: QueryPlanner, sharing: Sharing | None, *, as_graph: bool
) -> tuple[str, dict[str, Any]]:
    """Return the fragments of a query that would be started, as text or graph, and as data."""
    planned, nodes = planner.would_run(bound, text)
    estimates = planner.estimates(planned)
    bundle = planned if sharing is None else sharing.texts.bundle(planned, nodes)
    if bundle is not planned:
        estimates = without_words(estimates)
    bundle = _noted(bundle, planner)
    if as_graph:
        return bundle_dot(bundle, rate_words(bundle, estimates)), {}
    found, turns = planner.alternatives(bound, text)
    # Nodes that would be made for it run nowhere yet: their fragments are shown as its own.
    there = bundle if sharing is None else sharing.only_running(bundle)
    lines = [explain_bundle(there), estimates_table(there, estimates)]
    choice = rejected_lines(found, turns)
    if any(bundle.fragment(feed.fragment).engine == Engine.BASE for feed in bundle.feeds):
        choice = [
            f"By itself: {line}" if number == 0 else line for number, line in enumerate(choice)
        ]
    lines.extend(choice)
    data = bundle_data(bundle)
    for described in data["fragments"]:
        described["estimated"] = estimate_data(estimates[described["id"]])
    data["alternatives"] = alternatives_data(found, turns)
    if sharing is not None:
        note = sharing.of_plan(Planned.of(bound, planned))
        lines.append(str(note))
        data["shared"] = note.data()
    shown = "\n".join(lines)
    return shown, data | {"text": shown.splitlines()}


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
    if statement.format == ExplainFormat.DOT and statement.type in (
        ExplainType.VALIDATE,
        ExplainType.ALTERNATIVES,
    ):
        raise UnsupportedError(
            f"TYPE {statement.type.upper()} has no graph",
            span=statement.span,
            hint="write FORMAT TEXT or FORMAT JSON; only TYPE LOGICAL and TYPE FEDERATED have "
            "FORMAT DOT",
            code="misplaced_explain",
        )


def _analyzed(
    statement: Explain,
    catalog: Catalog,
    planner: QueryPlanner,
    running: Sequence[RunningQuery],
    sharing: Sharing | None,
) -> StatementResult:
    inner = statement.inner
    wanted = inner.text.split()
    query = next((q for q in reversed(running) if q.text.split() == wanted), None)
    if query is not None:
        result = explained_running(query, inner, catalog, planner, sharing, statement.format)
        return replace(result, data=None) if statement.format != ExplainFormat.JSON else result
    raise UnsupportedError(
        "EXPLAIN ANALYZE needs a running query, but no query with this text runs",
        span=statement.span,
        hint="run it first; `pando query explain ID` or Plan in the console shows a query by "
        "its id",
    )


def explained_running(  # noqa: PLR0913, PLR0917  (all that an answer is made from)
    query: RunningQuery,
    statement: Statement,
    catalog: Catalog,
    planner: QueryPlanner,
    sharing: Sharing | None,
    form: ExplainFormat,
) -> StatementResult:
    """Return what a running query does, and the plans that were not taken for it.

    Args:
        query: It runs.
        statement: Of its text; one that only has a query inside, such as an alarm, has no others.
        catalog: As whoever asks may read it.
        planner: Knows the plans.
        sharing: Who shares what; None: nothing else runs.
        form: As a graph, it is text only.

    Raises:
        QueryError: The statement does not hold any more for this catalog.
    """
    if form == ExplainFormat.DOT:
        return StatementResult(ResultKind.TEXT, text=running_dot(query, planner, sharing))
    result = explain_running(query, planner, sharing)
    if not isinstance(statement, Query | Subscribe):
        return result
    bound = replace(planner.bind(statement, catalog), whole_changes=query.origin in ACTING)
    found, turns = planner.alternatives(bound, statement.text)
    text = "\n".join((result.text, *rejected_lines(found, turns)))
    result.data["alternatives"] = alternatives_data(found, turns)
    result.data["text"] = text.splitlines()
    return replace(result, text=text)


def _without_plan(statement: Explain, inner: Statement) -> StatementResult:
    if statement.type != ExplainType.VALIDATE:
        raise UnsupportedError(
            "only queries, views, alarms and sinks have a plan",
            span=inner.span,
            hint="EXPLAIN (TYPE VALIDATE) checks any statement",
            code="misplaced_explain",
        )
    if statement.format == ExplainFormat.JSON:
        return StatementResult(ResultKind.TEXT, data={"valid": True, "columns": []})
    return StatementResult(ResultKind.TEXT, text="valid")
