"""Evaluation in this process, without Spark: the reference evaluator over the same tables."""

from static_engine.evaluation.static_executor import EvaluationError, check_size, refuse_streams
from static_engine.history.past_readings import PastReadings
from static_engine.sources.conversion import rows_in
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan, RemoteSource, Scan, transform_up, walk_plan
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
        table = self._store.table(scan)
        known = self._events.get(scan.source)
        if known is None or known[0] != table.version:
            if table.data is None:
                raise ValueError(f"table {scan.source} is not in memory")
            known = (table.version, [SourceEvent(row, ts=0) for row in rows_in(table.data)])
            self._events[scan.source] = known
        return known[1]
