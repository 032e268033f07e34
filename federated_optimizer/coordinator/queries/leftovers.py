"""Fragments and definitions that an earlier coordinator has left on the broker."""

import asyncio
import logging

from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sites.flows import sites_of
from host.mqtt import MessagingError

log = logging.getLogger(__name__)

SWEEP_SECONDS = 3.0


class Leftovers:
    """Finds and withdraws retained fragments of queries that do not run."""

    def __init__(self, shared: SharedParts, queries: Queries) -> None:
        self._shared = shared
        self._queries = queries
        self._sweeping = False
        self._asked = False

    def found(self, run: str, site: str) -> None:
        """Withdraw a retained fragment if no query reads what that site runs."""
        readers = self._queries.runs.readers(run)
        if not any(site in sites_of(query.bundle) for query in readers):
            self._shared.deployment.withdraw_from(run, site)

    async def sweep(self) -> None:
        """Read the retained fragments and declared sources for a while; each is looked at.

        Called meanwhile, because the broker was away, it begins once more.
        """
        self._asked = True
        if self._sweeping:
            return
        self._sweeping = True
        filters = (self._shared.topics.fragment(), self._shared.topics.source())
        try:
            while self._asked:
                self._asked = False
                await self._shared.client.subscribe(*filters)
                await asyncio.sleep(SWEEP_SECONDS)
                await self._shared.client.unsubscribe(*filters)
        except MessagingError as error:
            log.warning("cannot look for old fragments: %s", error.message)
        finally:
            self._sweeping = False
