"""Plans are made again when what they rest on has changed: sites, sources, definitions."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from federated_optimizer.coordinator.elapsed import elapsed
from federated_optimizer.coordinator.planner import Planned, Planner
from federated_optimizer.coordinator.queries import Queries
from federated_optimizer.coordinator.running import RunningQuery
from streamsql.catalog.catalog import Catalog

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0


class Replanning:
    """Redeploys the queries that are planned otherwise with the sites there are now.

    Soon and not at once: other gateways may be about to announce themselves.

    Args:
        planner: Knows the sites.
        catalog: All definitions.
        queries: Those that run.
        redeploy: Stores and deploys another plan of one.
        lock: Held by whoever changes queries.
        seconds: How long to wait for more gateways.

    Attributes:
        due: When plans are made again, by the elapsed clock; None: nothing has changed.
    """

    def __init__(  # noqa: PLR0913 - what plans rest on, and what is done about it
        self,
        planner: Planner,
        catalog: Catalog,
        queries: Queries,
        *,
        redeploy: Callable[[RunningQuery, Planned], Awaitable[None]],
        lock: asyncio.Lock,
        seconds: float,
    ) -> None:
        self._planner = planner
        self._catalog = catalog
        self._queries = queries
        self._redeploy = redeploy
        self._lock = lock
        self._seconds = seconds
        self.due: int | None = None
        self._planned_for: object = None

    def look(self) -> None:
        """Plan again soon if sites or definitions are others than when it was done last."""
        if self.due is None and self._inputs() != self._planned_for:
            self.soon(self._seconds)

    def soon(self, seconds: float | None = None) -> None:
        """Plan again whatever has changed."""
        wait = self._seconds if seconds is None else seconds
        self.due = elapsed() + int(wait * 1_000_000)

    async def work(self) -> None:
        """Plan again if it is time to.

        Raises:
            FederationError: A plan cannot be stored or deployed; it is tried again later.
        """
        if self.due is None or elapsed() < self.due:
            return
        self.soon(RETRY_SECONDS)  # if it fails half way
        async with self._lock:
            self._planned_for = self._inputs()
            for query, planned in self._queries.changed_plans():
                log.info("query %s is placed anew, version %d", query.id, planned.bundle.version)
                await self._redeploy(query, planned)
        self.due = None
        self.look()  # what has changed meanwhile

    def _inputs(self) -> object:
        """Return all that plans depend on beside their text."""
        return (self._planner.topology(), tuple(self._catalog))
