"""Queries of the map's readers: one per text, gone with its last reader."""

import asyncio

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import (
    Origin,
    QueryInfo,
    QueryStatus,
)
from streamsql.errors import InternalError

MAX_REMEMBERED = 500


class SessionQueries:
    """Starts session queries, or finds the one with the same text that still runs."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._lock = asyncio.Lock()

    async def start(self, text: str, coordinator: CoordinatorApi) -> QueryInfo:
        """Return the running query of a text.

        Args:
            text: The query.
            coordinator: As whoever is to read it may use it.

        Raises:
            FederationError: It cannot be started, or may not be read.
        """
        async with self._lock:
            running = self._running(text, coordinator)
            if running is not None:
                return running
            results = await coordinator.execute(text, origin=Origin.SESSION)
            query = results[-1].query if results else None
            if query is None:
                raise InternalError("a directions query started no query")
            while len(self._ids) >= MAX_REMEMBERED:
                del self._ids[next(iter(self._ids))]
            self._ids[text] = query.id
            return query

    def _running(self, text: str, coordinator: CoordinatorApi) -> QueryInfo | None:
        known = self._ids.get(text)
        if known is None:
            return None
        try:
            query = coordinator.keep(known)
        except KeyError:
            del self._ids[text]
            return None
        return None if query.status in (QueryStatus.FAILED, QueryStatus.STOPPED) else query
