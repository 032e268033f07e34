"""Queries of one account that read one run and the same relations: one is checked for all."""

from collections.abc import Collection
from operator import itemgetter

from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.rights.reading_rights import ReadingRights
from federated_optimizer.coordinator.store.grant_store import MadeKind
from streamsql.catalog.read_gate import Read

Group = tuple[str, frozenset[Read], str]
"""Account of the maker, empty for the federation itself, the relations that are read, the run."""


class MakerGroups:
    """Queries by maker, relations read and run, made again only after one of these has changed.

    Attributes:
        looked_at: Number of queries that were gone through so far: tests count work by it.
    """

    def __init__(self, queries: Queries, rights: ReadingRights) -> None:
        self._queries = queries
        self._rights = rights
        self._groups: list[list[RunningQuery]] = []
        self._of: tuple[int, int] | None = None
        self.looked_at = 0

    def all(self) -> Collection[list[RunningQuery]]:
        """Return the groups, without queries that were stopped for a reason of ours.

        The query that was made first comes first: if its account was there by then, so was it for
        the others.
        """
        runs, rights = self._queries.runs, self._rights
        now = (runs.changes, rights.queries_made)
        if now != self._of:
            found: dict[Group, list[tuple[int, RunningQuery]]] = {}
            for query in self._queries.all():
                self.looked_at += 1
                if not runs.is_stopped(query):
                    maker = rights.noted_maker(MadeKind.QUERY, query.id)
                    account, at = ("", 0) if maker is None else (maker.account, maker.at)
                    key = (account, query.reads, query.run)
                    found.setdefault(key, []).append((at, query))
            self._groups = [
                [query for _, query in sorted(group, key=itemgetter(0))] for group in found.values()
            ]
            self._of = now
        return self._groups
