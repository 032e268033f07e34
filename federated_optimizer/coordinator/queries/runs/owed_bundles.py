"""Bundles that sites are to be given once more, after the broker was away."""

from collections.abc import Callable

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.sites.deployment import Deployment
from federated_optimizer.coordinator.sites.flows import sites_of


class OwedBundles:
    """Publishes bundles as far as the message queue has room for them.

    Args:
        deployment: Publishes.
        runs: All that sites run.
        request_result: Asks a site for what it has sent of a query's result.
    """

    def __init__(
        self,
        deployment: Deployment,
        runs: SharedRuns,
        request_result: Callable[[RunningQuery, str], None],
    ) -> None:
        self._deployment = deployment
        self._runs = runs
        self._request_result = request_result
        self._owed: dict[str, None] = {}

    @property
    def is_owed(self) -> bool:
        """Whether sites have yet to be given some."""
        return bool(self._owed)

    def owe_all(self) -> None:
        """Owe the sites every bundle, and ask for every result."""
        self._owed = dict.fromkeys(self._runs.all())

    def publish(self) -> None:
        """Publish what is owed.

        Raises:
            MessagingError: The queue is full; call again when it has drained.
        """
        while self._owed:
            run = next(iter(self._owed))
            # One whose queries were all stopped by us stays stopped.
            query = self._runs.leader(run)
            if query is not None:
                self._deployment.publish(query.bundle)
                for site in query.bundle.result_sites:
                    self._request_result(query, site)
            del self._owed[run]
            if not self._owed:
                queries = [q for name in self._runs.all() for q in self._runs.readers(name)]
                for site in sorted({site for q in queries for site in sites_of(q.bundle)}):
                    self._deployment.request_flow(site)
