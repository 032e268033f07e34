"""Queries of changes: INSERT … SELECT, and MERGE with the rows of a query.

A change sees tables as they are when its turn has come: they are read then, and a table that cannot
be read refuses the change, though queries go on with its former rows. Belongs to the event loop;
a worker reads and evaluates.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Protocol

from static_engine.changing.change_checks import failed, not_writable
from static_engine.evaluation.static_executor import (
    EngineLostError,
    EvaluationCancelledError,
    StaticExecutor,
    tables_of,
)
from static_engine.history.past_readings import PastReadings
from static_engine.sources.declared_options import table_options
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Plan
from streamsql.catalog.table_options import TableSource
from streamsql.data.delta import Delta, expand
from streamsql.data.types import Row
from streamsql.errors import FederationError, InternalError
from streamsql.wire.table_changes import TableChange

log = logging.getLogger(__name__)

ExecutorFor = Callable[[Plan], StaticExecutor | None]
Compute = Callable[[Callable[[], None]], Awaitable[bool]]


class RefreshedNames(Protocol):
    """The views that are refreshed at times of day; others read their rows like a table's."""

    @property
    def names(self) -> frozenset[str]:
        """Names of all views."""
        ...


class ChangingQueries:
    """Computes the rows of one change after the other.

    Args:
        store: The tables.
        watch: Reads the tables.
        past: What is kept of the past.
        views: Whose rows are not read.
        executor_for: What evaluates a plan now, or None: nothing does yet.
        compute: Runs an evaluation where it stops nobody.

    Attributes:
        why: What the change in turn waits for, in words.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - each is one seam
        self,
        store: TableStore,
        watch: TableWatch,
        past: PastReadings,
        views: RefreshedNames,
        executor_for: ExecutorFor,
        compute: Compute,
    ) -> None:
        self._store, self._watch, self._past, self._views = store, watch, past, views
        self._executor_for, self._compute = executor_for, compute
        self._change: TableChange | None = None
        self._read = False
        self.why = ""

    @property
    def waits_for_tables(self) -> bool:
        """Whether the tables of the change in turn have yet to be read."""
        return self._change is not None and not self._read

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The query of the change in turn."""
        change = self._change
        return () if change is None or change.query is None else (change.query,)

    def tables(self) -> frozenset[str]:
        """Return the stored tables that the change in turn reads."""
        return frozenset().union(*map(tables_of, self.plans)) - self._views.names

    def polled(self) -> None:
        """Note that tables were looked at, those of the change in turn among them."""
        self._read = not any(map(self._watch.is_unsettled, self.tables()))

    def keep(self, change: str) -> None:
        """Discard the change in turn if it is not the one of this id: it was given up."""
        if self._change is not None and self._change.id != change:
            self._change = None

    async def rows(self, change: TableChange, seconds: float) -> tuple[Row, ...] | None:
        """Return the rows of a change's query; None: it is too early, ask again.

        Args:
            change: Whose turn it is.
            seconds: How long this may take.

        Raises:
            FederationError: There are none.
        """
        plan = change.query
        if plan is None:
            return change.rows
        if self._change is None or self._change.id != change.id:
            self._begin(change)
        if self.waits_for_tables:
            return None
        try:
            self._check(plan)
            executor = self._executor_for(plan)
            if executor is None:
                self.why = "Spark is starting"
                return None
            rows = await self._evaluated(plan, executor, seconds, change.definition.name)
        except FederationError:
            self._change = None
            raise
        self._change = None
        return tuple(expand(rows))

    def _begin(self, change: TableChange) -> None:
        if table_options(change.definition).source != TableSource.LAKE:
            why = "is not kept by Pando: rows of a query are not written there"
            raise not_writable(change.definition, why, "list the rows with VALUES")
        self._change, self._read = change, False
        self.why = "tables that it reads are being read"
        for name in self.tables():
            table = self._store.find(name)
            if table is not None and table.fingerprint is None:  # a server reports no changes
                self._watch.read_again(name)

    def _check(self, plan: Plan) -> None:
        """Check that everything that is read was read now.

        Raises:
            FederationError: Something cannot be read.
        """
        for name in sorted(tables_of(plan)):
            problem = None if name in self._views.names else self._watch.problem(name)
            if problem is not None:
                raise problem
            if self._store.find(name) is None:
                raise failed(f"{name} has no rows yet", "try again when it has been refreshed")
        problem_of_past = self._past.problem(plan)
        if problem_of_past is not None:
            raise problem_of_past

    async def _evaluated(
        self, plan: Plan, executor: StaticExecutor, seconds: float, table: str
    ) -> Delta:
        found: list[Delta | FederationError] = []

        def work() -> None:
            try:
                found.append(executor.evaluate(plan))
            except EngineLostError:
                raise
            except FederationError as error:
                found.append(error)
            except Exception as error:
                log.exception("a defect interrupted the query of a change of table %s", table)
                found.append(InternalError(f"{type(error).__name__}: {error}"))

        def end() -> None:
            threading.Thread(target=executor.cancel, args=(plan,), daemon=True).start()

        late = asyncio.get_running_loop().call_later(max(seconds, 0.0), end)
        try:
            await self._compute(work)
        finally:
            late.cancel()
        if not found:
            raise failed(f"the engine ended; table {table} has not changed", "try again")
        if isinstance(found[0], EvaluationCancelledError):
            raise failed(
                f"the query took too long; table {table} has not changed",
                "keep its rows with CREATE MATERIALIZED VIEW … REFRESH AT, and read those",
            )
        if isinstance(found[0], FederationError):
            raise found[0]
        return found[0]
