"""Fragments that an earlier incarnation of the coordinator has left on the broker."""

import asyncio
import logging

from federated_optimizer.coordinator.coordinator_core import Core
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.sites.flows import sites_of
from host.mqtt import MessagingError

log = logging.getLogger(__name__)

SWEEP_SECONDS = 3.0


class Leftovers:
    """Finds and withdraws retained fragments of queries that do not run."""

    def __init__(self, core: Core, queries: Queries) -> None:
        self._core = core
        self._queries = queries
        self._sweeping = False
        self._asked = False

    def found(self, query_id: str, site: str) -> None:
        """Withdraw a retained fragment if it is of no query that runs at that site."""
        query = self._queries.find(query_id)
        if query is None or query.id != query_id or site not in sites_of(query.bundle):
            self._core.deployment.withdraw_from(query_id, site)

    async def sweep(self) -> None:
        """Read the retained fragments for a while; `found` hears of each.

        Called meanwhile, because the broker was away, it begins once more.
        """
        self._asked = True
        if self._sweeping:
            return
        self._sweeping = True
        try:
            while self._asked:
                self._asked = False
                await self._core.client.subscribe(self._core.topics.fragment())
                await asyncio.sleep(SWEEP_SECONDS)
                await self._core.client.unsubscribe(self._core.topics.fragment())
        except MessagingError as error:
            log.warning("cannot look for old fragments: %s", error.message)
        finally:
            self._sweeping = False
