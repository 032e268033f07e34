"""Runs and the queries that read them: sites compute a bundle once for all equal queries.

A run is named after the first query that it was deployed for. The name stays when that query is
gone: numbers of queries are never given twice.
"""

from federated_optimizer.coordinator.queries.planner import Planned
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.network.shareable import fingerprint


class SharedRuns:
    """Index of the running queries by their run, and of the runs by what they compute.

    Args:
        host: The coordinator. A query that it has stopped itself reads nothing any more.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._readers: dict[str, dict[str, RunningQuery]] = {}
        self._alike: dict[str, dict[str, None]] = {}  # runs by fingerprint, oldest first
        self._prints: dict[str, str] = {}

    def all(self) -> tuple[str, ...]:
        """Return the runs, oldest first."""
        return tuple(self._readers)

    def readers(self, run: str) -> tuple[RunningQuery, ...]:
        """Return the queries of a run, those that were stopped for a reason of ours too."""
        return tuple(self._readers.get(run, {}).values())

    def live(self, run: str) -> tuple[RunningQuery, ...]:
        """Return the queries that read a run."""
        return tuple(q for q in self.readers(run) if self._host not in q.problems)

    def leader(self, run: str) -> RunningQuery | None:
        """Return a query that knows all that has come of a run, or None."""
        return next(iter(self.live(run)), None)

    def alike(self, planned: Planned) -> RunningQuery | None:
        """Return a query of the oldest run that computes what is planned; None: there is none.

        No run counts that a site has stopped.
        """
        if planned.alone:
            return None
        for run in self._alike.get(fingerprint(planned.bundle), ()):
            leader = self.leader(run)
            if leader is not None and not leader.has_failed:
                return leader
        return None

    def sharers(self, query: RunningQuery) -> tuple[RunningQuery, ...]:
        """Return the other queries that read the run of a query."""
        return tuple(other for other in self.live(query.run) if other is not query)

    def enter(self, query: RunningQuery) -> None:
        """Note that a query reads the run that its bundle names."""
        run = query.run
        self._readers.setdefault(run, {})[query.id] = query
        if run not in self._prints and not query.alone:
            name = self._prints[run] = fingerprint(query.bundle)
            self._alike.setdefault(name, {})[run] = None

    def leave(self, query: RunningQuery) -> None:
        """Note that a query reads its run no more; call it before its bundle is another one."""
        run = query.run
        readers = self._readers.get(run, {})
        readers.pop(query.id, None)
        if not self.live(run):
            self._unknown(run)
        if not readers:
            self._readers.pop(run, None)

    def _unknown(self, run: str) -> None:
        """Let no query find a run any more: it has another plan, or ends."""
        name = self._prints.pop(run, None)
        if name is not None:
            del self._alike[name][run]
            if not self._alike[name]:
                del self._alike[name]
