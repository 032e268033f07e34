"""The rows of `sys_queries`, kept by changes: of most queries a look compares four values."""

from collections.abc import Callable, Iterable

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.system.changing_tables import ChangedRows, ChangingTable
from streamsql.data.delta import Delta
from streamsql.data.types import Row

_Standing = tuple[QueryStatus, int, int, str]


class QueryTable(ChangingTable):
    """`sys_queries`.

    Args:
        queries: Returns the queries that are listed, oldest first.

    State: its rows, and of each query what may be otherwise the next time.
    """

    def __init__(self, queries: Callable[[], Iterable[RunningQuery]]) -> None:
        self._queries = queries
        self._rows = ChangedRows()
        self._known: dict[str, _Standing] = {}

    def __call__(self) -> tuple[Row, ...]:
        """Return its rows."""
        self.look()
        return self._rows.all()

    def look(self) -> int:
        """Take up what has happened."""
        before, self._known = self._known, {}
        for q in self._queries():
            stands = (q.status, q.result.answer.rows, q.bundle.version, q.bundle.query)
            self._known[q.id] = stands
            if before.pop(q.id, None) != stands:
                self._rows.put(q.id, _row(q))
        for gone in before:
            self._rows.put(gone, None)
        return self._rows.version

    def since(self, version: int) -> Delta | None:
        """Return what has changed since a version."""
        return self._rows.since(version)


def _row(q: RunningQuery) -> Row:
    stands = (str(q.status), str(q.origin), q.bundle.version, q.created, q.result.answer.rows)
    return (q.id, q.name, *stands, q.text, q.run)
