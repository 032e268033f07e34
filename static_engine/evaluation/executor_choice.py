"""Choice of who evaluates a plan: this process while it is quicker, else the engine asked for."""

import time
from functools import cached_property
from typing import Protocol

from static_engine.evaluation.local_executor import MOST_PAST_ROWS
from static_engine.evaluation.static_executor import StaticExecutor, tables_of
from static_engine.history.past_readings import PastReadings
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import (
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Scan,
    SourceKind,
    Values,
    walk_plan,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.errors import FederationError
from streamsql.reference import Database, evaluate
from streamsql.wire.site_messages import LOCAL_ROWS, PAST_ROW_COST

JOB_SECONDS = 0.3
"""What Spark takes for a plan over a few rows, once it is warm: planning, tasks, two transfers."""
MOST_ROWS = 200_000
"""However quick this machine is: the rows are Python objects, some hundred bytes each."""
_SAMPLE = 2_000


class Starter(Protocol):
    """The engine that was asked for, as the choice needs it."""

    executor: StaticExecutor | None
    problem: FederationError | None


class ExecutorChoice:
    """Picks an executor by the rows that a plan reads and pairs.

    Args:
        starter: Of the engine that was asked for.
        bridge: Evaluates in this process; None where the engine that was asked for does.
        store: The tables.
        past: What is kept of the past.
        bridge_rows: Most rows that are evaluated here while the engine starts.
        local_rows: And when it has started; negative: as many as it pays for.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - who there is, and two bounds
        self,
        starter: Starter,
        bridge: StaticExecutor | None,
        store: TableStore,
        past: PastReadings,
        bridge_rows: int,
        local_rows: int,
    ) -> None:
        self._starter, self._bridge = starter, bridge
        self._store, self._past = store, past
        self._bridge_rows, self._local_rows = bridge_rows, local_rows

    def executor(self, plan: Plan) -> StaticExecutor | None:
        """Return who evaluates a plan over the present tables; None: it waits for the engine."""
        engine = self._starter.executor
        if self._bridge is None or (engine is None and not self.is_bridged):
            return engine
        work, past = self._work(plan)[1], self._past.rows(plan)
        if engine is None:
            return self._bridge if work + past <= self._bridge_rows else None
        likely = work + PAST_ROW_COST * self._past.likely_rows(plan)
        small = likely <= self.local_rows and past <= MOST_PAST_ROWS and not _recurses(plan)
        return self._bridge if small and self._in_memory(plan) else engine

    def _in_memory(self, plan: Plan) -> bool:
        tables = [self._store.find(name) for name in tables_of(plan)]
        return all(table is not None and table.data is not None for table in tables)

    @property
    def is_bridged(self) -> bool:
        """Whether small plans are evaluated here for the time being.

        Not after a failed start, which is reported.
        """
        starter = self._starter
        return self._bridge is not None and starter.executor is None and starter.problem is None

    @property
    def notes(self) -> tuple[str, ...]:
        """Further words of the state on the engine."""
        return ("small tables are answered without it until then",) if self.is_bridged else ()

    @property
    def figures(self) -> dict[str, int]:
        """Counters for the engine's state; none while there is no choice."""
        return {} if self._bridge is None else {LOCAL_ROWS: self.local_rows}

    @cached_property
    def local_rows(self) -> int:
        """Most rows that are evaluated here though there is an engine."""
        if self._local_rows >= 0:
            return self._local_rows
        return min(int(rows_per_second() * JOB_SECONDS), MOST_ROWS)

    def _work(self, plan: Plan) -> tuple[int, int]:
        """Return how many rows a plan has at most, and how many are read and paired for them."""
        if isinstance(plan, Scan):
            table = self._store.find(plan.source)
            rows = table.row_count if table is not None else 0
            return rows, rows
        if isinstance(plan, Values):
            return len(plan.rows), len(plan.rows)
        below = [self._work(child) for child in plan.inputs]
        rows, work = sum(r for r, _ in below), sum(w for _, w in below)
        if len(below) == 2 and not getattr(plan, "keys", ()):
            pairs = below[0][0] * below[1][0]
            return (pairs, work + pairs) if isinstance(plan, Join) else (rows, work + rows)
        return rows, work + rows


def _recurses(plan: Plan) -> bool:
    """Whether a plan has a recursion, whose rounds nobody knows before; the engine decides."""
    return any(isinstance(node, Fixpoint) for node in walk_plan(plan))


def rows_per_second() -> float:
    """Return how many rows of a join this process evaluates in a second."""
    schema = Schema.of(("a", DataType.INTEGER), ("b", DataType.TEXT))
    rows: list[Row] = [(n, f"r{n}") for n in range(_SAMPLE)]
    scans = [Scan(name, SourceKind.TABLE, schema) for name in ("left", "right")]
    database = Database()
    for scan in scans:
        database.append(scan.source, [SourceEvent(row, 0) for row in rows])
    began = time.perf_counter()
    evaluate(Join(scans[0], scans[1], JoinKind.INNER, ((0, 0),)), database, 0)
    return 2 * _SAMPLE / max(time.perf_counter() - began, 1e-6)
