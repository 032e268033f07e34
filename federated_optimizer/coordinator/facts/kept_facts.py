"""Facts are saved in the catalog, seldom: they are measured again if the last ones are lost."""

import asyncio
import logging

from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.stored_facts import store_facts
from federated_optimizer.statistics.fact_store import Facts
from host.clocks import monotonic_clock
from streamsql.data.types import MICROSECONDS
from streamsql.errors import FederationError

log = logging.getLogger(__name__)

SAVE_MICROSECONDS = 60 * MICROSECONDS
MOST_AT_ONCE = 5_000
"""Facts in one transaction; the rest follows with the next one."""


class KeptFacts:
    """Saves what has changed, once a minute and at the end."""

    def __init__(self, store: CatalogStore, facts: Facts) -> None:
        self._store, self._facts = store, facts
        self._due = monotonic_clock() + SAVE_MICROSECONDS

    async def keep(self) -> None:
        """Save if it is time.

        Raises:
            DeploymentError: The catalog cannot be written; it is tried again a minute later.
        """
        if monotonic_clock() < self._due:
            return
        self._due = monotonic_clock() + SAVE_MICROSECONDS
        await self._save()

    async def end(self) -> None:
        """Save for the last time."""
        try:
            await self._save()
        except FederationError as error:
            log.warning("the last facts are not saved: %s", error.message)

    async def _save(self) -> None:
        changes = self._facts.unsaved()
        keys = list(changes)
        for begin in range(0, len(keys), MOST_AT_ONCE):
            part = {key: changes[key] for key in keys[begin : begin + MOST_AT_ONCE]}
            await asyncio.to_thread(store_facts, self._store, part)
            self._facts.saved(part)
