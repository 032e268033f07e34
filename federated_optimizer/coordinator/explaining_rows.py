"""EXPLAIN WHY and EXPLAIN WHAT IF over the base rows that the sites hold at the moment.

Base rows are read with helper queries; the engine that was handed in then reasons over them in a
thread. The running query is only looked at for its text.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from federated_optimizer.coordinator.base_rows import BaseRowReader, leaves_of, scan_of
from federated_optimizer.coordinator.chances import (
    base_row_named,
    chance_of,
    given_row,
)
from federated_optimizer.coordinator.explanation_text import WhatIfReport, why_result
from federated_optimizer.coordinator.explanations import RowExplainer
from federated_optimizer.coordinator.model import StatementResult
from federated_optimizer.coordinator.planner import Planner
from federated_optimizer.coordinator.queries import Queries
from federated_optimizer.coordinator.running import RunningQuery
from streamsql.binder import BoundQuery
from streamsql.catalog.catalog import Catalog
from streamsql.errors import BindingError, DeploymentError, FederationError
from streamsql.syntax import parse_statement

MAX_LIMIT = 1_000
MAX_QUERIES = 20
"""Running queries that one WHAT IF looks at."""

AT_ONCE = 2
"""Questions worked on at a time; others wait."""


@dataclass(frozen=True, slots=True)
class Target:
    """A query that a question is about.

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

    async def why_row(
        self, query_id: str, values: Sequence[object], *, limit: int = 10, confidence: str = ""
    ) -> StatementResult:
        """Return what a row of a running query rests on."""
        bound = self._bound(self._find(query_id))
        return await self.why(bound, values, limit=limit, confidence=confidence)

    async def what_if_deleted(
        self, source: str, values: Sequence[object], *, query_id: str | None = None
    ) -> StatementResult:
        """Return what would become of a running query, or of all, without base rows."""
        if query_id is not None:
            chosen = [self._find(query_id)]
        else:
            chosen = [q for q in self._queries.all() if q.origin != "session"]
        targets = [Target(query.name, self._bound(query)) for query in chosen]
        return await self.what_if(source, values, targets, single=query_id is not None)

    def _find(self, query_id: str) -> RunningQuery:
        query = self._queries.find(query_id)
        if query is None:
            raise KeyError(query_id)
        return query

    def _bound(self, query: RunningQuery) -> BoundQuery:
        return self._planner.bind(parse_statement(query.text))

    async def why(
        self, bound: BoundQuery, values: Sequence[object], *, limit: int, confidence: str
    ) -> StatementResult:
        """Return what a row of a query rests on.

        Args:
            bound: The query.
            values: The row, a value per column.
            limit: Most combinations of base rows to list.
            confidence: Columns with probabilities of base rows, such as "link.pdr", or empty.

        Raises:
            FederationError: Something is wrong with the question, base rows do not come, or it
                takes too much work.
        """
        engine = self._engine_or_refuse()
        check_limit(limit)
        row = given_row(bound.schema, values)
        leaves = leaves_of(bound.plan)
        chance = chance_of(confidence, leaves)
        async with self._room:
            base = await self._reader.read(leaves)
            answer = await asyncio.to_thread(
                engine.why, bound.plan, base.contents, row, limit=limit, chance=chance
            )
        return why_result(bound.schema, row, answer, confidence, base.notes)

    async def what_if(
        self,
        source: str,
        values: Sequence[object],
        targets: Sequence[Target],
        *,
        single: bool,
    ) -> StatementResult:
        """Return what would become of queries if base rows were deleted.

        Args:
            source: Name of a source or table.
            values: Of its key, or of its first columns: all such rows are meant.
            targets: Queries; those that do not read the source are left out.
            single: The question is about one query, and what is wrong with it is an error.

        Raises:
            FederationError: Something is wrong with the question, base rows do not come, or, with
                only one query, it takes too much work.
        """
        engine = self._engine_or_refuse()
        chosen = base_row_named(self._catalog, source, values)
        reading = [t for t in targets if _reads(t.bound, source)]
        if single and not reading:
            raise BindingError(
                f"the query does not read {source}", hint="name a source that it reads"
            )
        notes = []
        if len(reading) > MAX_QUERIES:
            notes.append(f"only the newest {MAX_QUERIES} of {len(reading)} queries were looked at")
            reading = reading[-MAX_QUERIES:]
        report = WhatIfReport()
        if reading:
            leaves = list(dict.fromkeys(leaf for t in reading for leaf in leaves_of(t.bound.plan)))
            async with self._room:
                base = await self._reader.read(leaves)
                notes.extend(base.notes)
                for target in reading:
                    plan = target.bound.plan
                    mine = {leaf: base.contents[leaf] for leaf in leaves_of(plan)}
                    try:
                        answer = await asyncio.to_thread(engine.what_if_deleted, plan, mine, chosen)
                        report.add(target.name, target.bound.schema, answer)
                    except FederationError as error:
                        if single:
                            raise
                        report.fail(target.name, error.message)
            if report.deletes_nothing:
                raise BindingError(
                    f"no row of {source} that these queries read is meant by "
                    f"({', '.join(map(repr, values))})",
                    hint=f"look at what {source} holds with a query of its own",
                )
        return report.result(notes)

    def _engine_or_refuse(self) -> RowExplainer:
        if self._engine is None:
            raise DeploymentError(
                "this console was started without an engine that explains rows",
                hint="start it as `pando up` does: python -m deploy.console --config FILE",
            )
        return self._engine


def check_limit(limit: int) -> None:
    """Refuse a number of combinations that makes no sense.

    Raises:
        BindingError: It is not from 1 to 1,000.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise BindingError(
            f"limit is a whole number from 1 to {MAX_LIMIT}, not {limit}", hint="limit = 10"
        )


def _reads(bound: BoundQuery, source: str) -> bool:
    names = {scan_of(leaf).source.lower() for leaf in leaves_of(bound.plan)}
    return source.lower() in names
