"""The running queries by id, name, origin and display: none of these questions goes through all."""

from collections.abc import Collection

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.running_queries import RunningQuery


class KnownQueries:
    """Index of the queries that run or are listed, oldest first.

    Names, origins and displays of queries never change.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, RunningQuery] = {}
        self._by_name: dict[str, dict[str, RunningQuery]] = {}
        self._by_origin: dict[Origin, dict[str, RunningQuery]] = {}
        self._displayed: dict[str, RunningQuery] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, query_id: str) -> RunningQuery | None:
        """Return a query by its id."""
        return self._by_id.get(query_id)

    def named(self, name: str) -> RunningQuery | None:
        """Return the oldest query of a name."""
        return next(iter(self._by_name.get(name, {}).values()), None)

    def of(self, origin: Origin | None = None) -> Collection[RunningQuery]:
        """Return the queries of an origin, or all, as they are now and later."""
        known = self._by_id if origin is None else self._by_origin.get(origin, {})
        return known.values()

    def displayed(self, origin: Origin | None = None) -> tuple[RunningQuery, ...]:
        """Return the queries whose answers are shown on displays, newest last."""
        return tuple(q for q in self._displayed.values() if origin in (None, q.origin))

    def add(self, query: RunningQuery) -> None:
        """Note a query that begins."""
        self._by_id[query.id] = query
        self._by_name.setdefault(query.name, {})[query.id] = query
        self._by_origin.setdefault(query.origin, {})[query.id] = query
        if query.presentation.display:
            self._displayed[query.id] = query

    def discard(self, query: RunningQuery) -> None:
        """Let go a query that has ended; nothing happens when it is not there."""
        if self._by_id.pop(query.id, None) is None:
            return
        del self._by_origin[query.origin][query.id]
        self._displayed.pop(query.id, None)
        named = self._by_name[query.name]
        del named[query.id]
        if not named:
            del self._by_name[query.name]
