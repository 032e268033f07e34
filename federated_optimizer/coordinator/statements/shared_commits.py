"""Commits of pending writes by one thread at a time: what comes meanwhile shares the next one."""

import asyncio

from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.pending_writes import PendingWrite


class SharedCommits:
    """Lets statements wait on the event loop until the catalog has what they have written.

    A thread for each would wait for the others' commits.

    State: the commit that is being made.
    """

    def __init__(self, store: CatalogStore) -> None:
        self._store = store
        self._making: asyncio.Future[None] | None = None

    async def ensure(self, pending: PendingWrite) -> None:
        """Return once a pending write is committed.

        Raises:
            DeploymentError: It is not, and will not be.
        """
        while not pending.is_done:
            making, is_ours = self._making, False
            if making is None or making.done():
                loop, is_ours = asyncio.get_running_loop(), True
                making = self._making = loop.run_in_executor(None, self._store.ensure, pending)
            await asyncio.wait([making])  # whoever is cancelled meanwhile cancels no commit
            if is_ours:
                making.result()
        pending.check()
