"""Queries of changes: INSERT … SELECT, and MERGE with the rows of a query.

A change sees tables as they are when its turn has come: they are read then, and a table that cannot
be read refuses the change, though queries go on with its former rows. Of a large table the part is
read that the change needs. Belongs to the event loop; a worker reads and evaluates.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
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
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_parts import Narrowed
from static_engine.tables.narrowed_tables import NarrowedTables
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Plan
from streamsql.catalog.table_options import TableSource
from streamsql.data.delta import Delta, expand
from streamsql.data.types import Row
from streamsql.errors import FederationError, InternalError
from streamsql.wire.stored_tables.table_changes import TableChange

log = logging.getLogger(__name__)

ExecutorFor = Callable[[Plan], StaticExecutor | None]
Compute = Callable[[Callable[[], None]], Awaitable[bool]]


class RefreshedNames(Protocol):
    """The views that are refreshed at times of day; others read their rows like a table's."""

    @property
    def names(self) -> frozenset[str]:
        """Names of all views."""
        ...


@dataclass(slots=True)
class _Turn:
    """The change in turn.

    Attributes:
        query: Its plan.
        evaluated: The plan that is evaluated in its place.
        parts: What that reads of tables, by name.
        former: When tables and parts that were there already had been read; None: they were not.
        read: Whether everything has been read since.
    """

    change: str
    query: Plan
    evaluated: Plan
    parts: Mapping[str, Narrowed] = field(default_factory=dict)
    former: dict[str, int | None] = field(default_factory=dict)
    read: bool = False

    def table(self, name: str) -> str:
        """Return the table that a name of the evaluated plan means."""
        return self.parts[name].table if name in self.parts else name


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
        self._turn: _Turn | None = None
        self.why = ""

    @property
    def waits_for_tables(self) -> bool:
        """Tables of the change in turn have yet to be read."""
        return self._turn is not None and not self._turn.read

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The query of the change in turn."""
        return () if self._turn is None else (self._turn.query,)

    def tables(self) -> frozenset[str]:
        """Return the stored tables, and parts of them, that the change in turn reads."""
        turn = self._turn
        return frozenset() if turn is None else tables_of(turn.evaluated) - self._views.names

    def narrow(self, narrowed: NarrowedTables, shared: frozenset[str]) -> Mapping[str, Narrowed]:
        """Read parts of tables where that will do, and nothing that was read before the turn.

        Args:
            narrowed: Rewrites the plan.
            shared: Tables that are read whole for others.

        Returns:
            The parts, by their names.
        """
        turn = self._turn
        if turn is None:
            return {}
        plans, turn.parts = narrowed.plans((turn.query,), shared)
        turn.evaluated = plans[turn.query]
        for name in sorted(self.tables() - turn.former.keys()):
            stored = self._store.find(name)
            turn.former[name] = None if stored is None else stored.read
            if stored is not None and stored.fingerprint is None:  # a server reports no changes
                self._watch.read_again(turn.table(name))
        return turn.parts

    def polled(self) -> None:
        """Note that tables were looked at, those of the change in turn among them."""
        turn = self._turn
        if turn is not None:
            turn.read = all(self._is_read(turn, name) for name in self.tables())

    def _is_read(self, turn: _Turn, name: str) -> bool:
        """The rows of a table are those of the turn, or cannot be had."""
        if self._watch.is_unsettled(name):
            return False
        if self._watch.problem(name) is not None:
            return True
        stored = self._store.find(name)
        if stored is None:  # its database has refused to group it: its rows are read next
            return False
        if stored.read != turn.former.get(name):
            return True
        try:  # files that have not changed are not read again
            seen = self._store.print_of(stored.definition)
        except TableError:
            return False  # the next poll says why
        return seen is not None and seen == stored.fingerprint

    def keep(self, change: str) -> None:
        """Discard the change in turn if it is not the one of this id: it was given up."""
        if self._turn is not None and self._turn.change != change:
            self._turn = None

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
        turn = self._turn
        if turn is None or turn.change != change.id:
            turn = self._turn = self._begun(change, plan)
        if not turn.read:
            return None
        try:
            self._check(turn)
            executor = self._executor_for(turn.evaluated)
            if executor is None:
                self.why = "Spark is starting"
                return None
            rows = await self._evaluated(turn.evaluated, executor, seconds, change.definition.name)
        except FederationError:
            self._turn = None
            raise
        self._turn = None
        return tuple(expand(rows))

    def _begun(self, change: TableChange, plan: Plan) -> _Turn:
        if table_options(change.definition).source != TableSource.LAKE:
            why = "is not kept by Pando: rows of a query are not written there"
            raise not_writable(change.definition, why, "list the rows with VALUES")
        self.why = "tables that it reads are being read"
        return _Turn(change.id, plan, plan)

    def _check(self, turn: _Turn) -> None:
        """Check that everything that is read was read now.

        Raises:
            FederationError: Something cannot be read.
        """
        # A table of which a part is read may have been dropped meanwhile.
        for name in sorted(tables_of(turn.query) | tables_of(turn.evaluated)):
            problem = None if name in self._views.names else self._watch.problem(name)
            if problem is not None:
                raise problem
        for name in sorted(tables_of(turn.evaluated)):
            if self._store.find(name) is None:
                hint = "try again when it has been refreshed"
                raise failed(f"{turn.table(name)} has no rows yet", hint)
        problem_of_past = self._past.problem(turn.query)
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
