"""Statuses of running queries: when results are released, and what readers are told of them."""

from collections.abc import Callable

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.shared_runs import SharedRuns
from host.clocks import monotonic_clock
from streamsql.errors import FederationError, RecursionRoundsError


class StatusRefresh:
    """Looks at queries after something happened to a site or time has passed.

    Args:
        fail: Stops a query for a reason of ours.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        runs: SharedRuns,
        fail: Callable[[RunningQuery, FederationError], None],
    ) -> None:
        self._settings = settings
        self._runs = runs
        self._fail = fail

    def all(self) -> None:
        """Refresh every query."""
        for query in self._runs.everyone():
            self.of(query)

    def of(self, query: RunningQuery) -> None:
        """Release a held result when it is time, and tell readers about a new status."""
        result = query.result
        if result.held and self._may_release(query):
            result.release(is_partial=not query.has_arrived())
        elif result.is_partial and query.has_arrived():
            result.is_partial = False
        self._check_rounds(query)
        status = query.current_status()
        if status != query.status:
            query.status = status
            query.result.announce(status, query.error)
        if query.result.wants_progress and query.is_settled():
            query.result.tell_progress()

    def _may_release(self, query: RunningQuery) -> bool:
        waited = monotonic_clock() - query.result.held_since >= self._settings.switch * 1_000_000
        return query.result.is_synchronised and (waited or query.has_arrived())

    def _check_rounds(self, query: RunningQuery) -> None:
        """Stop a query whose settled answer needs more rounds than it allows.

        Before it is settled, base rows or derivations that are on their way may need fewer.
        """
        beyond = next(query.flows.beyond_rounds(), None)
        if beyond is None or self._settings.host in query.problems:
            return
        if query.is_settled():
            self._fail(query, RecursionRoundsError.of(beyond.name, beyond.allowed))
