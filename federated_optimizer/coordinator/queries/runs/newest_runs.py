"""Index of the newest runs that read a source: with what a plan has not been compared yet."""

from collections.abc import Collection
from typing import Protocol

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.network.run_ages import age_of
from streamsql.algebra.operators import Plan, Scan, walk_plan


class Runs(Protocol):
    """All that sites run."""

    @property
    def changes(self) -> int:
        """Grows when a run comes, goes, or has other readers or another plan."""

    def names(self) -> Collection[str]:
        """Return the runs, in any order."""

    def all(self) -> tuple[str, ...]:
        """Return the runs, oldest first."""

    def leader(self, run: str) -> RunningQuery | None:
        """Return a query that knows all that has come of a run, or None."""

    def is_tried(self, query: RunningQuery) -> bool:
        """Whether a query reads a run on trial only."""


class NewestRuns:
    """The two newest runs that read each source: one at least is not the one that asks.

    Work: that of all runs if one has changed since; else of a question alone, for each run asks.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._looked = -1
        self._of: dict[str, tuple[str, ...]] = {}
        self._sources: dict[str, tuple[Plan | None, frozenset[str]]] = {}

    def beside(self, query: RunningQuery) -> str:
        """Return the newest other run that reads a source of a query's run; empty: there is none.

        None counts that is only tried, or that nobody else may read.
        """
        if self._looked != self._runs.changes:
            self._look()
        sources = self._sources_of(query)
        others = (run for source in sources for run in self._of.get(source, ()) if run != query.run)
        return max(others, key=age_of, default="")

    def _look(self) -> None:
        runs, self._looked, self._of = self._runs, self._runs.changes, {}
        for run in self._sources.keys() - runs.names():
            del self._sources[run]
        for run in runs.all():
            leader = runs.leader(run)
            if leader is None or runs.is_tried(leader) or leader.alone:
                continue
            for source in self._sources_of(leader):
                self._of[source] = (*self._of.get(source, ())[-1:], run)

    def _sources_of(self, query: RunningQuery) -> frozenset[str]:
        known = self._sources.get(query.run)
        if known is None or known[0] is not query.logical:
            known = self._sources[query.run] = query.logical, _sources(query.logical)
        return known[1]


def _sources(plan: Plan | None) -> frozenset[str]:
    nodes = () if plan is None else walk_plan(plan)
    return frozenset(node.source.lower() for node in nodes if isinstance(node, Scan))
