"""Nodes that are deployed together with the query that wants them.

A plan names them provisionally: numbers are given when it is deployed, and by then some of them may
be there already, or rest on a run that has changed. A reader's bundle says all that it is computed
from, so whatever is missing by then it computes itself.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.planned_queries import Planned, PlannedNode
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.store.stored_runs import StoredNode
from federated_optimizer.network.shareable import fragment_prints, may_give
from streamsql.wire.fragments import Feed, FragmentBundle


@dataclass(frozen=True, slots=True)
class Deployable:
    """A query's bundle with the nodes that have to be deployed before it.

    Attributes:
        query: Its id, the last number that was given.
        nodes: Oldest first; of those that are there already the next version.
    """

    query: str
    nodes: tuple[StoredNode, ...]
    bundle: FragmentBundle


class NewNodes:
    """Names the bundles of a plan and of its nodes.

    Args:
        runs: All runs.
        next_run: Gives names of runs.
        clock: Microseconds since 1970.
    """

    def __init__(
        self, runs: SharedRuns, next_run: Callable[[], Awaitable[str]], clock: Callable[[], int]
    ) -> None:
        self._runs = runs
        self._next_run = next_run
        self._clock = clock

    async def deployable(self, planned: Planned) -> Deployable:
        """Return what has to be deployed of a new query; its name is the last that is given."""
        given: dict[str, Feed] = {}
        made: list[StoredNode] = []
        for node in planned.nodes:
            stored = await self._named(node, planned, given)
            if stored is not None:
                made.append(stored)
                given |= given_by(stored.bundle)
        run = await self._next_run()
        alike = self._runs.alike(planned)
        bundle = self._runs.named(planned, run, given) if alike is None else alike.bundle
        read = {feed.run for feed in bundle.feeds}
        for stored in reversed(made):
            if stored.run in read:
                read |= {feed.run for feed in stored.bundle.feeds}
        needed = tuple(stored for stored in made if stored.run in read)
        return Deployable(run, needed, bundle)

    async def _named(
        self, node: PlannedNode, planned: Planned, given: Mapping[str, Feed]
    ) -> StoredNode | None:
        """Return a node under its name; None: it is there already, or cannot be made any more."""
        result = fragment_prints(node.bundle).get(_result_of(node.bundle), "")
        if not result or result in given or self._runs.gives(result):
            return None
        run = node.widens
        if not run:
            run = await self._next_run()
        elif not self._may_widen(run, node.bundle.version):
            return None
        bundle = replace(node.bundle, query=run, silent=True)
        bundle = replace(bundle, feeds=self._runs.feeds_of(bundle, run, given=given))
        leader = self._runs.leader(run)
        reads = node.reads if leader is None else node.reads | leader.reads
        created = self._clock() if leader is None else leader.created
        return StoredNode(bundle, node.plan, reads, created, planned.whole_changes, node.tells)

    def _may_widen(self, run: str, version: int) -> bool:
        """Return whether a run is still the node that a plan knew, and nobody sees its columns."""
        live = self._runs.live(run)
        return all(q.origin == Origin.NODE for q in live) and any(
            query.bundle.version + 1 == version for query in live
        )


def _result_of(bundle: FragmentBundle) -> str:
    return next(fragment.id for fragment in bundle.fragments if not fragment.consumer)


def given_by(bundle: FragmentBundle) -> dict[str, Feed]:
    """Return how others read what a bundle will give them, by closure print."""
    own = {fragment.id: fragment for fragment in bundle.own}
    return {
        printed: Feed("", bundle.query, bundle.version, name)
        for name, printed in fragment_prints(bundle).items()
        if name in own and may_give(own[name])
    }
