"""EXPLAIN WHY, WHAT IF and CONFIDENCE over the base rows that the sites hold at the moment.

Base rows are read with helper queries; the engine that was handed in then reasons over them in a
thread. A running query is only looked at for its text.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from federated_optimizer.coordinator.base_rows import BaseRowReader, BaseRows, leaves_of
from federated_optimizer.coordinator.chances import (
    chance_by,
    column_text,
    deletion_of,
    given_row,
    source_column,
    sources_of,
)
from federated_optimizer.coordinator.explanation_text import (
    WhatIfReport,
    confidence_result,
    why_result,
)
from federated_optimizer.coordinator.explanations import Leaf, RowExplainer
from federated_optimizer.coordinator.model import QueryStatus, StatementResult
from federated_optimizer.coordinator.planner import Planner
from federated_optimizer.coordinator.queries import Queries
from federated_optimizer.coordinator.running import RunningQuery
from streamsql.binder import (
    BoundConfidence,
    BoundQuery,
    BoundWhy,
    Deletion,
    bind_confidence,
    bind_deletions,
    bind_what_if,
    bind_why,
)
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import Row
from streamsql.errors import BindingError, DeploymentError, FederationError
from streamsql.syntax import (
    ExplainConfidence,
    ExplainWhatIf,
    ExplainWhy,
    parse_statement,
)

MAX_LIMIT = 10_000
DEFAULT_CONFIDENCES = 100
"""Rows whose probability is computed when no number is given."""

MAX_QUERIES = 20
"""Running queries that one WHAT IF looks at."""

AT_ONCE = 2
"""Questions worked on at a time; others wait."""

Question = ExplainWhy | ExplainWhatIf | ExplainConfidence
Chosen = Callable[[str, Row], bool]
"""Whether a row of a source is to be thought away."""


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

    Args:
        engine: What reasons; without it every question is refused.
        reader: Reads base rows.
        catalog: Definitions.
        planner: Binds queries.
        queries: The running ones.
    """

    def __init__(
        self,
        engine: RowExplainer | None,
        reader: BaseRowReader,
        catalog: Catalog,
        planner: Planner,
        queries: Queries,
    ) -> None:
        self._engine = engine
        self._reader = reader
        self._catalog = catalog
        self._planner = planner
        self._queries = queries
        self._room = asyncio.Semaphore(AT_ONCE)

    async def answer(self, question: Question) -> StatementResult:
        """Answer a statement.

        Raises:
            FederationError: It is wrong, base rows do not come, or it takes too much work.
        """
        result = await self._answer(question)
        return replace(result, text="") if question.format == "json" else result

    async def _answer(self, question: Question) -> StatementResult:
        match question:
            case ExplainWhy():
                return await self._why(bind_why(question, self._catalog))
            case ExplainWhatIf():
                return await self._what_if_asked(question)
            case ExplainConfidence():
                return await self._confidence(bind_confidence(question, self._catalog))

    # --- RowQuestions ------------------------------------------------------------------------

    async def why_row(
        self, query_id: str, values: Sequence[object], *, limit: int = 10, confidence: str = ""
    ) -> StatementResult:
        """Return what a row of a running query rests on."""
        bound = self._bound(self._find(query_id))
        _check_limit(limit)
        row = given_row(bound.schema, values)
        column = source_column(self._catalog, bound.plan, confidence) if confidence else None
        return await self._why(BoundWhy(bound, row, limit, column))

    async def confidence_of_rows(
        self, query_id: str, column: str, *, limit: int | None = None
    ) -> StatementResult:
        """Return how probable the rows of a running query are."""
        bound = self._bound(self._find(query_id))
        if limit is not None:
            _check_limit(limit)
        using = source_column(self._catalog, bound.plan, column)
        return await self._confidence(BoundConfidence(bound, using, limit))

    async def what_if_deleted(
        self,
        deletions: Sequence[tuple[str, Sequence[object]]],
        *,
        query_id: str | None = None,
    ) -> StatementResult:
        """Return what would become of a running query, or of all, without base rows."""
        found = [deletion_of(self._catalog, source, values) for source, values in deletions]
        chosen = self._find(query_id) if query_id is not None else None
        return await self._what_if_running(found, chosen)

    async def _what_if_running(
        self, found: Sequence[Deletion], only: RunningQuery | None
    ) -> StatementResult:
        names = {deletion.definition.name for deletion in found}
        running = [
            query
            for query in self._queries.all()
            if query.origin == "user" and query.status != QueryStatus.FAILED
        ]
        chosen = running if only is None else [only]
        targets = [Target(query.name, self._bound(query)) for query in chosen]
        reading = [t for t in targets if names & set(sources_of(t.bound.plan))]
        if only is not None and not reading:
            raise BindingError(
                f"the query does not read {', '.join(sorted(names))}",
                hint=f"it reads {', '.join(sources_of(targets[0].bound.plan)) or 'no source'}",
            )

        def gone(source: str, row: Row) -> bool:
            return any(d.definition.name == source and d.matches(row) for d in found)

        return await self._what_if(gone, reading, one=only is not None)

    async def _what_if_asked(self, question: ExplainWhatIf) -> StatementResult:
        """Answer WHAT IF of a written query, of a running one by its name, or of all that run."""
        running = self._named(question)
        if question.inner is not None and running is None:
            bound = bind_what_if(question, self._catalog)
            return await self._what_if(bound.chosen, [Target("", bound.query)], one=True)
        found = bind_deletions(question, self._catalog)
        return await self._what_if_running(found, running)

    def _named(self, question: ExplainWhatIf) -> RunningQuery | None:
        """Return the running query behind FOR; a view of that name comes first."""
        if question.named is None or self._catalog.find(question.named.text) is not None:
            return None
        return self._queries.find(question.named.text)

    # --- inside ------------------------------------------------------------------------------

    async def _why(self, asked: BoundWhy) -> StatementResult:
        engine = self._engine_or_refuse()
        plan, column = asked.query.plan, asked.confidence
        chance = chance_by(column) if column is not None else None
        async with self._room:
            base = await self._reader.read(leaves_of(plan))
            answer = await asyncio.to_thread(
                engine.why, plan, base.contents, asked.row, limit=asked.limit, chance=chance
            )
        using = column_text(column) if column is not None else ""
        return why_result(asked.query.schema, asked.row, answer, using, base.notes)

    async def _confidence(self, asked: BoundConfidence) -> StatementResult:
        engine = self._engine_or_refuse()
        plan = asked.query.plan
        async with self._room:
            base = await self._reader.read(leaves_of(plan))
            answer = await asyncio.to_thread(
                engine.confidences,
                plan,
                base.contents,
                limit=asked.limit or DEFAULT_CONFIDENCES,
                chance=chance_by(asked.using),
            )
        using = column_text(asked.using)
        return confidence_result(asked.query.schema, answer, using, base.notes)

    async def _what_if(
        self, gone: Chosen, targets: Sequence[Target], *, one: bool
    ) -> StatementResult:
        engine = self._engine_or_refuse()
        notes = []
        if len(targets) > MAX_QUERIES:
            notes.append(f"only the newest {MAX_QUERIES} of {len(targets)} queries were looked at")
            targets = targets[-MAX_QUERIES:]
        leaves: dict[Leaf, None] = {}
        for target in targets:
            leaves.update(dict.fromkeys(leaves_of(target.bound.plan)))
        report = WhatIfReport()
        if not leaves:
            return report.result(notes)
        async with self._room:
            base = await self._reader.read(list(leaves))
            for target in targets:
                await self._think_away(engine, report, target, (base, gone), one=one)
        refuse_no_deletion(report)
        return report.result([*notes, *base.notes])

    @staticmethod
    async def _think_away(
        engine: RowExplainer,
        report: WhatIfReport,
        target: Target,
        world: tuple[BaseRows, Chosen],
        *,
        one: bool,
    ) -> None:
        base, gone = world
        plan = target.bound.plan
        mine = {leaf: base.contents[leaf] for leaf in leaves_of(plan)}
        try:
            answer = await asyncio.to_thread(engine.what_if_deleted, plan, mine, gone)
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

    def _bound(self, query: RunningQuery) -> BoundQuery:
        return self._planner.bind(parse_statement(query.text))

    def _engine_or_refuse(self) -> RowExplainer:
        if self._engine is None:
            raise DeploymentError(
                "this console was started without an engine that explains rows",
                hint="start it as `pando up` does: python -m deploy.console --config FILE",
            )
        return self._engine


def refuse_no_deletion(report: WhatIfReport) -> None:
    """Refuse a question about base rows that are not there.

    Raises:
        BindingError: None was meant.
    """
    if report.deletes_nothing:
        raise BindingError(
            "no base row is meant by these values: nothing would change",
            hint="look at what the source holds with a query of its own",
        )


def _check_limit(limit: int) -> None:
    """Refuse a number that makes no sense.

    Raises:
        BindingError: It is not from 1 to 10,000.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise BindingError(
            f"limit is a whole number from 1 to {MAX_LIMIT}, not {limit}", hint="limit = 10"
        )
