"""EXPLAIN WHY, WHAT IF and CONFIDENCE over the base rows that the sites hold at the moment.

Base rows are read with helper queries; the engine that was handed in then reasons over them next to
the event loop. A running query is only looked at for its text.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from federated_optimizer.coordinator.contract.coordinator_model import (
    Origin,
    QueryStatus,
    StatementResult,
)
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal
from federated_optimizer.coordinator.explaining.chances import (
    deletion_of,
    given_row,
    source_column,
)
from federated_optimizer.coordinator.explaining.explanation_text import (
    WhatIfReport,
    confidence_answer,
    refuse_no_deletion,
    subjects_of,
    why_answer,
)
from federated_optimizer.coordinator.explaining.known_base_rows import (
    BaseRowReader,
    check_gateways,
    lost_rows,
    unknown_owners,
)
from federated_optimizer.coordinator.explaining.row_explainer import RowExplainer
from federated_optimizer.coordinator.grants.query_rights import (
    may_read_base_rows,
    refuse_base_rows,
)
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from streamsql.algebra.row_explanations import Contents, Leaf, leaves_of, sources_of
from streamsql.binder import (
    BoundConfidence,
    BoundLoss,
    BoundQuery,
    BoundWhy,
    bind_confidence,
    bind_deletions,
    bind_what_if,
    bind_why,
    gateway_deletion,
    node_deletion,
)
from streamsql.errors import BindingError, DeploymentError, FederationError
from streamsql.syntax import (
    ExplainConfidence,
    ExplainFormat,
    ExplainWhatIf,
    ExplainWhy,
    parse_statement,
)

T = TypeVar("T")

MAX_LIMIT = 10_000
MAX_QUERIES = 20
"""Running queries that one WHAT IF looks at."""

_ANSWERING = "answering the question"

AT_ONCE = 2
"""Questions worked on at a time; others wait."""

Question = ExplainWhy | ExplainWhatIf | ExplainConfidence

_ASKED_FIRST = (Origin.USER, Origin.ALARM, Origin.MAP)
"""Origins of the queries that WHAT IF is about, in the order in which they find room."""


@dataclass(frozen=True, slots=True)
class Target:
    """A query that WHAT IF is about.

    Attributes:
        name: Of the running query; empty for one that was written into the question.
    """

    name: str
    bound: BoundQuery


class RowExplanations:
    """Answers questions about rows of queries; see `RowQuestions`.

    Without an engine every question is refused.
    """

    def __init__(
        self,
        shared: SharedParts,
        engine: RowExplainer | None,
        reader: BaseRowReader,
        planner: Planner,
        queries: Queries,
    ) -> None:
        self._shared = shared
        self._engine = engine
        self._reader = reader
        self._planner = planner
        self._queries = queries
        self._room = asyncio.Semaphore(AT_ONCE)

    async def answer(self, question: Question, principal: Principal = LOCAL) -> StatementResult:
        """Answer a statement of somebody, who must be allowed to read the base rows.

        Raises:
            FederationError: It is wrong, not allowed, base rows do not come, or it takes too much
                work.
        """
        result = await self._answer(question, principal)
        return replace(result, text="") if question.format == ExplainFormat.JSON else result

    async def _answer(self, question: Question, principal: Principal) -> StatementResult:
        catalog = self._shared.catalog_of(principal)
        match question:
            case ExplainWhy():
                bound = await self._read(lambda: bind_why(question, catalog))
                self._refuse(principal, bound.query, "the query")
                return await self._why(bound)
            case ExplainWhatIf():
                return await self._what_if_asked(question, principal)
            case ExplainConfidence():
                asked = await self._read(lambda: bind_confidence(question, catalog))
                self._refuse(principal, asked.query, "the query")
                return await self._confidence(asked)

    def _refuse(self, principal: Principal, bound: BoundQuery, what: str) -> None:
        refuse_base_rows(self._shared.rights, principal, bound.reads, what)

    # --- RowQuestions ------------------------------------------------------------------------

    async def why_row(
        self,
        query_id: str,
        values: Sequence[object],
        *,
        limit: int = 10,
        confidence: str = "",
        principal: Principal = LOCAL,
    ) -> StatementResult:
        """Return what a row of a running query rests on."""
        bound = await self._bound(self._find(query_id))
        self._refuse(principal, bound, f"query {query_id}")
        _check_limit(limit)
        row = given_row(bound.schema, values)
        column = source_column(self._shared.catalog, bound.plan, confidence) if confidence else None
        return await self._why(BoundWhy(bound, row, limit, column))

    async def confidence_of_rows(
        self,
        query_id: str,
        column: str,
        *,
        limit: int | None = None,
        principal: Principal = LOCAL,
    ) -> StatementResult:
        """Return how probable the rows of a running query are."""
        bound = await self._bound(self._find(query_id))
        self._refuse(principal, bound, f"query {query_id}")
        if limit is not None:
            _check_limit(limit)
        using = source_column(self._shared.catalog, bound.plan, column)
        return await self._confidence(BoundConfidence(bound, using, limit))

    async def what_if_deleted(
        self,
        deletions: Sequence[tuple[str, Sequence[object]]],
        *,
        gateways: Sequence[str] = (),
        nodes: Sequence[str | int] = (),
        query_id: str | None = None,
        principal: Principal = LOCAL,
    ) -> StatementResult:
        """Return what would become of a running query, or of all, without base rows."""
        catalog = self._shared.catalog_of(principal)
        for source, _ in deletions:
            catalog.check_read(source)
        found: list[BoundLoss] = [
            *(deletion_of(catalog, source, values) for source, values in deletions),
            *(gateway_deletion(gateway, catalog) for gateway in gateways),
            *(node_deletion(node, catalog) for node in nodes),
        ]
        chosen = self._find(query_id) if query_id is not None else None
        return await self._what_if_running(found, chosen, principal)

    async def _what_if_running(
        self, losses: Sequence[BoundLoss], only: RunningQuery | None, principal: Principal
    ) -> StatementResult:
        names = frozenset[str]().union(*(loss.sources for loss in losses))
        running = [
            query
            for origin in _ASKED_FIRST
            for query in self._queries.all()
            if query.origin == origin and query.status != QueryStatus.FAILED
        ]
        chosen = running if only is None else [only]
        targets = await self._read(
            lambda: [Target(query.name, self._bind(query)) for query in chosen]
        )
        rights = self._shared.rights
        if only is not None:
            self._refuse(principal, targets[0].bound, f"query {only.name}")
        targets = [t for t in targets if may_read_base_rows(rights, principal, t.bound.reads)]
        reading = [t for t in targets if names & set(sources_of(t.bound.plan))]
        if only is not None and not reading:
            raise BindingError(
                f"the query does not read {', '.join(sorted(names))}",
                hint=f"it reads {', '.join(sources_of(targets[0].bound.plan)) or 'no source'}",
            )
        notes = []
        if len(reading) > MAX_QUERIES:
            notes.append(
                f"only {MAX_QUERIES} of {len(reading)} queries were examined, those of "
                "users first; add FOR and a query's name to ask about one query"
            )
        return await self._what_if(losses, reading[:MAX_QUERIES], notes, one=only is not None)

    async def _what_if_asked(
        self, question: ExplainWhatIf, principal: Principal
    ) -> StatementResult:
        """Answer WHAT IF of a written query, of a running one by its name, or of all that run."""
        running, catalog = self._named(question), self._shared.catalog_of(principal)
        if question.inner is not None and running is None:
            bound = await self._read(lambda: bind_what_if(question, catalog))
            self._refuse(principal, bound.query, "the query")
            return await self._what_if(bound.deletions, [Target("", bound.query)], one=True)
        found = await self._read(lambda: bind_deletions(question, catalog))
        return await self._what_if_running(found, running, principal)

    def _named(self, question: ExplainWhatIf) -> RunningQuery | None:
        """Return the running query behind FOR; a view of that name comes first."""
        if question.named is None or self._shared.catalog.find(question.named.text) is not None:
            return None
        return self._queries.find(question.named.text)

    # --- inside ------------------------------------------------------------------------------

    async def _why(self, asked: BoundWhy) -> StatementResult:
        engine = self._engine_or_refuse()
        async with self._room:
            base = await self._reader.read(leaves_of(asked.query.plan))
            return await self._shared.beside.run(
                lambda: why_answer(engine, asked, base), _ANSWERING
            )

    async def _confidence(self, asked: BoundConfidence) -> StatementResult:
        engine = self._engine_or_refuse()
        async with self._room:
            base = await self._reader.read(leaves_of(asked.query.plan))
            return await self._shared.beside.run(
                lambda: confidence_answer(engine, asked, base), _ANSWERING
            )

    async def _what_if(
        self,
        losses: Sequence[BoundLoss],
        targets: Sequence[Target],
        notes: Sequence[str] = (),
        *,
        one: bool,
    ) -> StatementResult:
        engine = self._engine_or_refuse()
        check_gateways(losses, self._shared.membership)
        leaves: dict[Leaf, None] = {}
        for target in targets:
            leaves.update(dict.fromkeys(leaves_of(target.bound.plan)))
        report = WhatIfReport(subjects_of(losses))
        if not leaves:
            return report.result(notes)
        async with self._room:
            base = await self._reader.read(list(leaves))
            lost = lost_rows(base, losses)
            for target in targets:
                await self._think_away(engine, report, target, (base.contents, lost), one=one)
        refuse_no_deletion(report)
        return report.result([*notes, *unknown_owners(base, losses), *base.notes])

    async def _think_away(
        self,
        engine: RowExplainer,
        report: WhatIfReport,
        target: Target,
        world: tuple[Contents, Contents],
        *,
        one: bool,
    ) -> None:
        plan = target.bound.plan
        contents, lost = ({leaf: rows[leaf] for leaf in leaves_of(plan)} for rows in world)
        try:
            answer = await self._shared.beside.run(
                lambda: engine.what_if_deleted(plan, contents, lost), _ANSWERING
            )
        except FederationError as error:
            if one:
                raise
            report.fail(target.name, error.message)
        else:
            report.add(target.name, target.bound.schema, answer)

    def _find(self, query_id: str) -> RunningQuery:
        query = self._queries.find(query_id)
        if query is None:
            raise KeyError(query_id)
        return query

    async def _read(self, work: Callable[[], T]) -> T:
        return await self._shared.beside.run(work, "reading the question")

    async def _bound(self, query: RunningQuery) -> BoundQuery:
        return await self._read(lambda: self._bind(query))

    def _bind(self, query: RunningQuery) -> BoundQuery:
        return self._planner.bind(parse_statement(query.text))

    def _engine_or_refuse(self) -> RowExplainer:
        if self._engine is None:
            raise DeploymentError(
                "this console has no engine that explains rows",
                hint="start it as `pando up` does: python -m deploy.console --config FILE",
            )
        return self._engine


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise BindingError(
            f"limit is a whole number from 1 to {MAX_LIMIT}, not {limit}", hint="limit = 10"
        )
