"""Evaluation in this process, without Spark: the reference evaluator over the same tables."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from static_engine.evaluation.bags import Bag
from static_engine.evaluation.static_executor import EvaluationError, check_size, refuse_streams
from static_engine.history.past_readings import PastReadings
from static_engine.sources.values.conversion import rows_in
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import (
    Plan,
    Project,
    RemoteSource,
    Scan,
    ScanPart,
    SourceKind,
    transform_up,
    walk_plan,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.history.past_plans import kept_scans, with_kept_rows
from streamsql.reference import Database, evaluate

MOST_PAST_ROWS = 2_000_000
"""Rows of the past that one plan may read in this process; they are Python objects."""


class LocalExecutor:
    """Evaluates by the definition of the language; enough for tables that fit memory.

    Args:
        store: The tables.
        past: What is kept of the past; None: nothing.
        max_result_rows: Most rows a plan may produce.
        max_past_rows: Most rows of the past a plan may read.
    """

    description = "without Spark: this process evaluates static tables"

    def __init__(
        self,
        store: TableStore,
        past: PastReadings | None = None,
        *,
        max_result_rows: int = 1_000_000,
        max_past_rows: int = MOST_PAST_ROWS,
    ) -> None:
        self._store = store
        self._past = past or PastReadings(None)
        self._max_past_rows = max_past_rows
        self._max_result_rows = max_result_rows
        self._events: dict[str, tuple[int, list[SourceEvent]]] = {}

    @property
    def is_gone(self) -> bool:
        """Never: it is this process."""
        return False

    def evaluate(self, plan: Plan) -> Delta:
        """See `StaticExecutor.evaluate`."""
        plan, past = self._read_past(with_kept_rows(plan))
        self._events = {n: e for n, e in self._events.items() if self._store.find(n) is not None}
        database = Database()
        read: set[str] = set()
        for node in walk_plan(plan):
            if isinstance(node, Scan) and node.source not in read:
                read.add(node.source)
                database.append(node.source, self._events_of(node))
        result = evaluate(plan, database, 0, past)
        check_size(sum(result.values()), self._max_result_rows)
        return result

    def collect(self, plan: Plan) -> Bag:
        """See `StaticExecutor.collect`."""
        chosen = _chosen_columns(plan)
        if chosen is not None:  # columns of a table need no Python objects
            data = self._data_of(chosen[0])
            check_size(data.num_rows, self._max_result_rows)
            columns = [pa.nulls(len(data)) if at is None else data.column(at) for at in chosen[1]]
            return Bag.of_table(plan.schema, pa.table(columns, plan.schema.names))
        try:
            return Bag.of_rows(plan.schema, self.evaluate(plan))
        except ValueError as error:
            raise EvaluationError(
                f"a value of the stored part of the query does not fit its type: {error}",
                hint="choose another type for it with CAST",
            ) from error

    def batches(self, plan: Plan, scratch: Path) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """See `StaticExecutor.batches`."""
        return self.collect(plan).batches()

    def cancel(self, plan: Plan) -> None:
        """Do nothing: nothing ends Python's loops from outside, and the tables fit memory."""

    def stop(self) -> None:
        """Discard the rows."""
        self._events.clear()

    def _read_past(self, plan: Plan) -> tuple[Plan, dict[str, list[Row]]]:
        """Return a plan whose scans of the past are named relations, and their rows."""
        refuse_streams(plan)
        names = {scan: f"past {number}" for number, scan in enumerate(kept_scans(plan))}
        left = self._max_past_rows
        relations: dict[str, list[Row]] = {}
        for scan, name in names.items():
            rows = relations[name] = []
            for batch in self._past.batches(scan):
                left -= batch.num_rows
                if left < 0:
                    raise EvaluationError(
                        f"this process reads at most {self._max_past_rows} rows of the past for "
                        "one query",
                        hint="ask for a shorter time, or run the static engine with Spark",
                    )
                rows.extend(rows_in(batch))

        def named(node: Plan) -> Plan:
            if isinstance(node, Scan) and node in names:
                return RemoteSource(names[node], node.schema)
            return node

        return transform_up(plan, named), relations

    def _events_of(self, scan: Scan) -> list[SourceEvent]:
        version = self._store.table(scan).version
        known = self._events.get(scan.source)
        if known is None or known[0] != version:
            known = (version, [SourceEvent(row, ts=0) for row in rows_in(self._data_of(scan))])
            self._events[scan.source] = known
        return known[1]

    def _data_of(self, scan: Scan) -> pa.Table:
        data = self._store.table(scan).data
        if data is None:
            raise ValueError(f"table {scan.source} is not in memory")
        return data


def _chosen_columns(plan: Plan) -> tuple[Scan, tuple[int | None, ...]] | None:
    """Return the table of which a plan only chooses columns, and these; None: NULL in each row."""
    match plan:
        case Scan(kind=SourceKind.TABLE, part=ScanPart.ROWS, history=None, ttl=None, lateness=None):
            return plan, tuple(range(len(plan.columns)))
        case Project(expressions=[_, *_]):
            below = _chosen_columns(plan.input)
            if below is None or not all(map(_is_chosen, plan.expressions)):
                return None
            places = (getattr(expression, "position", None) for expression in plan.expressions)
            return below[0], tuple(None if at is None else below[1][at] for at in places)
        case _:
            return None


def _is_chosen(expression: Expression) -> bool:
    """An expression is a column, or NULL."""
    return isinstance(expression, Column) or (
        isinstance(expression, Literal) and expression.value is None
    )
