"""Plans are made again when what they rest on has changed: sites, sources, definitions."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from federated_optimizer.coordinator.queries.planner import Planned, Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from host.clocks import monotonic_clock
from streamsql.errors import FederationError
from streamsql.syntax.statements import AlterSource, CreateSource, Statement

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
AT_ONCE = 16
"""Queries that are planned within the time of one statement."""


class Replanning:
    """Redeploys the queries that are planned otherwise with the sites there are now.

    Soon and not at once: other gateways may be about to announce themselves.

    Attributes:
        due: When plans are made again, by `monotonic_clock`; None: nothing has changed.
    """

    def __init__(
        self,
        shared: SharedParts,
        planner: Planner,
        queries: Queries,
        redeploy: Callable[[RunningQuery, Planned], Awaitable[None]],
    ) -> None:
        self._shared = shared
        self._planner = planner
        self._queries = queries
        self._redeploy = redeploy
        self._seconds = shared.settings.regroup
        self.due: int | None = None
        self._planned_for: object = None

    def look(self) -> None:
        """Plan again soon if sites or definitions are others than when it was done last."""
        if self.due is not None:
            return
        if self._queries.has_old_plans or self._inputs() != self._planned_for:
            self.soon(self._seconds)

    def look_after(self, statement: Statement) -> None:
        """Plan again what a statement may have changed: at once if it replaced a source."""
        match statement:
            case AlterSource() | CreateSource(replace=True):
                self.soon(0)  # until then the source's readers do without its new rows
            case _:
                self.look()

    def soon(self, seconds: float | None = None) -> None:
        """Plan again whatever has changed."""
        wait = self._seconds if seconds is None else seconds
        self.due = monotonic_clock() + int(wait * 1_000_000)

    async def work(self) -> None:
        """Plan again if it is time to.

        Raises:
            FederationError: A plan cannot be stored or deployed; it is tried again later.
        """
        if self.due is None or monotonic_clock() < self.due:
            return
        self.soon(RETRY_SECONDS)  # if it fails half way
        retry = self.due
        # Others change queries and definitions meanwhile: `look` sees that afterwards.
        self._planned_for = self._inputs()
        self._queries.has_old_plans = False
        ids = [query.id for query in self._queries.all()]
        for first in range(0, len(ids), AT_ONCE):
            plans = await self._plans(ids[first : first + AT_ONCE])
            async with self._shared.lock:
                await self._take(ids[first : first + AT_ONCE], plans)
        if self.due == retry:
            self.due = None
        self.look()  # what has changed meanwhile

    async def _take(
        self, ids: Sequence[str], plans: Mapping[str, Planned | FederationError]
    ) -> None:
        for query_id in ids:
            query = self._queries.find(query_id)
            if query is None:
                continue
            planned = plans.get(query_id)
            query.outdated = ""
            if isinstance(planned, FederationError):
                # It keeps running as it is: stopping it would take away what still works.
                query.outdated = planned.message
                log.warning("query %s cannot be replanned: %s", query.id, planned.message)
            elif planned is not None and planned.bundle.version == query.bundle.version + 1:
                log.info("query %s is replanned, version %d", query.id, planned.bundle.version)
                await self._redeploy(query, planned)

    async def _plans(self, ids: Sequence[str]) -> dict[str, Planned | FederationError]:
        """Return what is to be changed; a query that takes too long keeps no other from it."""
        work = partial(self._queries.changed_plans, ids)
        try:
            return await self._shared.beside.run(work, "replanning")
        except FederationError as error:
            if error.code != "statement_limit":
                raise
            if len(ids) == 1:
                return {ids[0]: error}
        half = len(ids) // 2
        return await self._plans(ids[:half]) | await self._plans(ids[half:])

    def _inputs(self) -> object:
        """Return all that plans depend on but their text."""
        return (self._planner.topology(), tuple(self._shared.catalog))
