"""Evaluation in this process, without Spark: the reference evaluator over the same tables."""

from static_engine.evaluation.static_executor import check_size, refuse_streams
from static_engine.sources.conversion import rows_in
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan, Scan, walk_plan
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate


class LocalExecutor:
    """Evaluates by the definition of the language; enough for tables that fit memory.

    Args:
        store: The tables.
        max_result_rows: Most rows a plan may produce.
    """

    description = "without Spark: this process evaluates static tables"

    def __init__(self, store: TableStore, *, max_result_rows: int = 1_000_000) -> None:
        self._store = store
        self._max_result_rows = max_result_rows
        self._events: dict[str, tuple[int, list[SourceEvent]]] = {}

    def evaluate(self, plan: Plan) -> Delta:
        """See `StaticExecutor.evaluate`."""
        refuse_streams(plan)
        database = Database()
        read: set[str] = set()
        for node in walk_plan(plan):
            if isinstance(node, Scan) and node.source not in read:
                read.add(node.source)
                database.append(node.source, self._events_of(node))
        result = evaluate(plan, database, 0)
        check_size(sum(result.values()), self._max_result_rows)
        return result

    def stop(self) -> None:
        """Discard the rows."""
        self._events.clear()

    def _events_of(self, scan: Scan) -> list[SourceEvent]:
        table = self._store.table(scan)
        known = self._events.get(scan.source)
        if known is None or known[0] != table.version:
            if table.data is None:
                raise ValueError(f"table {scan.source} is not in memory")
            known = (table.version, [SourceEvent(row, ts=0) for row in rows_in(table.data)])
            self._events[scan.source] = known
        return known[1]
