"""Runs read what other runs have at their sites, also when that has changed."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.shared_parts import SharedParts
from host.clocks import monotonic_clock
from streamsql.wire.fragments import Engine, Feed, FragmentBundle

LONGEST_PLANNING = 10_000_000
"""Microseconds for which runs keep what they read while plans are made again."""


class Feeding:
    """Redeploys runs whose feeds are others by now.

    State: up to which change of the runs all of them read what they have to; the versions of runs
    for which plans were to be made again.

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
        self._fed = -1
        self._copies: dict[str, int] = {}

    async def feed_again(self) -> None:
        """Let runs read what other runs have at their sites, where that has changed.

        A run that others read may have ended, failed, or gone on with another plan. Instead of one
        that would begin anew, an older one that computes the same is read, if there is one.
        """
        runs = self._queries.runs
        changes = runs.changes
        if changes == self._fed:
            return
        waits = [run for run in runs.all() if runs.fed_otherwise(run)]
        self._plan_copies_again(waits)
        only: Sequence[str] = runs.all()
        if self._plans_are_old():
            # What a run reads is planned first, and then the run over that.
            only = waits = [run for run in waits if not runs.reads_results(run)]
            self._fed = -1
        else:
            self._fed = -1 if waits else changes
        if not waits:
            return
        async with self._shared.lock:
            for run in only:
                found = runs.fed_otherwise(run)
                if found:
                    stays = runs.older_equal(run) is None or self._queries.nodes.of(run)
                    await self._redeploy(found, run if stays else None)

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
        if any(self._copies.get(run) != version for run, version in lost.items()):
            self._queries.has_old_plans = True
        self._copies = lost

    def _plans_are_old(self) -> bool:
        """Return whether runs are about to be planned again, but not for ever."""
        since = self._queries.planning_since
        if self._queries.widened or (since is None and self._queries.has_old_plans):
            return True
        return since is not None and monotonic_clock() - since < LONGEST_PLANNING


def loses_results(bundle: FragmentBundle, feeds: Iterable[Feed]) -> bool:
    """Return whether a bundle reads results of other runs that it would not with these feeds."""
    left = {feed.fragment for feed in feeds}
    lost = (feed.fragment for feed in bundle.feeds if feed.fragment not in left)
    return any(bundle.fragment(name).engine == Engine.BASE for name in lost)
