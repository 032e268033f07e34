"""Runs read what other runs have at their sites, also when that has changed."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush

from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.network.run_ages import age_of
from host.clocks import monotonic_clock
from streamsql.wire.fragments import Engine, Feed, FragmentBundle

LONGEST_PLANNING = 10_000_000
"""Microseconds for which runs keep what they read while plans are made again."""


class Feeding:
    """Redeploys runs whose feeds are others by now.

    State: the versions of runs for which plans were to be made again. Which runs are to be looked
    at the runs themselves know.

    Args:
        shared: Parts of the coordinator.
        queries: All queries, with their runs.
        redeploy: Lets queries read another bundle, under the name of their run or of another one.
    """

    def __init__(
        self,
        shared: SharedParts,
        queries: Queries,
        redeploy: Callable[[Mapping[str, Planned], str | None], Awaitable[None]],
    ) -> None:
        self._shared = shared
        self._queries = queries
        self._redeploy = redeploy
        self._copies: dict[str, int] = {}

    async def feed_again(self) -> None:
        """Let runs read what other runs have at their sites, where that has changed.

        A run that others read may have ended, failed, or gone on with another plan. Instead of one
        that would begin anew, an older one that computes the same is read, if there is one.
        """
        runs = self._queries.runs
        waits = [run for run in runs.doubtful.take() if runs.fed_otherwise(run)]
        runs.doubtful.add(waits)
        self._plan_copies_again(waits)
        are_old = self._plans_are_old()
        if are_old:
            # What a run reads is planned first, and then the run over that.
            waits = [run for run in waits if not runs.reads_results(run)]
        if not waits:
            return
        async with self._shared.changing():
            await self._feed(waits, others=not are_old)

    async def _feed(self, waits: Iterable[str], *, others: bool) -> None:
        """Redeploy runs that are fed otherwise, the oldest first: nobody reads a newer one.

        Args:
            waits: Runs to be looked at.
            others: Whether to go on with those that read a run that was redeployed.
        """
        runs = self._queries.runs
        waiting = [(age_of(run), run) for run in waits]
        heapify(waiting)
        looked: set[str] = set()
        again: set[str] = set()
        try:
            while waiting:
                _, run = heappop(waiting)
                found = {} if run in looked else runs.fed_otherwise(run)
                looked.add(run)
                if not found:
                    continue
                again.add(run)  # until it is seen that it is fed as it has to be
                stays = runs.older_equal(run) is None or self._queries.nodes.of(run)
                await self._redeploy(found, run if stays else None)
                for other in runs.doubtful.take() if others else ():
                    if other in looked:
                        again.add(other)
                    else:
                        heappush(waiting, (age_of(other), other))
        finally:
            runs.doubtful.add([*again, *(run for _, run in waiting)])

    def _plan_copies_again(self, waits: Iterable[str]) -> None:
        """Have plans made again before a run computes by itself what it has read of a result.

        Its copy of that computation is as the other run was planned once, perhaps for other sites.
        This is done once for each version: a run that cannot be planned goes on with its copy.
        """
        runs, lost = self._queries.runs, dict[str, int]()
        for run in waits:
            leader = runs.leader(run)
            if leader is not None and loses_results(
                leader.bundle, runs.feeds_of(leader.bundle, run)
            ):
                lost[run] = leader.bundle.version
        # The others are planned as ever: where queries come all the time, some of them always read
        # what gets another plan just then.
        self._queries.late_runs.update(
            run for run, version in lost.items() if self._copies.get(run) != version
        )
        self._copies = lost

    def _plans_are_old(self) -> bool:
        """Return whether runs are about to be planned again, but not for ever."""
        since, is_old = self._queries.planning_since, self._queries.has_old_plans
        if self._queries.widened or (since is None and (is_old or self._queries.late_runs)):
            return True
        return since is not None and monotonic_clock() - since < LONGEST_PLANNING


def loses_results(bundle: FragmentBundle, feeds: Iterable[Feed]) -> bool:
    """Return whether a bundle reads results of other runs that it would not with these feeds."""
    left = {feed.fragment for feed in feeds}
    lost = (feed.fragment for feed in bundle.feeds if feed.fragment not in left)
    return any(bundle.fragment(name).engine == Engine.BASE for name in lost)
