"""Runs that all who rest on them may do better without, and who that is.

A node is one that somebody has left: it may be far too wide for those who still read it. So is a
run that its own queries would leave, but for those who read its result.
"""

from collections.abc import Collection, Mapping, Sequence

from federated_optimizer.coordinator.adaptation.known_runs import KnownRun, doubled, is_quiet
from federated_optimizer.coordinator.computations.run_nodes import number_of
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.read_parts import MOST_READERS
from federated_optimizer.network.run_ages import age_of

MOST_TOGETHER = 8
"""Runs that move together; of more, one may well need a node as it is."""

_MANY = frozenset({""})

Groups = Mapping[str, Sequence[RunningQuery]]
"""The queries of each run that rests on one, by run."""


class LeftNodes:
    """The runs that are to be looked at for all who rest on them.

    State: who reads each node, which runs are due and when, and how often moves came to nothing.

    Args:
        queries: All queries.
        pause: Microseconds between two looks at least.
    """

    def __init__(self, queries: Queries, pause: int) -> None:
        self._queries, self._pause = queries, pause
        self._readers: dict[str, frozenset[str]] = {}
        self._due: dict[str, int] = {}
        self._tries: dict[str, int] = {}
        self._changes = -1

    def see(self, now: int) -> None:
        """Note who has left. Work: that of all nodes, if any run has changed."""
        runs = self._queries.runs
        if self._changes == runs.changes:
            return
        self._changes = runs.changes
        tried = {trial.run for trial in runs.tried()}
        before, self._readers = self._readers, {}
        for node in self._queries.nodes.all():
            readers = _few(runs.fed.readers(node.run), tried)
            self._readers[node.run] = readers
            # A node that was made as one has no text; others were left by their query.
            is_left = before[node.run] - readers if node.run in before else node.text
            if is_left:
                self.wants(node.run, now)
        for known in (self._due, self._tries):
            for run in known.keys() - runs.names():
                del known[run]

    def wants(self, run: str, now: int) -> None:
        """Note that a run is to be looked at for all who rest on it, after a pause."""
        self._due.setdefault(run, now + doubled(self._pause, self._tries.get(run, 0)))

    def due(self, known: Mapping[str, KnownRun], now: int) -> tuple[str, Groups] | None:
        """Return the oldest run that is due, and the queries that would leave it together."""
        for run in sorted((r for r, due in self._due.items() if due <= now), key=age_of):
            groups = self._groups(run)
            if groups is None:
                self._due.pop(run)
            elif all(
                name in known and known[name].bundle is queries[0].bundle and is_quiet(queries[0])
                for name, queries in groups.items()
            ):
                return run, groups
        return None

    def _groups(self, start: str) -> Groups | None:
        """Return the queries of those who rest on a run, itself included; None: not several.

        Nodes that rest on it end with the last of those who read them.
        """
        runs, found = self._queries.runs, dict[str, Sequence[RunningQuery]]()
        for run in sorted(runs.resting_on(start), key=age_of):
            queries = [query for query in runs.seen(run) if query.id in self._queries]
            if queries:
                found[run] = queries
        return found if 1 < len(found) <= MOST_TOGETHER else None

    def goes_on(self, start: str, groups: Groups) -> bool:
        """Return whether a run is needed by the same queries as when it was due."""
        now = self._groups(start)
        return now is not None and all(
            [(q.id, q.bundle) for q in now.get(run, ())]
            == [(q.id, queries[0].bundle) for q in queries]
            for run, queries in {**dict.fromkeys(now, ()), **groups}.items()
        )

    def decided(self, run: str, now: int, *, moves: bool) -> None:
        """Note that a run was looked at; if its queries move, that may come to nothing."""
        self._due.pop(run, None)
        self._tries[run] = self._tries.get(run, 0) + 1 if moves else 0
        if moves:
            self.wants(run, now)


def _few(readers: Collection[str], tried: Collection[str]) -> frozenset[str]:
    """Return who reads a node but trials; of many one name stands for all."""
    return frozenset(readers).difference(tried) if len(readers) <= MOST_READERS else _MANY


def leaving_words(node: str, runs: Collection[str]) -> str:
    """Return why those who rest on a node leave it."""
    return f"the {len(runs)} runs that rest on node {number_of(node)} cost less without it"
