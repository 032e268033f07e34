"""Plans are made again when what they rest on has changed: sites, sources, definitions."""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.network.run_ages import age_of
from federated_optimizer.network.shareable import fingerprint
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
        redeploy: Callable[[Mapping[str, Planned], str | None], Awaitable[None]],
    ) -> None:
        self._shared = shared
        self._planner = planner
        self._queries = queries
        self._redeploy = redeploy
        self._seconds = shared.settings.regroup
        self.due: int | None = None
        self._planned_for: object = None

    def look(self) -> None:
        """Plan again soon if sites or definitions are others than when it was done last.

        All of it, even if they are the same again by then: a query may have begun between.
        """
        if self._inputs() != self._planned_for:
            self._queries.has_old_plans = True
        if self.due is None and (self._queries.late_runs or self._queries.has_old_plans):
            self.soon(self._seconds)

    def look_after(self, statement: Statement) -> None:
        """Plan again what a statement may have changed: at once if it replaced a source."""
        match statement:
            case AlterSource() | CreateSource(replace=True):
                self.soon(0)  # until then the source's readers do without its new rows
            case _:
                self.look()

    def soon(self, seconds: float | None = None) -> None:
        """Plan again, after so many seconds, what `look` has found to be old by then."""
        wait = self._seconds if seconds is None else seconds
        now = monotonic_clock()
        self.due = now + int(wait * 1_000_000)
        if self._queries.planning_since is None:
            self._queries.planning_since = now

    async def work(self) -> None:
        """Plan again if it is time to.

        Raises:
            FederationError: A plan cannot be stored or deployed; it is tried again later.
        """
        await self._after_widening()
        if self.due is None or monotonic_clock() < self.due:
            return
        self.soon(RETRY_SECONDS)  # if it fails half way
        retry = self.due
        # Others change queries and definitions meanwhile: `look` sees that afterwards.
        inputs, runs = self._inputs(), self._queries.runs
        whole = self._queries.has_old_plans or inputs != self._planned_for
        self._planned_for = inputs
        self._queries.has_old_plans = False
        late, self._queries.late_runs = self._queries.late_runs, set()
        # Where hundreds of queries begin while plans are made again, only these are late: all plans
        # would be made again and again.
        resting = {other for run in late & {*runs.all()} for other in runs.resting_on(run)}
        try:
            await self._plan_again(runs.all() if whole else sorted(resting, key=age_of))
        except BaseException:
            self._queries.has_old_plans |= whole
            self._queries.late_runs |= late
            raise
        if self.due == retry:
            self.due = self._queries.planning_since = None
        self.look()  # what has changed meanwhile

    async def _after_widening(self) -> None:
        """Plan again what reads nodes that have got more columns, and what reads that."""
        widened, runs = dict(self._queries.widened), self._queries.runs
        if widened:
            resting = {run for node in widened for run in runs.resting_on(node) - {node}}
            await self._plan_again(sorted(resting, key=age_of))
            for node, version in widened.items():
                if self._queries.widened.get(node) == version:  # else it was widened again
                    del self._queries.widened[node]

    async def _plan_again(self, runs: Sequence[str]) -> None:
        """Plan runs again, each after what it reads."""
        for part in self._parts_of_work(runs):
            ids = [query.id for run in part for query in self._queries.runs.live(run)]
            plans = await self._plans(ids)
            async with self._shared.changing():
                for run in part:
                    await self._take(run, frozenset(ids), plans)

    def _parts_of_work(self, runs: Sequence[str]) -> Iterator[list[str]]:
        """Yield the runs in parts of about as many queries as are planned at once."""
        part: list[str] = []
        count = 0
        for run in runs:
            part.append(run)
            count += len(self._queries.runs.live(run))
            if count >= AT_ONCE:
                yield part
                part, count = [], 0
        if part:
            yield part

    async def _take(
        self, run: str, planned: Collection[str], plans: Mapping[str, Planned | FederationError]
    ) -> None:
        """Let the queries of a run go on with their new plans.

        Those that still compute the same stay together, and the run is redeployed once. Others
        leave it: a view that one of them reads may have changed.
        """
        groups: dict[str, dict[str, Planned]] = {}
        stay: list[RunningQuery] = []
        readers = [q for q in self._queries.runs.live(run) if q.id in self._queries]
        node = self._queries.nodes.of(run)
        for query in readers:
            if query is node and len(readers) > 1:
                continue  # it goes along with the queries of its run
            found = plans.get(query.id)
            if query.outdated:
                query.outdated = ""
                self._queries.runs.note(query.run)
            if query.id not in planned:
                self._queries.late_runs.add(run)  # it has joined the run meanwhile
                stay.append(query)
            elif isinstance(found, FederationError):
                # It keeps running as it is: stopping it would take away what still works.
                query.outdated = found.message
                self._queries.runs.note(query.run)  # nobody builds on it
                log.warning("query %s cannot be replanned: %s", query.id, found.message)
                stay.append(query)
            elif found is None or found.bundle.version != query.bundle.version + 1:
                stay.append(query)
            else:
                log.info("query %s is replanned, version %d", query.id, found.bundle.version)
                alone = f"{query.id} alone"
                groups.setdefault(alone if found.alone else fingerprint(found.bundle), {})[
                    query.id
                ] = found
        going_on = None if stay else self._going_on(run, groups)
        for name, group in groups.items():
            if name != going_on:
                await self._redeploy(group, None)
        if going_on is not None:  # last: nobody else reads the run by now
            await self._redeploy(groups[going_on], run)
        if not groups:
            await self._merge(run, stay)

    def _going_on(self, run: str, groups: Mapping[str, Mapping[str, Planned]]) -> str | None:
        """Return the group that keeps the run: the first whose plan no other run computes."""
        node = self._queries.nodes.of(run)
        for name, group in groups.items():
            alike = self._queries.runs.alike(next(iter(group.values())))
            if alike is None or alike.run == run or (node is not None and node.id in group):
                return name
        return None

    async def _merge(self, run: str, queries: Sequence[RunningQuery]) -> None:
        """Let the queries of a run read an older one that computes the same, if there is one."""
        plans = {
            query.id: planned_of(query)
            for query in queries
            if not (query.alone or query.has_failed or query.origin == Origin.NODE)
        }
        if not plans:
            return
        older = self._queries.runs.alike(next(iter(plans.values())))
        if older is not None and older.run != run:
            log.info("%s reads from now on what run %s computes", ", ".join(plans), older.run)
            await self._redeploy(plans, None)

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
