"""Texts of nodes that somebody may see: what a node computes tells what queries want of it.

Equal queries want the same, so whoever may read one of a run may see what it computes. A node that
was made for queries, or given columns for them, tells what all of these want, also of those that
have ended. It shows its text to those who may read what all of these read.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.explaining.run_fragments import run_fragments
from federated_optimizer.coordinator.grants.query_rights import may_read_all, sees_all
from federated_optimizer.coordinator.queries.planned_queries import PlannedNode
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.rights.reading_rights import ReadingRights
from federated_optimizer.costs.fragment_estimates import FragmentEstimate
from streamsql.algebra.operators import Fixpoint, RemoteSource, walk_plan
from streamsql.data.schema import Schema
from streamsql.wire.fragments import Fragment, FragmentBundle

NOT_SHOWN = "not shown: it is computed also for queries that you may not read"
"""In the place of what a node computes."""


class SeenTexts:
    """The texts that one principal may see, for this moment.

    Args:
        runs: All that sites run.
        rights: Of everybody.
        principal: Who asks.
    """

    def __init__(self, runs: SharedRuns, rights: ReadingRights, principal: Principal) -> None:
        self._runs = runs
        self._sees_all = sees_all(principal)
        self._may_read = may_read_all(rights, principal)
        self._known: dict[str, bool] = {}

    def of_run(self, run: str) -> bool:
        """Return whether the texts of a run's nodes may be seen."""
        if self._sees_all:
            return True
        if run not in self._known:
            self._known[run] = self._is_seen(run)
        return self._known[run]

    def _is_seen(self, run: str) -> bool:
        leader = self._runs.leader(run)
        if leader is None:
            return False
        if self._may_read(leader.reads | leader.tells):
            return True
        return any(self._may_read(query.reads) for query in self._runs.seen(run))

    def bundle(self, bundle: FragmentBundle, nodes: Sequence[PlannedNode] = ()) -> FragmentBundle:
        """Return a bundle in which fragments whose text may not be seen only say so.

        What is below these is left out.

        Args:
            bundle: Of a query that may be read.
            nodes: Those that would be made for it.
        """
        if self._sees_all or not bundle.feeds:
            return bundle
        made = {node.bundle.query: node for node in nodes}
        hidden = self._hidden(bundle, made)
        if not hidden:
            return bundle
        fragments = {
            each.id: _hiding(each) if each.id in hidden else each for each in bundle.fragments
        }
        kept: set[str] = set()
        waiting = [each.id for each in bundle.fragments if not each.consumer]
        while waiting:
            name = waiting.pop()
            if name in fragments and name not in kept:
                kept.add(name)
                waiting.extend(fragments[name].inputs)
        shown = tuple(fragments[each.id] for each in bundle.fragments if each.id in kept)
        plans = [node for each in shown for node in walk_plan(each.plan)]
        recursions = {node.name for node in plans if isinstance(node, Fixpoint)}
        return replace(
            bundle,
            fragments=shown,
            feeds=tuple(feed for feed in bundle.feeds if feed.fragment in kept),
            recursions=tuple(each for each in bundle.recursions if each.name in recursions),
        )

    def _hidden(self, bundle: FragmentBundle, made: Mapping[str, PlannedNode]) -> set[str]:
        """Return the fragments of a bundle whose text may not be seen."""

        def bundle_of(run: str) -> FragmentBundle | None:
            if run in made:
                return made[run].bundle
            leader = self._runs.leader(run)
            return None if leader is None else leader.bundle

        # Of a run that is there in another version only its name is known, and nothing below it.
        runs = {feed.fragment: feed.run for feed in bundle.feeds}
        runs |= {name: run for name, (run, _) in run_fragments(bundle, bundle_of).items()}
        return {
            each.id
            for each in bundle.fragments
            if runs.get(each.id) != bundle.query and not self._is_shown(runs.get(each.id), made)
        }

    def _is_shown(self, run: str | None, made: Mapping[str, PlannedNode]) -> bool:
        if run is None:
            return False
        node = made.get(run)
        return self.of_run(run) if node is None else self._may_read(node.reads | node.tells)


def without_words(estimates: Mapping[str, FragmentEstimate]) -> dict[str, FragmentEstimate]:
    """Return estimates without what they assume: of conditions below, in words."""
    return {name: dataclasses.replace(each, assumed=()) for name, each in estimates.items()}


def _hiding(fragment: Fragment) -> Fragment:
    """Return a fragment of a run of others without its text and columns."""
    plan = RemoteSource(NOT_SHOWN, Schema(()))
    return replace(fragment.computed, plan=plan, partition=(), homes=())
